"""The control plane under the tests ends with them."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Final

from controlplane.build import programs

SECONDS: Final = 30.0


def test_nothing_outlives_the_tests(tmp_path: Path) -> None:
    """A test run that is killed takes every program of its control plane with it."""
    starting = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "from pathlib import Path; from controlplane.build import programs\n"
        "from support.control_plane.control_plane import ControlPlane\n"
        f"plane = ControlPlane(Path({str(tmp_path)!r}), scheduler='kube-scheduler' in programs()).__enter__()\n"
        "print(*(program.pid for program in plane.programs), flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(  # noqa: S603 - our own words
        [sys.executable, "-c", starting], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        ends = {pid: os.pidfd_open(int(pid)) for pid in run.stdout.readline().split()}
        assert len(ends) == len(programs())
        assert select.select(ends.values(), [], [], 0)[0] == []
        run.kill()
    for pid, end in ends.items():
        assert select.select([end], [], [], SECONDS)[0], f"process {pid} is still there"
        os.close(end)
