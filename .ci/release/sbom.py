"""The software bill of materials of the wheel, and of the packages that requirements.lock allows: CycloneDX 1.6.

The lock is the only source: it names versions, the hashes of every file that may be installed, and who needs what.
Licenses are not in it, and so not here. image_sbom.py makes the document of the image from the same parts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from checkout import NAME, ReleaseError
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

_PACKAGE: Final = re.compile(r"^([a-zA-Z0-9].*)$", re.MULTILINE)
_PINNED: Final = re.compile(r"(?P<name>\S+)==(?P<version>\S+)(?: ; (?P<marker>.+?))? \\")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})\b")
_VIA: Final = re.compile(r"^    # (?:via |  )(\S+)", re.MULTILINE)  # uv: `# via a`, or `# via` and lines `#   a`


class Locked(NamedTuple):
    """A package of the lock: the SHA-256 of each file that may be installed, and the packages that need it."""

    name: str
    version: str
    marker: str
    hashes: Sequence[str]
    needed_by: Collection[str]


def locked(lock: str) -> list[Locked]:
    """The packages of a lock as `uv pip compile --generate-hashes` writes it.

    Raises:
        ReleaseError: an entry is not understood.
    """
    _, *parts = _PACKAGE.split(lock)
    return [_entry(first, rest) for first, rest in zip(parts[::2], parts[1::2], strict=True)]


def _entry(first: str, rest: str) -> Locked:
    pinned, hashes, needed_by = _PINNED.fullmatch(first), _HASH.findall(rest), _VIA.findall(rest)
    if pinned is None or not hashes or not needed_by:
        raise ReleaseError(f"requirements.lock: {first!r} is no version with hashes and `# via`: run `make lock`")
    return Locked(pinned["name"], pinned["version"], pinned["marker"] or "", hashes, needed_by)


def wheel_sbom(version: str, wheel_sha256: str, lock: str, optional: Collection[str], seconds: int) -> bytes:
    """The document as JSON. `optional` are the packages of extras; `seconds` since 1970 is its time.

    Raises:
        ReleaseError: the lock is not understood.
    """
    packages = locked(lock)
    bom = new_bom(f"{pypi_purl(NAME, version)}?checksum=sha256:{wheel_sha256}", seconds)
    ours = program(version)
    ours.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=wheel_sha256))
    bom.metadata.component = ours
    add_packages(bom, ours, packages, optional)
    return written(bom)


def new_bom(identity: str, seconds: int) -> Bom:
    """An empty document of this time. Equal identities give equal serial numbers."""
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, identity))
    bom.metadata.timestamp = datetime.fromtimestamp(seconds, UTC)
    return bom


def program(version: str) -> Component:
    """Our program, as PyPI names it."""
    purl = pypi_purl(NAME, version)
    return Component(
        type=ComponentType.APPLICATION,
        name=NAME,
        version=version,
        bom_ref=str(purl),
        purl=purl,
        licenses=[LicenseExpression("Apache-2.0")],
    )


def add_packages(bom: Bom, ours: Component, packages: Sequence[Locked], optional: Collection[str]) -> None:
    """Add these packages, what each needs, and what our program needs."""
    components = {package.name: _component(package, package.name in optional) for package in packages}
    bom.components.update(components.values())
    for name, component in {NAME: ours, **components}.items():
        bom.register_dependency(component, [components[each.name] for each in packages if name in each.needed_by])


def written(bom: Bom) -> bytes:
    """The document as JSON."""
    return f"{JsonV1Dot6(bom).output_as_string(indent=2)}\n".encode()


def _component(package: Locked, optional: bool) -> Component:  # noqa: FBT001 - told by its name
    purl = pypi_purl(package.name, package.version)
    return Component(
        name=package.name,
        version=package.version,
        bom_ref=str(purl),
        purl=purl,
        scope=ComponentScope.OPTIONAL if optional else ComponentScope.REQUIRED,
        external_references=[
            ExternalReference(
                type=ExternalReferenceType.DISTRIBUTION,
                url=XsUri(str(purl)),
                comment="one of these files, by the hashes of requirements.lock",
                hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each) for each in package.hashes],
            )
        ],
        properties=[Property(name=f"{NAME}:environment-marker", value=package.marker)] if package.marker else [],
    )


def pypi_purl(name: str, version: str) -> PackageURL:
    """The address of a package of PyPI."""
    return PackageURL("pypi", name=name, version=version)
