"""Reads what `inspect` checks, from a live cluster or a directory, and prints the findings."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec

from certs.inspect import findings
from certs.inspect.findings import InspectFinding, Material, Result
from certs.inspect.handshake import Unreachable, shake_hands
from certs.rotation.state import KEYS
from certs.settings import InspectSettings, ObjectNames
from certs.x509.pki import Pair
from webhook.component_base.address import Address
from webhook.component_base.client.errors import ApiError
from webhook.component_base.errors import UserError
from webhook.component_base.kubeconfig import Kubeconfig

EXIT_WRONG: Final = 1


class CantRead(UserError):
    """The objects in the cluster, the directory or a file in it can't be read."""


def run(settings: InspectSettings, kubeconfig: Kubeconfig, stdout: TextIO) -> int:
    """Print the findings to `stdout`, as a table or as JSON. Return the exit code: 1 if a check failed, otherwise 0.

    Raises:
        UserError: the material can't be read.
    """
    service, names = None, settings.name or ()
    if settings.dir:
        material = read_directory(settings.dir)
    else:
        names = names or settings.names
        material, service = asyncio.run(_read_cluster(kubeconfig, settings))
    found = list(findings.findings(material, names, datetime.now(UTC)))
    address = settings.connect or service
    if address or material.bundles:
        found.append(_handshake(material, names, address, asked=settings.connect is not None))
    good = all(each.result is not Result.WRONG for each in found)
    stdout.write(_json(found, good=good) if settings.output == "json" else _table(found))
    return 0 if good else EXIT_WRONG


async def _read_cluster(kubeconfig: Kubeconfig, names: ObjectNames) -> tuple[Material, Address | None]:
    """Return the Secret with the bundles, and the address of the Service."""
    from certs.cluster import ObjectPaths, connect_objects  # noqa: PLC0415 - the API client takes a second to import

    service = f"/api/v1/namespaces/{names.namespace}/services/{names.service}"
    try:
        async with connect_objects(kubeconfig, ObjectPaths.of(names)) as cluster:
            seen = await cluster.read()
            spec: dict[str, Any] = {}
            with suppress(ApiError):  # the user may not read it
                spec = ((await cluster.find(service)) or {}).get("spec", {})
    except ApiError as error:
        raise CantRead(str(error)) from None
    bundles = {hook.name: hook.bundle for hook in seen.configuration.webhooks}
    reachable = spec.get("clusterIP") not in (None, "", "None") and spec.get("ports")
    address = Address(spec["clusterIP"], spec["ports"][0]["port"]) if reachable else None
    return Material(pair=seen.served.pair, bundles=bundles), address


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


def _handshake(material: Material, names: Sequence[str], address: Address | None, *, asked: bool) -> InspectFinding:
    """Return the finding of a handshake. `asked`: whether the user has named that address."""
    advice = "forward a port to the Service (kubectl port-forward), and name that port with --connect"
    if address is None:
        return InspectFinding("handshake", Result.NOTE, f"not tried: the address of the Service is unknown; {advice}")
    try:
        handshake = shake_hands(address, names[0] if names else address.host, material.trusted)
    except Unreachable as error:
        if asked:
            return InspectFinding("handshake", Result.WRONG, str(error))
        return InspectFinding("handshake", Result.NOTE, f"the Service can't be reached from here ({error}); {advice}")
    return findings.handshake_finding(handshake, material.pair)


def _json(found: Sequence[InspectFinding], *, good: bool) -> str:
    return msgspec.json.format(msgspec.json.encode({"good": good, "findings": found})).decode() + "\n"


def _table(found: Sequence[InspectFinding]) -> str:
    width = max(len(each.check) for each in found)
    return "".join(f"{each.result:<5}  {each.check:<{width}}  {each.detail}\n" for each in found)
