"""The archives of the command line: each has the program, and all packages that it needs on one platform."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from checkout import ROOT, VERSION
from launcher import NAME, PACKAGES, launcher
from packages import minors, packages
from tarball import tarball

_EXAMPLES: Final = "manifests/examples"  # where `demo` looks, seen from the folder that has webhook/


def archive_name(platform: str) -> str:
    """The name of the archive of a platform."""
    return f"{NAME}-{VERSION}-{platform}.tar.gz"


def archive(platform: str, wheel: bytes, seconds: int) -> bytes:
    """The archive, with this wheel of ours in it. `seconds` since 1970 is the time of each file.

    Raises:
        NotBuilt: nobody has fetched the packages; the message says what to do.
    """
    held = {
        NAME: launcher(platform, minors()).encode(),
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
        **{f"{PACKAGES}/{name}": content for name, content in _fetched(packages(platform))},
        **{f"{PACKAGES}/{name}": content for name, content in _ours(wheel)},
    }
    return tarball(sorted(held.items()), seconds, executables=[NAME], level=6)


def _fetched(folder: Path) -> Iterator[tuple[str, bytes]]:
    for file in folder.rglob("*"):
        if file.is_file():
            yield file.relative_to(folder).as_posix(), file.read_bytes()


def _ours(wheel: bytes) -> Iterator[tuple[str, bytes]]:
    """The modules of the wheel, its metadata, and the examples, which an installer would put below sys.prefix."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as files:
        for name in files.namelist():
            _, data, example = name.partition(".data/data/share/kubevirt-coschedule/examples/")
            yield f"{_EXAMPLES}/{example}" if data else name, files.read(name)
