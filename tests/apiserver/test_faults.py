"""A real API server is restarted, also with a past that it has forgotten, while the cluster changes.

What must hold throughout: no pod is pinned hard by a fact that had changed longer ago than the caches promise, and
none at all once they are back. Faults of connections are tested against a scripted server.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Final

import pytest
from support.control_plane.control_plane import ControlPlane
from support.control_plane.installed import NAME, Installed
from support.scenarios.admitting import Admission, Admitting, until, until_watched
from support.scenarios.proxied_serve import CLAIM, NODES, ProxiedServe, proxied_serve

from webhook.kube.informer.connection import STALE_AFTER_SECONDS

_SLACK_SECONDS: Final = 5.0  # from when a fact has changed until the API server has told it, on a busy machine


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The webhook on a control plane of its own, without a scheduler.

    When the API server is killed, kube-scheduler finds pods on other nodes than its cache has, and exits.
    """
    directory = tmp_path_factory.mktemp("faults")
    with ControlPlane(directory, scheduler=False) as plane:
        yield Installed(plane, directory)


@pytest.fixture(scope="module")
def running(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedServe]:
    """The program, its calls made."""
    account = installed.plane.service_account(NAME, NAME)
    kubeconfig = installed.plane.kubeconfig(tmp_path_factory.mktemp("program") / "kubeconfig", account)
    installed.enable()
    with proxied_serve(installed, kubeconfig) as running:
        installed.until_called()
        yield running
    installed.disable()


@pytest.fixture
def well(running: ProxiedServe) -> Iterator[ProxiedServe]:
    """The program, knowing the cluster as it is, with a good way to it; that is good again afterwards."""
    running.share_manager.move(NODES[0])
    running.until_healthy()
    until(lambda: running.asked().required == [running.share_manager.node], "a pin")
    yield running
    running.way.thaw()


def assert_none_too_old(program: ProxiedServe, admissions: list[Admission]) -> None:
    """No pin rests on what had changed longer ago than the promise."""
    oldest = max(admissions, key=program.share_manager.stale_seconds)
    assert program.share_manager.stale_seconds(oldest) <= STALE_AFTER_SECONDS + _SLACK_SECONDS, oldest


def test_an_api_server_that_restarts(well: ProxiedServe) -> None:
    """What changes before and after is known when the watches are back, and until then it is read."""
    with Admitting(well.plane.api, CLAIM) as admitting:
        well.share_manager.move("node-b")
        well.plane.stop_api_server(signal.SIGTERM)
        well.until_noticed()
        well.plane.start_api_server()
        well.share_manager.move("node-c")
        until_watched(well.serving)
    well.assert_well()
    assert_none_too_old(well, admitting.admissions)


def test_an_api_server_that_dies_and_has_forgotten(well: ProxiedServe) -> None:
    """It is killed while we are away, and its past is compacted: the watches get a 410, and lists tell the truth."""
    logged = len(well.serving.lines())
    with Admitting(well.plane.api, CLAIM) as admitting:
        well.way.freeze()
        well.way.cut()
        well.share_manager.move("node-b")
        well.plane.stop_api_server(signal.SIGKILL)
        well.plane.compact()
        well.plane.start_api_server()
        well.share_manager.move("node-c")
        well.until_noticed()
        well.way.thaw()
        until_watched(well.serving)
    well.assert_well()
    assert_none_too_old(well, admitting.admissions)
    problems = [line["problem"] for line in well.serving.lines()[logged:] if "problem" in line]
    assert any(problem.startswith("expired: 410 ") for problem in problems), problems
