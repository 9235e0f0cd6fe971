"""The packages that the command line needs on a platform, as its archive holds them: fetched once, into the cache.

Run this module to fetch them (`make control-plane` and `make release` do): nothing else here uses a package index.
requirements.lock names each package with its hashes. The compiled parts for each minor version of Python have names of
their own, so one folder holds all of them.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from checkout import ROOT, ReleaseError, output_of
from controlplane import build
from controlplane.build import NotBuilt
from sbom import locked


class Platform(NamedTuple):
    """The names of a platform: for uv, and as the tags of wheels, the preferred one first."""

    uv: str
    tags: Sequence[str]


def _linux(machine: str) -> Platform:
    """With glibc 2.28 or newer, which is that of RHEL 8 and Debian 10."""
    libc = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
    return Platform(f"{machine}-manylinux_2_28", [f"{each}_{machine}" for each in libc])


PLATFORMS: Final[Mapping[str, Platform]] = {
    "linux-amd64": _linux("x86_64"),
    "linux-arm64": _linux("aarch64"),
    "darwin-arm64": Platform("aarch64-apple-darwin", ["macosx_11_0_arm64"]),
}
"""By Go's names, as krew asks for them. A Mac with an Intel processor has none: cryptography has no wheel for it."""

# What tells how the package came here, by whom or for which Python. No import reads these files.
_LEFT_OUT: Final = ("RECORD", "WHEEL", "INSTALLER", "REQUESTED", "uv_cache.json", ".lock")


def minors() -> list[str]:
    """The versions of Python that the project is tested with, such as 3.11, by pyproject.toml."""
    return re.findall(r'"Programming Language :: Python :: (3\.\d+)"', _pyproject())


def known(platforms: Sequence[str]) -> Sequence[str]:
    """These platforms.

    Raises:
        ReleaseError: one of them is not in PLATFORMS.
    """
    if unknown := sorted(set(platforms) - PLATFORMS.keys()):
        raise ReleaseError(f"PLATFORMS names {', '.join(unknown)}; expected some of {', '.join(PLATFORMS)}")
    return platforms


def optional() -> set[str]:
    """The packages of extras. The command line does without."""
    extras = tomllib.loads(_pyproject())["project"]["optional-dependencies"].values()
    return {re.split(r"[^A-Za-z0-9._-]", each, maxsplit=1)[0] for extra in extras for each in extra}


def packages(platform: str) -> Path:
    """The folder of a platform.

    Raises:
        NotBuilt: nobody has fetched it.
    """
    if not (folder := _folder(platform)).is_dir():
        raise NotBuilt(f"the packages for {platform} are not there: run `make control-plane`")
    return folder


def fetch(platform: str) -> None:
    """Fetch the packages of a platform, if they are not there.

    Raises:
        ReleaseError: the package index does not answer, or has not what the lock names.
    """
    if (folder := _folder(platform)).is_dir():
        return
    build.CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".packages-", dir=build.CACHE) as temporary:
        requirements, made = Path(temporary, "requirements"), Path(temporary, "made")
        requirements.write_text(_requirements(), encoding="utf-8")
        for minor in minors():
            output_of(*_install(platform, minor, requirements, Path(temporary, minor)))
            _merge(Path(temporary, minor), made)
        with suppress(OSError):  # another run was quicker
            made.rename(folder)


def _pyproject() -> str:
    return (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def _folder(platform: str) -> Path:
    made_by = (_requirements(), PLATFORMS[platform], minors(), _LEFT_OUT)
    return build.CACHE / f"packages-{platform}-{hashlib.sha256(repr(made_by).encode()).hexdigest()[:16]}"


def _requirements() -> str:
    """The lock without extras, and without markers: pip compares markers with the Python that runs pip."""
    lock = locked((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    needed = [package for package in lock if package.name not in optional()]
    hashes = {each.name: " ".join(f"--hash=sha256:{one}" for one in each.hashes) for each in needed}
    return "".join(f"{each.name}=={each.version} {hashes[each.name]}\n" for each in needed)


def _install(platform: str, minor: str, requirements: Path, to: Path) -> Sequence[str | Path]:
    """The command of uv if that is installed, and of pip otherwise, as in the Makefile."""
    names = PLATFORMS[platform]
    words = ("--no-deps", "--only-binary=:all:", "--require-hashes", "-r", requirements, "--target", to)
    if uv := shutil.which("uv"):
        return (uv, "pip", "install", "-q", f"--python-platform={names.uv}", f"--python-version={minor}", *words)
    pip = (sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile")
    tags = [f"--platform={tag}" for tag in names.tags]
    return (*pip, *tags, "--implementation=cp", f"--python-version={minor}", *words)


def _merge(installed: Path, made: Path) -> None:
    """Copy what is imported. A file that two versions of Python need in different forms has no place.

    Raises:
        ReleaseError: there is such a file.
    """
    for file in sorted(path for path in installed.rglob("*") if path.is_file()):
        name = file.relative_to(installed)
        if name.name in _LEFT_OUT or name.parts[0] == "bin":
            continue
        there = made / name
        if there.is_file() and there.read_bytes() != file.read_bytes():
            raise ReleaseError(f"{name} is not the same for {', '.join(minors())}: one folder can't hold both")
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, there)


def main(words: Sequence[str]) -> int:
    """Fetch the packages of these platforms, or of all. Returns the exit code."""
    try:
        for platform in known(words) or PLATFORMS:
            fetch(platform)
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
