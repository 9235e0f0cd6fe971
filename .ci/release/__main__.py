"""Writes the files of a release: `make release`, or python .ci/release with tests/ on PYTHONPATH.

Wheel, sdist, the SBOM of the packages that they need, the installs as one file each, the packed chart, the notes of the
version and the checksums of all.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from checkout import EPOCH, ROOT, VERSION, ReleaseError, commit_seconds, output_of, uncommitted
from controlplane.build import NotBuilt
from image import Image, image, remarks
from install_files import ARCHIVE, folder, install_files
from packed_chart import packed_chart
from release_notes import release_notes

SUMS: Final = "SHA256SUMS"
_SBOM: Final = ("cyclonedx_py", "requirements", "requirements.lock", "--pyproject=pyproject.toml", "--spec-version=1.6")


def distributions(seconds: int) -> dict[str, bytes]:
    """The wheel, the sdist and the SBOM by name; the backend that pyproject.toml names builds without a download."""
    epoch = {EPOCH: str(seconds)}
    with tempfile.TemporaryDirectory() as directory:
        build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", directory)
        output_of(*build, **epoch)
        made = {path.name: path.read_bytes() for path in sorted(Path(directory).iterdir())}
    (wheel,) = (name for name in made if name.endswith(".whl"))
    sbom = output_of(sys.executable, "-m", *_SBOM, "--output-reproducible", **epoch)
    return {**made, f"{wheel}.cdx.json": sbom.encode()}


def files(named: Image, notes: str, seconds: int) -> dict[str, bytes]:
    """Every file of the release by name; the checksums are as `sha256sum` writes them."""
    made = distributions(seconds)
    made.update(install_files(named))
    made[ARCHIVE] = folder(named, seconds)
    name, chart = packed_chart(named)
    made |= {name: chart}
    sums = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(made.items()))
    # The notes are the text of the release's page, and no file of it: a user who checks the sums does not have them.
    return {**made, "RELEASE_NOTES.md": notes.encode(), SUMS: "".join(sums).encode()}


def write(made: Mapping[str, bytes], directory: Path) -> None:
    """Replace the release in a directory: the files that its checksums name go first, others stay."""
    directory.mkdir(parents=True, exist_ok=True)
    if (sums := directory / SUMS).is_file():
        for line in sums.read_text(encoding="utf-8").splitlines():
            (directory / Path(line.split(maxsplit=1)[1]).name).unlink(missing_ok=True)
    for name, content in made.items():
        (directory / name).write_bytes(content)


def main(words: Sequence[str]) -> int:
    """Write the release. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="make release", description="Write the files of a release.")
    parser.add_argument("--image", default="", help="REGISTRY/NAME of the image, without a tag")
    parser.add_argument("--digest", default="", help="sha256:... of the pushed image; empty: its tag")
    parser.add_argument("--unreleased", default="", help="not empty: [Unreleased] stands in for a missing section")
    parser.add_argument("--to", type=Path, default=ROOT / "dist", help="the directory that is written")
    given = parser.parse_args(words)
    try:
        named, seconds = image(given.image, given.digest), commit_seconds()
        changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        notes, section = release_notes(changelog, VERSION, unreleased=bool(given.unreleased))
        made = files(named, notes, seconds)
    except (ReleaseError, NotBuilt) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write(made, given.to)
    for remark in remarks(named):
        print(remark)
    if section != VERSION:
        print(f"CHANGELOG.md has no section [{VERSION}]: the notes are those of [{section}].")
    if changed := uncommitted():
        print(f"{len(changed)} files of the checkout differ from the commit: nobody else can make the same release.")
    print(f"{given.to}: {len(made)} files of version {VERSION}. Check them: sha256sum -c {SUMS}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
