"""What a user installed before: manifests/ and the chart of an earlier commit, from the history of this clone."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path
from typing import Final

from support.control_plane.rendering import ROOT

COMMIT: Final = "40fc837a"
"""The last one whose manifests/ was no rendered chart."""


def checkout(directory: Path) -> Path:
    """Write its manifests/ and charts/ into a directory."""
    command = ["git", "-C", str(ROOT), "archive", COMMIT, "manifests", "charts"]
    packed = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - git
    assert packed.returncode == 0, f"{packed.stderr.decode()}; expected a clone with its history"
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        for member in archive.getmembers():  # Debian's Python 3.11.2 has no filter of extractall
            if content := archive.extractfile(member):
                file = directory / member.name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content.read())
    return directory
