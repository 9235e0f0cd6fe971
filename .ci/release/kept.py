"""What a release ships that a later upgrade starts from: tests/releases/VERSION, a part of the release's commit.

The image stands there by its tag: nobody knows the digest of an image before its commit. Nothing else differs from
what the release publishes.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from checkout import ROOT, VERSION, ReleaseError
from image import image
from install_files import install_files
from packed_chart import packed_chart

RELEASES: Final = ROOT / "tests" / "releases"
_GZIP: Final = b"\x1f\x8b"


def installs() -> dict[str, bytes]:
    """The files for `kubectl apply -f` and the packed chart of this checkout by name, with the image by its tag.

    Raises:
        NotBuilt: there is no kubectl or no helm; the message says what to do.
        ReleaseError: one of them refuses.
    """
    tagged = image("", "")
    name, chart = packed_chart(tagged)
    return {**dict(install_files(tagged)), name: chart}


def keep(made: Mapping[str, bytes], folder: Path = RELEASES / VERSION) -> None:
    """Write the files into the folder, and remove what else is there."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name not in made:
            path.unlink()
    for name, content in made.items():
        (folder / name).write_bytes(content)


def check(made: Mapping[str, bytes], folder: Path = RELEASES / VERSION) -> None:
    """Compare the folder with what this checkout makes.

    Raises:
        ReleaseError: they differ; with the names of the files.
    """
    found = {path.name: path.read_bytes() for path in folder.glob("*")}
    names = sorted(found.keys() | made.keys())
    if differ := [name for name in names if _content(found.get(name)) != _content(made.get(name))]:
        raise ReleaseError(
            f"tests/releases/{folder.name} differs from this checkout: {', '.join(differ)}. If {folder.name} was "
            "released already, set the next version. Otherwise run `make release KEEP=1`, and commit what it writes"
        )


def _content(file: bytes | None) -> bytes | dict[str, bytes] | None:
    """The file; of a packed chart the files in it by name, because helm writes the time of its call."""
    if file is None or not file.startswith(_GZIP):
        return file
    with tarfile.open(fileobj=io.BytesIO(file)) as packed:
        members = [(each.name, packed.extractfile(each)) for each in packed]
        return {name: content.read() for name, content in members if content}
