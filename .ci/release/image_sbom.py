"""The software bill of materials of what the image adds to its base: CycloneDX 1.6.

The Dockerfile names the base, and requirements.lock the packages. What the base holds, its publisher says.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from checkout import VERSION, ReleaseError
from cyclonedx.model.component import Component, ComponentType
from image import Image
from packageurl import PackageURL
from packaging.markers import Marker
from sbom import add_packages, locked, new_bom, program, written

_BASE: Final = re.compile(
    r"^ARG PYTHON_IMAGE=(?P<repository>\S+?):(?P<tag>(?P<minor>3\.\d+)[^\s:/@]*)(?:@(?P<digest>\S+))?$", re.MULTILINE
)
_LINUX: Final = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "sys_platform": "linux",
}
"""What markers of the lock are compared with, beside the version of Python."""


def image_sbom(named: Image, dockerfile: str, lock: str, seconds: int) -> bytes:
    """The document as JSON. `seconds` since 1970 is its time.

    Raises:
        ReleaseError: the Dockerfile or the lock is not understood.
    """
    found = _BASE.search(dockerfile)
    if found is None:
        raise ReleaseError(
            "Dockerfile: no line ARG PYTHON_IMAGE=python:3.x... names the base and its version of Python"
        )
    bom = new_bom(f"{named}#{hashlib.sha256(f'{seconds}{lock}'.encode()).hexdigest()}", seconds)
    whole = _image(named.repository, VERSION, named.digest)
    base = _image(found["repository"], found["tag"], found["digest"] or "")
    base.description = "The base by the Dockerfile. What the base holds is not in this document."
    ours = program(VERSION)
    bom.metadata.component = whole
    bom.components.update((base, ours))
    bom.register_dependency(whole, [base, ours])
    python = {"python_version": found["minor"], "python_full_version": f"{found['minor']}.0"}
    installed = [each for each in locked(lock) if not each.marker or Marker(each.marker).evaluate(_LINUX | python)]
    add_packages(bom, ours, installed, optional=())
    return written(bom)


def _image(repository: str, tag: str, digest: str) -> Component:
    """An image by its digest, or by its tag where nobody gave a digest."""
    *path, name = repository.split("/")
    purl = PackageURL(
        "docker", name=name, version=digest or tag, qualifiers={"repository_url": repository} if path else {}
    )
    return Component(type=ComponentType.CONTAINER, name=repository, version=tag, bom_ref=str(purl), purl=purl)
