"""Each released version keeps what it shipped in tests/releases, so that upgrades from it can be tested."""

from __future__ import annotations

import io
import re
import tarfile
from pathlib import Path
from typing import Final

import kept
import pytest
from checkout import NAME, ROOT, ReleaseError
from support.control_plane import releases

_VERSION: Final = re.compile(r"^## \[([0-9.]+)\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$", re.MULTILINE)


def test_each_version_of_the_changelog_has_its_files() -> None:
    """Otherwise `make release KEEP=1`, on the commit of that version."""
    released = _VERSION.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert released
    assert releases.versions() == released[::-1]
    for version in released:
        names = {path.name for path in (releases.RELEASES / version).iterdir()}
        assert names == {"install.yaml", "install-cert-manager.yaml", f"{NAME}-{version}.tgz"}


def packed(content: bytes, seconds: int = 0, level: int = 9) -> bytes:
    """A chart of one file, as helm packs it at this time."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz", compresslevel=level) as new:
        entry = tarfile.TarInfo("values.yaml")
        entry.size, entry.mtime = len(content), seconds
        new.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


def test_what_was_kept_is_what_the_checkout_makes(tmp_path: Path) -> None:
    """However and whenever it was packed. What else was in the folder is gone."""
    folder = tmp_path / "1.2.3"
    folder.mkdir()
    (folder / "left.yaml").touch()
    kept.keep({"install.yaml": b"objects", "chart.tgz": packed(b"chart", 1, 9)}, folder)
    kept.check({"install.yaml": b"objects", "chart.tgz": packed(b"chart", 2, 1)}, folder)


@pytest.mark.parametrize(
    ("made", "names"),
    [
        ({"install.yaml": b"other", "chart.tgz": packed(b"chart")}, "install.yaml"),
        ({"install.yaml": b"objects", "chart.tgz": packed(b"other")}, "chart.tgz"),
        ({"install.yaml": b"objects"}, "chart.tgz"),
        ({"install.yaml": b"objects", "chart.tgz": packed(b"chart"), "more.yaml": b""}, "more.yaml"),
    ],
)
def test_a_version_is_released_once(made: dict[str, bytes], names: str, tmp_path: Path) -> None:
    """A checkout that differs from what was kept needs the next version."""
    kept.keep({"install.yaml": b"objects", "chart.tgz": packed(b"chart")}, tmp_path / "1.2.3")
    with pytest.raises(ReleaseError, match=rf"^tests/releases/1\.2\.3 differs from this checkout: {names}\. "):
        kept.check(made, tmp_path / "1.2.3")


def test_a_version_that_keeps_nothing_is_not_released(tmp_path: Path) -> None:
    """The error says what to run."""
    with pytest.raises(ReleaseError, match="run `make release KEEP=1`"):
        kept.check({"install.yaml": b"objects"}, tmp_path / "1.2.3")
