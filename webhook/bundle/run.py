"""The command bundle: list each kind, keep what the program reads, and write one file that `--manifests` takes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec
from msgspec.structs import replace

from webhook.component_base.errors import UserError
from webhook.component_base.start import interrupts_raised
from webhook.kube.collect import collect_at_terminal
from webhook.objects.kept import as_json
from webhook.objects.kinds import KINDS, POD, WEBHOOK_POD, APIResource
from webhook.objects.objects import ObjectStore
from webhook.objects.parts import ClusterBundle, parts_of_all
from webhook.settings import BundleSettings

_LIST_START: Final = b'{"apiVersion":"v1","kind":"List","items":[\n'
EXIT_WHOLE: Final = 0
EXIT_PARTIAL: Final = 2
_STDOUT: Final = Path("-")
_LEFT_OUT: Final = (
    "left out: Secrets, data of ConfigMaps, environment and commands of containers, cloud-init and disks' content of "
    "VMs, annotations except those of co-scheduling; in it: names, labels, node selectors and affinities. Read it "
    "before you pass it on"
)


class NotWritten(UserError):
    """The file can't be written."""


def run(settings: BundleSettings, *, stdout: TextIO, stderr: TextIO) -> int:
    """Run the command with these settings.

    Returns:
        0 if every kind was listed, 2 if one could not be listed: the bundle says which and why.

    Raises:
        UserError: no cluster can be reached, the file can't be written, or it exists and a kind could not be listed.
    """
    found = collect_at_terminal(settings.client_config, settings.longhorn_namespace, lambda _: parts_of_all(), hint="")
    kept = {kind.title: _kept(found, kind) for kind in KINDS}
    counts = {title: len(lines) for title, lines in kept.items()} | {WEBHOOK_POD.title: len(found.of(WEBHOOK_POD))}
    made = found.bundle
    assert made  # noqa: S101 - for the type checker: what was collected has a record
    made = replace(made, lists=[replace(each, objects=counts[each.resource]) for each in made.lists])
    pieces = _pieces([msgspec.json.encode(made), *chain.from_iterable(kept.values())])
    unread = [f"{each.resource}: {each.problem}" for each in made.lists if each.problem]
    if settings.file == _STDOUT:
        stdout.write(b"".join(pieces).decode())
    elif unread and settings.file.exists():
        raise NotWritten(
            *(f"not everything could be read: {problem}" for problem in unread),
            f"{settings.file}: exists, and stays as it is; expected the right to list what could not be read, or "
            "another file: --file FILE",
        )
    else:
        _write(settings.file, pieces)
    _tell(settings.file, made, unread, stderr)
    return EXIT_PARTIAL if unread else EXIT_WHOLE


def _tell(file: Path, made: ClusterBundle, unread: Sequence[str], stderr: TextIO) -> None:
    counted = ", ".join(f"{each.objects} {each.resource}" for each in made.lists if not each.problem)
    name = "standard output" if file == _STDOUT else file
    stderr.write(f"{name}: written from {made.cluster} at {made.at}: {counted}\n{_LEFT_OUT}\n")
    stderr.writelines(f"not everything could be read: {problem}\n" for problem in unread)


def _kept(found: ObjectStore, kind: APIResource[Any]) -> list[bytes]:
    """What stays of the objects of a kind, as JSON."""
    stated = {"apiVersion": kind.api_version, "kind": kind.kind}
    serving = found.of(WEBHOOK_POD) if kind is POD else {}
    kept = (as_json(serving.get(key, each)) for key, each in found.of(kind).items())
    return [msgspec.json.encode(stated | each) for each in kept if each]


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """A List in JSON, one object a line."""
    yield _LIST_START
    for number, line in enumerate(lines):
        yield b",\n" + line if number else line
    yield b"\n]}\n"


def _write(file: Path, pieces: Iterator[bytes]) -> None:
    """Write a file beside the named one, and give it that name when it is complete. Only its owner may read it."""
    try:
        number, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        try:
            with interrupts_raised(), os.fdopen(number, "wb") as out:
                out.writelines(pieces)
                out.flush()
                os.fsync(out.fileno())
            Path(name).replace(file)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise NotWritten(f"{file}: {error.strerror}; expected a file that can be written: --file FILE") from None
