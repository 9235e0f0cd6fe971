"""What each released version shipped: tests/releases, which `make release KEEP=1` writes for the next one."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Final

import yaml
from support.control_plane.kube_api import Object
from support.control_plane.rendering import NAME, ROOT

RELEASES: Final = ROOT / "tests" / "releases"


def versions() -> list[str]:
    """The released versions, the newest last."""
    return sorted((path.name for path in RELEASES.iterdir()), key=lambda name: [*map(int, name.split("."))])


def manifests(version: str) -> list[Object]:
    """The objects that `kubectl apply` made of a version's install, in their order."""
    return list(yaml.safe_load_all((RELEASES / version / "install.yaml").read_text(encoding="utf-8")))


def chart(version: str, directory: Path) -> Path:
    """The chart of a version, unpacked into a directory."""
    with tarfile.open(RELEASES / version / f"{NAME}-{version}.tgz") as archive:
        for member in archive.getmembers():  # Debian's Python 3.11.2 has no filter of extractall
            if content := archive.extractfile(member):
                file = directory / member.name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content.read())
    return directory / NAME
