"""The command bundle: list each kind, keep what the program reads, and write one file that `--manifests` takes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from webhook.bundle.kept import as_json
from webhook.bundle.kinds import KINDS, BundledKind
from webhook.bundle.settings import BundleSettings
from webhook.component_base.errors import UserError
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.files import bundle
from webhook.files.bundle import BundleList, ClusterBundle
from webhook.files.documents import LIST_START
from webhook.kube import reader
from webhook.kube.client.api import Api
from webhook.kube.client.errors import ApiError
from webhook.kube.client.wire import Decoders
from webhook.kube.reader import connect_for_terminal

EXIT_WHOLE: Final = 0
EXIT_PARTIAL: Final = 1
_LIST_SECONDS: Final = 120.0  # for one kind: 50,000 pods of 20 KB each are 1 GB
_STDOUT: Final = Path("-")
_LEFT_OUT: Final = (
    "left out: Secrets and ConfigMaps, environment and commands of containers, cloud-init and disks' content of VMs, "
    "all annotations but those of co-scheduling; in it: names, labels, node selectors and affinities. Read it before "
    "you pass it on"
)


class NotWritten(UserError):
    """The file can't be written."""


class _Found(Struct, frozen=True):
    """What was listed of one kind, as JSON, one object a line."""

    record: BundleList
    lines: Sequence[bytes] = ()


def run(settings: BundleSettings, *, stdout: TextIO, stderr: TextIO) -> int:
    """Run the command with these settings.

    Returns:
        0 if every kind was listed, 1 if one could not be listed: the bundle says which and why.

    Raises:
        UserError: no cluster can be reached, or the file can't be written.
    """
    kubeconfig = Kubeconfig(file=settings.kubeconfig, context=settings.context)
    with connect_for_terminal(kubeconfig, hint="") as (runner, api, origin):
        found: list[_Found] = []
        runner.run(_list_all(api, settings.longhorn_namespace, found))
        made = ClusterBundle(
            cluster=origin,
            at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            namespace=api.namespace or "default",
            longhorn_namespace=settings.longhorn_namespace,
            lists=[each.record for each in found],
        )
    if settings.output == _STDOUT:
        stdout.write(b"".join(_pieces(made, found)).decode())
    else:
        _write(settings.output, _pieces(made, found))
    _tell(settings.output, made, stderr)
    return EXIT_PARTIAL if any(each.problem for each in made.lists) else EXIT_WHOLE


def _tell(file: Path, made: ClusterBundle, stderr: TextIO) -> None:
    counted = ", ".join(f"{each.objects} {each.resource}" for each in made.lists if not each.problem)
    name = "standard output" if file == _STDOUT else file
    stderr.write(f"{name}: written from {made.cluster} at {made.at}: {counted}\n{_LEFT_OUT}\n")
    for each in made.lists:
        if each.problem:
            stderr.write(f"not everything could be read: {each.resource}: {each.problem}\n")


async def _list_all(api: Api, longhorn_namespace: str, found: list[_Found]) -> None:
    """One kind after the other: the API server has other work.

    Return None: asyncio.Runner's signal handler would make a repr of a result.
    """
    found += [await _list(api, listed, longhorn_namespace) for listed in KINDS]


async def _list(api: Api, listed: BundledKind, longhorn_namespace: str) -> _Found:
    type_ = listed.type
    record = BundleList(api_version=type_.api_version, kind=type_.kind, resource=type_.title)
    path = type_.path(reader.within(longhorn_namespace) if listed.longhorn else "", "")
    try:
        items = await reader.get_all(api, path, Decoders(listed.decoded), fields=listed.fields, seconds=_LIST_SECONDS)
    except ApiError as problem:
        return _Found(replace(record, problem=str(problem)))
    stated = {"apiVersion": type_.api_version, "kind": type_.kind}
    objects = [stated | kept for item in items if (kept := as_json(item)) is not None]
    return _Found(replace(record, objects=len(objects)), [msgspec.json.encode(each) for each in objects])


def _pieces(made: ClusterBundle, found: Sequence[_Found]) -> Iterator[bytes]:
    """A List in JSON, one object a line."""
    header: dict[str, Any] = {
        "apiVersion": bundle.BUNDLE_API_VERSION,
        "kind": bundle.BUNDLE_KIND,
        "metadata": {"name": "bundle"},
    }
    yield f"{LIST_START}\n".encode()
    yield msgspec.json.encode(header | msgspec.to_builtins(made))
    for each in found:
        for line in each.lines:
            yield b",\n" + line
    yield b"\n]}\n"


def _write(file: Path, pieces: Iterator[bytes]) -> None:
    """Write a file beside the named one, and give it that name when it is complete. Only its owner may read it."""
    try:
        number, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        try:
            with os.fdopen(number, "wb") as out:
                out.writelines(pieces)
                out.flush()
                os.fsync(out.fileno())
            Path(name).replace(file)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise NotWritten(f"{file}: {error.strerror}; expected a file that can be written: --output FILE") from None
