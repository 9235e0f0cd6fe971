"""After a power cut all VMs start at once, more than fit beside their share-managers: two replicas strand none of them.

`STORM_VMS=500 pytest -rP tests/apiserver/test_boot_storm.py` is the whole storm, and says what became of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import pytest
from boot_storm import Booting, Outcome, Storm, filler
from installed import Installed
from kube_api import Api, Object
from replicas import REPLICAS

VMS: Final = int(os.environ.get("STORM_VMS", "300"))
SEATS_OF_25_VMS: Final = 2  # on each of five nodes: 200 for 500 VMs
STORM: Final = Storm(vms=VMS, seats=VMS * SEATS_OF_25_VMS // 25)
SMALLER: Final = Storm(vms=VMS // 3, seats=VMS // 3 * SEATS_OF_25_VMS // 25)
WORKERS: Final = 10  # of virt-controller
OVERSHOOT: Final = REPLICAS - 1
"""The last place of a node may be promised by each replica, where both are asked for it at once."""

AT_HOME_LEAST: Final = 0.9  # of a storm of a few seconds; of 500 VMs all but one or two


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


@pytest.mark.parametrize("at_once", [WORKERS, 50])
def test_nobody_is_stranded(booting: Booting, at_once: int) -> None:
    """Places beside a share-manager are taken, every other VM runs elsewhere, and nobody has to go for it.

    With more at once than virt-controller has workers the storm is over within seconds: some places stay free.
    """
    with booting.served():
        outcome = booting.start(at_once)
    show(f"{at_once} at once", STORM, outcome)
    booting.stop_vms()
    most = OVERSHOOT * STORM.homes
    assert outcome.waiting == []
    assert len(outcome.stranded) <= most, outcome.stranded
    assert len(outcome.evicted) <= most, outcome.evicted
    assert outcome.at_home >= STORM.room * (AT_HOME_LEAST if at_once == WORKERS else AT_HOME_LEAST / 2)


def test_without_the_guard_they_are(smaller: Booting) -> None:
    """The same with a pin for everybody: whoever does not fit waits for ever, or has others evicted for it."""
    with smaller.served("--watch-pods", "virt-launcher"):
        outcome = smaller.start(WORKERS)
    show("no guard", SMALLER, outcome)
    assert outcome.decided == {"required": SMALLER.vms}
    assert len(outcome.stranded) >= SMALLER.vms - SMALLER.room
    assert outcome.evicted


def test_nodes_that_are_lost_or_taken_amid_the_storm(smaller: Booting) -> None:
    """They get no more pins: only what was on its way there at that moment waits; everybody else runs."""
    with smaller.served():
        outcome = smaller.start(WORKERS, amid=disturb)
    show("disturbed", SMALLER, outcome)
    on_its_way = WORKERS + OVERSHOOT * SMALLER.homes
    assert len(outcome.stranded) <= on_its_way, outcome.stranded
    assert outcome.waiting == []
    assert outcome.bound >= SMALLER.vms - on_its_way
    assert len(outcome.evicted) <= OVERSHOOT * SMALLER.homes, outcome.evicted


def disturb(api: Api) -> None:
    """One node is cordoned, one is silent, one is gone, and on one somebody else's pods take half of what was there."""
    cordoned, silent, gone, taken, _ = map(_node, SMALLER.home_names)
    api.patch(cordoned, {"spec": {"unschedulable": True}})
    taints = [{"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in ("NoSchedule", "NoExecute")]
    api.patch(silent, {"spec": {"taints": taints}})
    api.patch(silent, {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, subresource="status")
    api.delete(gone)
    for index in range(SMALLER.seats // 2):
        api.create(filler(f"late-{index}", taken["metadata"]["name"], "tests-low"))


def _node(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def show(name: str, storm: Storm, outcome: Outcome) -> None:
    """For whoever looks at the figures."""
    print(f"{name}: {storm.vms} VMs, room for {storm.room}: {outcome}")  # noqa: T201 - shown by pytest -rP
