"""What a user installed before: manifests/ and the chart of an earlier commit.

`git archive --format=tar.gz 40fc837a manifests charts` wrote the file beside this module, so that a clone without
history has it, too.
"""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Final

COMMIT: Final = "40fc837a"
"""The last one whose manifests/ was no rendered chart."""
PACKED: Final = Path(__file__).with_name("earlier.tar.gz")


def checkout(directory: Path) -> Path:
    """Write its manifests/ and charts/ into a directory."""
    with tarfile.open(PACKED) as archive:
        for member in archive.getmembers():  # Debian's Python 3.11.2 has no filter of extractall
            if content := archive.extractfile(member):
                file = directory / member.name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content.read())
    return directory
