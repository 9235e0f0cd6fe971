"""One control plane for all tests that ask for it, with the program installed from its manifests.

Where nobody has built its programs, the tests that ask for it are skipped; in CI they fail (`tests/conftest.py`). A
test that fails shows the end of each program's log.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from support.control_plane import audit
from support.control_plane.certs_process import CertsInstall
from support.control_plane.cluster_state import ClusterState
from support.control_plane.control_plane import NEWEST, OLDEST, ControlPlane
from support.control_plane.installed import Installed

_running: list[ControlPlane] = []


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The newest Kubernetes that we build: etcd, kube-apiserver, kube-scheduler."""
    yield from _control_plane(tmp_path_factory, NEWEST)


@pytest.fixture(scope="module")
def old_control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The oldest Kubernetes that we build."""
    yield from _control_plane(tmp_path_factory, OLDEST)


def _control_plane(tmp_path_factory: pytest.TempPathFactory, version: str) -> Iterator[ControlPlane]:
    directory = tmp_path_factory.mktemp(f"control-plane-{version}")
    with ControlPlane(directory, version=version, api_flags=audit.flags(directory)) as plane:
        _running.append(plane)
        yield plane
        _running.remove(plane)


@pytest.fixture(scope="session")
def installed(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The program's manifests on the control plane; the webhook is off, and no server runs."""
    return Installed(control_plane, tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def installed_on_old(old_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """As `installed`, on the oldest Kubernetes."""
    return Installed(old_control_plane, tmp_path_factory.mktemp("installed-on-old"))


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Iterator[ClusterState]:
    """A cluster to describe, on the control plane; empty again afterwards."""
    with ClusterState(control_plane.api) as state:
        yield state


@pytest.fixture
def kept(control_plane: ControlPlane, installed: Installed, tmp_path: Path) -> Iterator[CertsInstall]:
    """An install whose certificate nobody keeps yet."""
    with CertsInstall(control_plane, tmp_path, installed.port) as install:
        yield install


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,  # noqa: ARG001 - the hook's signature
    call: pytest.CallInfo[None],  # noqa: ARG001 - as item
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of each log with a failure."""
    report = yield
    if report.failed:
        for plane in _running:
            report.sections += [(f"log of {each.name}", each.tail()) for each in plane.programs]
    return report
