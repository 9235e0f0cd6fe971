"""The command bundle: list each kind, keep what the program reads, and write one file that `--manifests` takes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, TextIO

from webhook.bundle.collect import Collected, collect_bundle
from webhook.bundle.settings import BundleSettings
from webhook.component_base.errors import UserError
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.objects.bundle import ClusterBundle

_LIST_START: Final = b'{"apiVersion":"v1","kind":"List","items":[\n'
EXIT_WHOLE: Final = 0
EXIT_PARTIAL: Final = 1
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
        0 if every kind was listed, 1 if one could not be listed: the bundle says which and why.

    Raises:
        UserError: no cluster can be reached, or the file can't be written.
    """
    kubeconfig = Kubeconfig(file=settings.kubeconfig, context=settings.context)
    found = collect_bundle(kubeconfig, settings.longhorn_namespace)
    made = found.made
    if settings.output == _STDOUT:
        stdout.write(b"".join(_pieces(found)).decode())
    else:
        _write(settings.output, _pieces(found))
    _tell(settings.output, made, stderr)
    return EXIT_PARTIAL if any(each.problem for each in made.lists) else EXIT_WHOLE


def _tell(file: Path, made: ClusterBundle, stderr: TextIO) -> None:
    counted = ", ".join(f"{each.objects} {each.resource}" for each in made.lists if not each.problem)
    name = "standard output" if file == _STDOUT else file
    stderr.write(f"{name}: written from {made.cluster} at {made.at}: {counted}\n{_LEFT_OUT}\n")
    for each in made.lists:
        if each.problem:
            stderr.write(f"not everything could be read: {each.resource}: {each.problem}\n")


def _pieces(found: Collected) -> Iterator[bytes]:
    """A List in JSON, one object a line."""
    yield _LIST_START
    yield found.header
    for line in found.lines:
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
