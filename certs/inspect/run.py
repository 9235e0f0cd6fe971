"""Runs the checks of `inspect`, and prints their findings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

import msgspec
from msgspec import Struct

from certs.inspect import findings
from certs.inspect.findings import InspectFinding, Material, Result
from certs.inspect.handshake import Unreachable, shake_hands
from certs.rotation.state import KEYS
from certs.x509.pki import Pair
from webhook.component_base.address import Address
from webhook.component_base.errors import UserError

EXIT_WRONG: Final = 1


class CantRead(UserError):
    """The directory or a file in it can't be read."""


class Inspection(Struct, frozen=True, kw_only=True):
    """What to inspect.

    Attributes:
        material: the pair and its authorities.
        names: the names that the certificate must have; empty if it can have any.
        address: the server for the handshake; None if its address is unknown.
        asked: whether the user has named that address.
    """

    material: Material
    names: Sequence[str]
    address: Address | None
    asked: bool


def run(subject: Inspection, *, output: str, stdout: TextIO) -> int:
    """Print the findings to `stdout`, as a table or as JSON. Return the exit code: 1 if a check failed, otherwise 0."""
    found = list(findings.findings(subject.material, subject.names, datetime.now(UTC)))
    if subject.address or subject.material.bundles:
        found.append(_handshake(subject))
    good = all(each.result is not Result.WRONG for each in found)
    stdout.write(_json(found, good=good) if output == "json" else _table(found))
    return 0 if good else EXIT_WRONG


def read_directory(directory: Path) -> Material:
    """Return the pair in a directory, such as a mounted Secret. A file that does not exist counts as empty.

    Raises:
        CantRead: the directory does not exist, or the user may not read a file.
    """
    if not directory.is_dir():
        raise CantRead(f"{directory}: no such directory; expected one with tls.crt, tls.key and ca.crt")
    contents = []
    for name in KEYS:
        try:
            contents.append((directory / name).read_bytes())
        except FileNotFoundError:
            contents.append(b"")
        except OSError as error:
            raise CantRead(f"{directory / name}: {error.strerror}; run this as a user who may read it") from None
    return Material(pair=Pair(*contents))


def _handshake(subject: Inspection) -> InspectFinding:
    advice = "forward a port to the Service (kubectl port-forward), and name that port with --connect"
    address, names = subject.address, subject.names
    if address is None:
        return InspectFinding("handshake", Result.NOTE, f"not tried: the address of the Service is unknown; {advice}")
    try:
        handshake = shake_hands(address, names[0] if names else address.host, subject.material.trusted)
    except Unreachable as error:
        if subject.asked:
            return InspectFinding("handshake", Result.WRONG, str(error))
        return InspectFinding("handshake", Result.NOTE, f"the Service can't be reached from here ({error}); {advice}")
    return findings.handshake_finding(handshake, subject.material.pair)


def _json(found: Sequence[InspectFinding], *, good: bool) -> str:
    return msgspec.json.format(msgspec.json.encode({"good": good, "findings": found})).decode() + "\n"


def _table(found: Sequence[InspectFinding]) -> str:
    width = max(len(each.check) for each in found)
    return "".join(f"{each.result:<5}  {each.check:<{width}}  {each.detail}\n" for each in found)
