"""The control plane under the tests is what it says, and the program may do on it what its RBAC says and no more."""

from __future__ import annotations

import http.client
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from controlplane.build import programs
from support.control_plane.control_plane import ControlPlane
from support.objects import builders

SECONDS: Final = 30.0

# All that is allowed: (namespace, group, resource); the namespace None stands for the whole cluster.


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of one's own, to be stopped and compacted at will."""
    with ControlPlane(tmp_path_factory.mktemp("own"), scheduler=False) as own:
        yield own


def test_a_compacted_revision_is_gone(plane: ControlPlane) -> None:
    """An API server whose history starts after a compaction answers 410 to a watch from before the compaction."""
    before = plane.api.create(_config_map("before"))["metadata"]["resourceVersion"]
    plane.api.create(_config_map("after"))
    assert plane.compact() > int(before)
    plane.restart_api_server()
    with closing(plane.api.watch("v1", "ConfigMap", "default", seconds=5, resourceVersion=before)) as events:
        event = next(events)
    assert (event["type"], event["object"]["code"]) == ("ERROR", http.client.GONE)


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


def _config_map(name: str) -> builders.Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
