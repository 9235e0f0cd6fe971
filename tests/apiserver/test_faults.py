"""The way to a real API server is cut, silenced and refused, and the server restarted, while the cluster changes.

What must hold throughout: no pod is pinned hard by a fact that had changed longer ago than the caches promise, and
none at all once they are back. A connection that is there and silent (half open) is not among these: it is taken for a
quiet one for 90 s, and tested against a scripted server.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Final

import pytest
from support.control_plane.control_plane import ControlPlane
from support.control_plane.installed import NAME, Installed
from support.scenarios.admitting import (
    FAIL_OPEN,
    WEBHOOK,
    Admission,
    Admitting,
    Counted,
    admitted,
    until,
    until_watched,
)
from support.scenarios.moving_share_manager import CLAIM
from support.scenarios.proxied_serve import ProxiedServe, allowed, proxied_serve

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
    running.share_manager.settle()
    running.until_healthy()
    until(lambda: running.asked().required == [running.share_manager.node], "a pin")
    yield running
    running.way.thaw()
    running.way.accept()


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


def test_connections_that_are_cut(well: ProxiedServe) -> None:
    """Right before a change, and right after one: it is known when the watches are back."""
    with Admitting(well.plane.api, CLAIM) as admitting:
        well.way.cut()
        well.share_manager.move("node-b")
        well.until_noticed()
        until_watched(well.serving)
        well.share_manager.move("node-c")
        well.way.cut()
        well.until_noticed()
        until_watched(well.serving)
    well.assert_well()
    assert_none_too_old(well, admitting.admissions)


def test_an_api_server_that_refuses_us_for_a_moment(well: ProxiedServe) -> None:
    """What the caches hold is still good for pins; what they do not hold can't be read, and that is said."""
    well.has_just_heard()
    well.way.refuse()
    well.way.cut()
    well.until_noticed()
    assert (well.asked().required, well.logged().get("reads", 0)) == ([well.share_manager.node], 0)
    assert "unchanged: ClaimLookupFailed" in admitted(well.plane.api, "unheard-of").decision
    well.way.accept()
    well.assert_well()


def test_silence_for_longer_than_is_promised(well: ProxiedServe) -> None:
    """First pins are as old as promised at most, then preferences; what can be read again is as it is now."""
    counted = Counted(well.plane.api)
    admissions: list[Admission] = []

    def is_unsure() -> bool:
        admissions.append(well.asked())
        return not admissions[-1].required

    well.has_just_heard()
    well.way.freeze()
    well.way.cut()
    well.share_manager.move("node-b")
    until(is_unsure, "a decision that is not a pin")
    assert_none_too_old(well, admissions)
    assert {tuple(each.required) for each in admissions[:-1]} == {("node-a",)}
    assert admissions[-1].preferred == ["node-a"]
    assert "not required, because EvidenceNotConfirmed: " in admissions[-1].decision
    assert {cache.fresh for cache in well.caches().values()} == {False}

    well.share_manager.move("node-c")
    with allowed(well.plane, "get"):
        well.way.thaw()
        until(lambda: "forbidden: 403" in well.caches()["nodes"].detail, "403")
        assert {cache.fresh for cache in well.caches().values()} == {False}
        unpinned = well.asked()  # who else is on the node only a cache of pods can tell
        assert (unpinned.required, unpinned.preferred) == ([], ["node-c"])
        assert well.logged()["reads"] > 0
    well.assert_well()
    assert counted.more()(FAIL_OPEN, name=WEBHOOK) == 0
