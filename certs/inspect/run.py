"""`inspect`: shakes hands, and prints what is found there and in the material."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

import msgspec
from msgspec import Struct

from certs.inspect import findings
from certs.inspect.findings import Finding, Material, Result
from certs.inspect.handshake import Unreachable, shake
from certs.rotation.state import CURRENT_KEYS
from certs.x509.pki import Pair
from webhook.component_base.address import Address
from webhook.component_base.errors import UserError

EXIT_WRONG: Final = 1


class CantRead(UserError):
    """The files can't be read."""


class Subject(Struct, frozen=True, kw_only=True):
    """What is inspected.

    `names`: what the certificate must be for; none where it may be for anything. `address`: where to shake hands, None
    where nobody knows. `asked`: the user has named that address.
    """

    material: Material
    names: Sequence[str]
    address: Address | None
    asked: bool


def run(subject: Subject, *, output: str, stdout: TextIO) -> int:
    """Print what is found. Returns the exit code: 0, or 1 where something is wrong."""
    found = list(findings.findings(subject.material, subject.names, datetime.now(UTC)))
    if subject.address or subject.material.bundles:
        found.append(_handshake(subject))
    good = all(each.result is not Result.WRONG for each in found)
    stdout.write(_json(found, good=good) if output == "json" else _table(found))
    return 0 if good else EXIT_WRONG


def read_directory(directory: Path) -> Material:
    """The files of a mounted Secret; one that is not there is empty.

    Raises:
        CantRead: there is no such directory, or a file is not for us.
    """
    if not directory.is_dir():
        raise CantRead(f"{directory}: no such directory; expected one with tls.crt, tls.key and ca.crt")
    contents = []
    for name in CURRENT_KEYS:
        try:
            contents.append((directory / name).read_bytes())
        except FileNotFoundError:
            contents.append(b"")
        except OSError as error:
            raise CantRead(f"{directory / name}: {error.strerror}; run this as who may read it") from None
    return Material(pair=Pair(*contents))


def _handshake(subject: Subject) -> Finding:
    advice = "forward a port to it (kubectl port-forward), and name that with --connect"
    address, names = subject.address, subject.names
    if address is None:
        return Finding("handshake", Result.NOTE, f"not tried: the Service has no address that can be seen; {advice}")
    try:
        shaken = shake(address, names[0] if names else address.host, subject.material.trusted)
    except Unreachable as error:
        if subject.asked:
            return Finding("handshake", Result.WRONG, str(error))
        return Finding("handshake", Result.NOTE, f"the Service can't be reached from here ({error}); {advice}")
    return findings.of_handshake(shaken, subject.material.pair)


def _json(found: Sequence[Finding], *, good: bool) -> str:
    return msgspec.json.format(msgspec.json.encode({"good": good, "findings": found})).decode() + "\n"


def _table(found: Sequence[Finding]) -> str:
    width = max(len(each.check) for each in found)
    return "".join(f"{each.result:<5}  {each.check:<{width}}  {each.detail}\n" for each in found)
