"""What a run of pytest says of tests that it did not run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from support.drivers.serving import ROOT

SMALL: Final = "tests/unit/test_sizes.py"
LINE: Final = "Left out: tests of built programs and models of clusters (make e2e), and proofs by number (make soak)"


@pytest.mark.parametrize(
    ("words", "lines"),
    [((f"--override-ini=testpaths={SMALL}",), 1), ((SMALL,), 0)],
    ids=["no path", "a path"],
)
def test_a_run_without_paths_says_what_it_left_out(words: tuple[str, ...], lines: int) -> None:
    """In one line. Who names a path knows what runs."""
    run = (sys.executable, "-m", "pytest", "-q", "--collect-only", *words)
    told = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - pytest itself
    assert told.stdout.splitlines().count(LINE) == lines


def test_the_last_line_says_how_many_tests_had_no_browser(tmp_path: Path) -> None:
    """And what to install."""
    file = tmp_path / "test_page.py"
    file.write_text("from support.drivers.browser import program\n\n\ndef test_page():\n    program()\n")
    run = (sys.executable, "-m", "pytest", "-q", "-c", str(ROOT / "pyproject.toml"), "-p", "conftest", str(file))
    environment = {"PATH": "", "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    told = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - pytest itself
    line = "1 tests of the page did not run: no Chromium here: apt-get install chromium, or name one in $CHROMIUM"
    assert told.stdout.splitlines()[-1] == line, told.stdout + told.stderr
