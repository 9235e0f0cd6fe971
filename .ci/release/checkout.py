"""The checkout that a release is made of: its place, its version, and the time of its commit."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from webhook import __version__

ROOT: Final = Path(__file__).parents[2]
NAME: Final = "kubevirt-coschedule"
VERSION: Final = __version__
EPOCH: Final = "SOURCE_DATE_EPOCH"  # reproducible-builds.org's name


class ReleaseError(Exception):
    """What stops the release; the message says what to do."""


def commit_seconds(root: Path = ROOT) -> int:
    """The time that every file of the release has, in seconds since 1970: SOURCE_DATE_EPOCH, else the commit's.

    Raises:
        ReleaseError: there is neither.
    """
    if given := os.environ.get(EPOCH):
        if not given.isdecimal():
            raise ReleaseError(f"{EPOCH} is {given!r}, expected seconds since 1970: correct or unset it")
        return int(given)
    asked = _git(root, "log", "-1", "--format=%ct")
    if asked is None:
        raise ReleaseError(f"git tells no time of a commit: make the release in a clone, or set {EPOCH}")
    return int(asked)


def uncommitted(root: Path = ROOT) -> list[str]:
    """The files that differ from the commit, as `git status` lists them. None where git does not answer."""
    return (_git(root, "status", "--porcelain") or "").splitlines()


def _git(root: Path, *words: str) -> str | None:
    """What git prints; None where there is no git or no clone."""
    try:
        done = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=False)  # noqa: S603, S607 - git
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def output_of(*command: str | Path, **environment: str) -> str:
    """What a program prints, run at the top of the checkout.

    Raises:
        ReleaseError: it failed; with its own words.
    """
    done = subprocess.run(  # noqa: S603 - our own words
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        name = " ".join([Path(command[0]).name, *map(str, command[1:3])])
        raise ReleaseError(f"`{name}` exited with {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
