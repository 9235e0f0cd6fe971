"""One cluster with real nodes for all tests here. They are skipped unless `make node-test` runs them."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from support.control_plane.control_plane import ControlPlane
from support.control_plane.kubectl import Kubectl
from support.node import namespaces
from support.node.cluster import NodeCluster
from support.node.network import DIRECTORY, IMAGE

_running: list[ControlPlane] = []


@pytest.fixture(scope="session")
def nodes() -> Iterator[NodeCluster]:
    """A control plane with two nodes, Ready, that have the project's image; nothing of ours is installed."""
    if DIRECTORY not in os.environ:
        pytest.skip("needs namespaces of its own: run `make node-test`")
    directory = Path(os.environ[DIRECTORY])
    namespaces.prepare(directory)
    files = directory / "cluster"
    files.mkdir()
    with NodeCluster(files, [directory / IMAGE]) as cluster:
        _running.append(cluster)
        yield cluster
        _running.remove(cluster)


@pytest.fixture(scope="session")
def kubectl(nodes: NodeCluster) -> Kubectl:
    """Kubectl of the admin."""
    return Kubectl(nodes, nodes.directory)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,  # noqa: ARG001 - the hook's signature
    call: pytest.CallInfo[None],  # noqa: ARG001 - as item
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of each log with a failure."""
    report = yield
    if report.failed:
        for cluster in _running:
            report.sections += [(f"log of {each.name}", each.tail()) for each in cluster.programs if each.log.exists()]
    return report
