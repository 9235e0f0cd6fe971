"""What a run of pytest says of tests that it did not run."""

from __future__ import annotations

import subprocess
import sys
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
