"""`make image`: which builder it takes, and what it tells the builder. The builders are scripts of the test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from webhook import __version__

ROOT: Final = Path(__file__).parents[2]
NAME: Final = f"kubevirt-coschedule:{__version__}"
EPOCH: Final = "1700000000"


class Builders:
    """A path with builders that write down how they are called. `info` fails for those without a daemon."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.called = directory / "called"

    def put(self, name: str, *, info: int = 0, code: int = 0) -> None:
        """Install a builder."""
        program = self.directory / name
        program.write_text(
            f'#!/bin/sh\n[ "$1" = info ] && exit {info}\n'
            f'echo "{name} $*, $SOURCE_DATE_EPOCH" >{self.called}\nexit {code}\n'
        )
        program.chmod(0o755)

    def run(self, *words: str, epoch: str = EPOCH) -> subprocess.CompletedProcess[str]:
        """Run `.ci/image` with this path."""
        environment = {"PATH": str(self.directory)} | ({"SOURCE_DATE_EPOCH": epoch} if epoch else {})
        command = [sys.executable, str(ROOT / ".ci" / "image"), *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - ours


@pytest.fixture
def builders(tmp_path: Path) -> Builders:
    """None yet."""
    return Builders(tmp_path)


TOLD: Final = {
    "docker": ("docker build", EPOCH),
    "podman": (f"podman build --layers --timestamp {EPOCH}", ""),
    "buildah": (f"buildah build --layers --timestamp {EPOCH}", ""),
}


@pytest.mark.parametrize(("builder", "told"), TOLD.items(), ids=TOLD)
def test_each_builder_gets_the_time_and_the_name(builder: str, told: tuple[str, str], builders: Builders) -> None:
    """The time in one form only: some refuse both. The last line names the image."""
    builders.put(builder)
    done = builders.run()
    assert (done.returncode, done.stdout) == (0, f"{NAME}, built by {builder}\n")
    command, epoch = told
    assert builders.called.read_text() == f"{command} --tag {NAME} {ROOT}, {epoch}\n"


def test_a_builder_that_does_not_work_is_passed_over(builders: Builders) -> None:
    """The client of docker is often there without a daemon."""
    builders.put("docker", info=1)
    builders.put("buildah")
    assert builders.run().stdout.endswith("built by buildah\n")


def test_what_the_user_asks_for_is_passed_on(builders: Builders) -> None:
    """Builder, base, name, and no cache."""
    builders.put("podman")
    builders.put("buildah")
    builders.run("--builder", "buildah", "--base", "mirror/python:3.13", "--name", "here:1", "--no-cache")
    assert builders.called.read_text() == (
        f"buildah build --layers --timestamp {EPOCH} --build-arg PYTHON_IMAGE=mirror/python:3.13 --no-cache "
        f"--tag here:1 {ROOT}, \n"
    )


def test_the_image_receives_where_it_comes_from(builders: Builders) -> None:
    """The commit, and the digest of a base that is named by it."""
    builders.put("buildah")
    git = builders.directory / "git"
    git.write_text('#!/bin/sh\n[ "$3" = describe ] && echo 0123abc-dirty\n')
    git.chmod(0o755)
    builders.run("--base", "python@sha256:45")
    told = "PYTHON_IMAGE=python@sha256:45 --build-arg REVISION=0123abc-dirty --build-arg BASE_DIGEST=sha256:45"
    assert f" --build-arg {told} --tag " in builders.called.read_text()


def test_a_build_that_fails_fails_the_command(builders: Builders) -> None:
    """With the builder's exit code, and without the name of an image."""
    builders.put("buildah", code=125)
    done = builders.run()
    assert (done.returncode, done.stdout) == (125, "")


REFUSED: Final = {
    "no builder": ((), EPOCH, "none of docker, podman, buildah is on the path and works; install one of them"),
    "another builder": (("--builder", "kaniko"), EPOCH, "got BUILDER=kaniko; expected one of docker, podman, buildah"),
    "no builder of the name": (("--builder", "podman"), EPOCH, "podman is not on the path"),
    "no git and no time": (("--builder", "docker"), "", "got '' as the time of the commit; expected seconds since"),
}


@pytest.mark.parametrize(("words", "epoch", "problem"), REFUSED.values(), ids=REFUSED)
def test_why_there_is_no_image_is_one_sentence(
    words: tuple[str, ...], epoch: str, problem: str, builders: Builders
) -> None:
    """On standard error, with exit code 2."""
    builders.put("docker", info=1)
    done = builders.run(*words, epoch=epoch)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert done.stderr.startswith(f"error: {problem}")
