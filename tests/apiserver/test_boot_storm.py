"""After a power cut all VMs start at once, more than fit beside their share-managers: two replicas strand none of them.

`STORM_VMS=500 pytest -rP tests/apiserver/test_boot_storm.py` is the whole storm, and says what became of it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Final

import pytest
from admitting import until
from boot_storm import Booting, Outcome, Storm, filler
from installed import Installed
from kube_api import Api, Object
from replicas import REPLICAS
from scraping import scrape

VMS: Final = int(os.environ.get("STORM_VMS", "300"))
SEATS_OF_25_VMS: Final = 2  # on each of five nodes: 200 for 500 VMs
STORM: Final = Storm(vms=VMS, seats=VMS * SEATS_OF_25_VMS // 25)
SMALLER: Final = Storm(vms=VMS // 3, seats=VMS // 3 * SEATS_OF_25_VMS // 25)
WORKERS: Final = 10  # of virt-controller
OVERSHOOT: Final = (REPLICAS - 1) * STORM.homes
"""The last place of each node may be promised by each replica, where both are asked for it at once."""

STORMS: Final = {
    "as many at once as virt-controller has workers": (WORKERS, False, 0, 0.95),
    "50 at once": (50, False, 0, 0.95),
    "as many, replicas asked in turn": (WORKERS, True, OVERSHOOT, 0.8),
    "50 at once, replicas asked in turn": (50, True, OVERSHOOT, 0.5),
}


@pytest.fixture(scope="module")
def booting(installed: Installed) -> Iterator[Booting]:
    """The storm's cluster, before anything starts."""
    with Booting(installed, STORM) as booting:
        yield booting


@pytest.fixture
def smaller(installed: Installed) -> Iterator[Booting]:
    """A third of it."""
    with Booting(installed, SMALLER) as booting:
        yield booting


@pytest.mark.parametrize(("at_once", "in_turn", "overshoot", "at_home"), STORMS.values(), ids=STORMS)
def test_nobody_is_stranded(booting: Booting, at_once: int, in_turn: bool, overshoot: int, at_home: float) -> None:  # noqa: FBT001 - a column of the table
    """Places beside a share-manager are taken, every other VM runs elsewhere, and nobody has to go for it.

    Where replicas are asked in turn they know of each other's pins late, and a storm of two seconds leaves some places.
    """
    with booting.served(in_turn=in_turn):
        outcome = booting.start(at_once)
    show(f"{at_once} at once{', in turn' * in_turn}", STORM, outcome)
    booting.stop_vms()
    assert outcome.waiting == []
    assert len(outcome.stranded) <= overshoot, outcome.stranded
    assert len(outcome.evicted) <= overshoot, outcome.evicted
    assert outcome.at_home >= STORM.room * at_home


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_replica_that_is_asked_ends_amid_the_storm(booting: Booting, how: signal.Signals) -> None:
    """Calls turn to the other one, which does not know yet what the first has just promised: it holds back for that."""
    with booting.served() as replicas:
        outcome = booting.start(50, amid=lambda _: replicas.end_oldest(how))
        replicas.until_ended()
    show(f"50 at once, {how.name} amid them", STORM, outcome)
    booting.stop_vms()
    assert outcome.waiting == []
    assert len(outcome.stranded) <= OVERSHOOT, outcome.stranded
    assert len(outcome.evicted) <= OVERSHOOT, outcome.evicted
    assert outcome.at_home >= STORM.room / 4


def test_without_the_guard_they_are(smaller: Booting) -> None:
    """The same with a pin for everybody: whoever does not fit waits for ever, or has others evicted for it."""
    with smaller.served("--watch-pods", "virt-launcher"):
        outcome = smaller.start(WORKERS)
    show("no guard", SMALLER, outcome)
    assert outcome.decided == {"required": SMALLER.vms}
    assert len(outcome.stranded) >= SMALLER.vms - SMALLER.room
    assert outcome.evicted


def test_nodes_that_are_lost_or_taken_amid_the_storm(smaller: Booting) -> None:
    """They get no more pins: only what was on its way there at that moment may wait; everybody else runs."""
    with smaller.served() as replicas:

        def amid(api: Api) -> None:
            disturb(api)
            until(lambda: all(map(knows, replicas.health_ports)), "nodes of both replicas")

        outcome = smaller.start(WORKERS, amid=amid)
    show("disturbed", SMALLER, outcome)
    on_its_way = {smaller.storm.launcher(vm)["metadata"]["name"] for vm in range(SMALLER.afterwards)}
    assert set(outcome.stranded) <= on_its_way
    assert outcome.waiting == []
    assert outcome.at_home >= SMALLER.seats  # of the one node that nothing happened to


def knows(port: int) -> bool:
    """Whether a replica has heard the last of what was done: a node is gone."""
    return scrape(port).value("kubevirt_coschedule_cache_objects", cache="nodes") == SMALLER.nodes - 1


def disturb(api: Api) -> None:
    """One node is cordoned, one is silent, one is gone, and on one somebody else's pods take half of what was there."""
    cordoned, silent, gone, taken, _ = map(_node, SMALLER.home_names)
    api.patch(cordoned, {"spec": {"unschedulable": True}})
    taints = [{"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in ("NoSchedule", "NoExecute")]
    api.patch(silent, {"spec": {"taints": taints}})
    api.patch(silent, {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, subresource="status")
    for index in range(SMALLER.seats // 2):
        api.create(filler(f"late-{index}", taken["metadata"]["name"], "tests-low"))
    api.delete(gone)


def _node(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def show(name: str, storm: Storm, outcome: Outcome) -> None:
    """For whoever looks at the figures."""
    print(f"{name}: {storm.vms} VMs, room for {storm.room}: {outcome}")  # noqa: T201 - shown by pytest -rP
