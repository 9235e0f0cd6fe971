"""The bench runs and prints its table; what it measures is for people, and gates nothing here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="CPU affinity and /proc are Linux's")
def test_the_bench_runs() -> None:
    """In its quick mode every figure is there, and is a number."""
    command = [sys.executable, str(Path(__file__).with_name("run.py")), "--quick"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603 - our own program
    assert ended.returncode == 0, ended.stderr
    rows = dict(line.rsplit(maxsplit=1) for line in ended.stdout.splitlines() if line[-1:].isdigit())
    for name in (
        "server CPU per review, least, us",
        "latency one at a time, p99, us",
        "all of core, us",
        "import webhook.app, ms",
    ):
        assert any(row.startswith(name) and float(value) > 0 for row, value in rows.items()), ended.stdout
    assert "ratio of reviews/s: median" in ended.stdout
