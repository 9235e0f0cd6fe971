"""`make image`: builds the Dockerfile with docker, podman or buildah.

It needs only the standard library. With podman and buildah each file of the image has the time of the commit, or of
SOURCE_DATE_EPOCH: two builds of one commit give the same bytes. With docker only the image itself has this time. Docker
with the containerd image store refuses to change the times of files in an image that it loads (buildx, issue 2733).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
EPOCH: Final = "SOURCE_DATE_EPOCH"  # reproducible-builds.org's name
BUILDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "docker": ("build",),  # takes the time from EPOCH
    "podman": ("build", "--layers", "--timestamp", "{seconds}"),
    "buildah": ("build", "--layers", "--timestamp", "{seconds}"),
}
"""The arguments of each builder, in the order in which the builders are tried."""


class NotBuiltError(Exception):
    """Why there is no image, in one sentence for the user."""


def main(arguments: Sequence[str]) -> int:
    """Build, and print the name of the image. Returns 2 if there is nothing to build with, else the builder's code."""
    parser = argparse.ArgumentParser(prog="make image", description=__doc__, allow_abbrev=False)
    parser.add_argument("--name", help="name and tag of the image")
    parser.add_argument("--base", help="image with Python instead of the Dockerfile's")
    parser.add_argument("--builder", help=f"one of {', '.join(BUILDERS)}; by default the first that works")
    parser.add_argument("--no-cache", action="store_true", help="run every step again")
    options = parser.parse_args(arguments)
    try:
        builder, seconds = options.builder or first_that_works(), commit_seconds()
        name = options.name or f"kubevirt-coschedule:{version()}"
        command = command_for(builder, seconds, name, base=options.base, cached=not options.no_cache)
    except NotBuiltError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    # Newer versions of buildah refuse a --timestamp beside the variable (containers/buildah, pull request 6208).
    environment = {**os.environ, EPOCH: str(seconds)}
    if builder != "docker":
        del environment[EPOCH]
    done = subprocess.run(command, check=False, env=environment)  # noqa: S603 - our own words
    if done.returncode == 0:
        sys.stdout.write(f"{name}, built by {builder}\n")
    return done.returncode


def command_for(builder: str, seconds: int, name: str, *, base: str | None, cached: bool) -> list[str]:
    """What is run.

    Raises:
        NotBuiltError: this builder is not known, or not installed.
    """
    if builder not in BUILDERS:
        raise NotBuiltError(f"got BUILDER={builder}; expected one of {', '.join(BUILDERS)}")
    if shutil.which(builder) is None:
        raise NotBuiltError(f"{builder} is not on the path; install it, or choose another BUILDER")
    words = [word.format(seconds=seconds) for word in BUILDERS[builder]]
    told = {"PYTHON_IMAGE": base, "REVISION": revision(), "BASE_DIGEST": (base or "").partition("@")[2]}
    words += [word for name, value in told.items() if value for word in ("--build-arg", f"{name}={value}")]
    words += [] if cached else ["--no-cache"]
    return [builder, *words, "--tag", name, str(ROOT)]


def first_that_works() -> str:
    """The first builder that is on the path and answers: the client of docker can be there without its daemon.

    Raises:
        NotBuiltError: there is none.
    """
    for builder in filter(shutil.which, BUILDERS):
        asked = subprocess.run([builder, "info"], capture_output=True, check=False)  # noqa: S603 - one of three words
        if asked.returncode == 0:
            return builder
    raise NotBuiltError(f"none of {', '.join(BUILDERS)} is on the path and works; install one of them")


def commit_seconds() -> int:
    """The time of every file of the image, in seconds since 1970.

    Raises:
        NotBuiltError: neither the environment nor git tells the time.
    """
    told = os.environ.get(EPOCH) or _git("log", "-1", "--format=%ct").strip()
    if not told.isdecimal():
        raise NotBuiltError(f"got {told!r} as the time of the commit; expected seconds since 1970: set {EPOCH}")
    return int(told)


def revision() -> str:
    """The commit, with `-dirty` after it if the checkout differs from it; empty without git."""
    return _git("describe", "--always", "--abbrev=40", "--dirty", "--exclude=*").strip()


def version() -> str:
    """The version of the program, read and not imported: no package of ours needs to be installed."""
    (found,) = re.findall(
        r'^__version__ = "(.*)"$', (ROOT / "webhook" / "__init__.py").read_text("utf-8"), re.MULTILINE
    )
    return str(found)


def _git(*words: str) -> str:
    try:
        command = ["git", "-C", str(ROOT), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603 - git
    except FileNotFoundError:
        return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
