"""Two replicas behind one address, restarted one after the other while pods are created: nobody notices."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Final

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import MAX_CALL_SECONDS, Installed
from support.control_plane.replicas import REPLICAS, Replicas
from support.drivers import serving
from support.scenarios.admitting import FAIL_OPEN, REJECTIONS, WEBHOOK, Admitting, Counted
from support.sizes import size

CREATES: Final = size("ROLLING_CREATES")
CLIENTS: Final = 4  # virt-controller has ten workers, and does more between two pods
ROUNDS: Final = 2  # at least: each replica is replaced so often
DRAIN_SECONDS: Final = "5"  # more than kube-proxy takes to notice here, on a busy machine too

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def behind_one_address(installed: Installed) -> Iterator[Replicas]:
    """Two replicas, and a cluster that has a claim for a pin."""
    with ClusterState(installed.plane.api) as cluster:
        cluster.become(serving.cluster())
        with Replicas(installed, "--drain-seconds", DRAIN_SECONDS) as replicas:
            installed.enable(timeoutSeconds=MAX_CALL_SECONDS)
            installed.until_called()
            yield replicas
    installed.disable()


def test_no_call_fails(behind_one_address: Replicas, installed: Installed) -> None:
    """Replicas end by SIGTERM and others take their place: every pod gets its pin, and no call fails open."""
    counted = Counted(installed.plane.api)
    codes: list[int] = []
    with Admitting(installed.plane.api, "disk", clients=CLIENTS) as admitting:
        while len(admitting.admissions) < CREATES or len(codes) < ROUNDS * REPLICAS:
            for _ in range(REPLICAS):
                behind_one_address.replace_oldest(signal.SIGTERM)
            codes += behind_one_address.until_ended()
    more = counted.more()
    assert (admitting.refused, admitting.away) == ([], [])
    assert (more(FAIL_OPEN, name=WEBHOOK), more(REJECTIONS, name=WEBHOOK)) == (0, 0)
    assert [pod.decision for pod in admitting.admissions if pod.required != ["node-a"]] == []
    assert set(codes) == {0}


def test_replicas_that_are_killed_are_noticed(behind_one_address: Replicas, installed: Installed) -> None:
    """With SIGKILL calls fail open, and their pods come without a decision: so the counts above can fail."""
    counted = Counted(installed.plane.api)
    with Admitting(installed.plane.api, "disk", clients=CLIENTS) as admitting:
        for _ in range(REPLICAS):
            admitting.until(more=CLIENTS * 5)
            behind_one_address.end_oldest(signal.SIGKILL)
        behind_one_address.until_ended()
        admitting.until(more=CLIENTS * 5)
    unseen = [pod for pod in admitting.admissions if not pod.decision]
    assert 0 < len(unseen) == counted.more()(FAIL_OPEN, name=WEBHOOK)
    assert (admitting.refused, admitting.away) == ([], [])
