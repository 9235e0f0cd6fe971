"""Runs `make release`'s command, and programs of its files, as a user on this machine would."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from support.drivers.serving import ROOT
from support.waits import MAX_WAIT_SECONDS

SECONDS: Final = 1_700_000_000


def run(*command: str | Path, directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program without this process' Python path."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(  # noqa: S603 - our own words
        command,
        cwd=directory,
        env={**kept, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=MAX_WAIT_SECONDS,
    )


def release(to: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command of `make release`."""
    environment = {"PYTHONPATH": str(ROOT / "tests"), "SOURCE_DATE_EPOCH": str(SECONDS)}
    command = (sys.executable, ROOT / ".ci/release", "--unreleased=1", "--to", to)
    return run(*command, *words, directory=to.parent, **environment)


def manifests() -> dict[str, str]:
    """What `make manifests` writes: the name of each file of manifests/, and its text."""
    with tempfile.TemporaryDirectory() as directory:
        command = (sys.executable, ROOT / ".ci/release/install_files.py", directory)
        done = run(*command, directory=ROOT, PYTHONPATH=f"{ROOT / 'tests'}:{ROOT}")
        assert done.returncode == 0, done.stderr
        return {path.name: path.read_text(encoding="utf-8") for path in Path(directory).iterdir()}
