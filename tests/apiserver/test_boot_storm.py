"""After a power cut all VMs start at once, more than fit beside their share-managers: none is stranded by that.

`make soak` plays every storm, in full size and ten times, and prints the result of each; `make e2e` plays some of them
with fewer VMs. `TEST_SIZE=whole pytest -rP -m soak tests/apiserver/test_boot_storm.py` is the soak of this file alone.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any, Final

import pytest
from support.control_plane.installed import Installed
from support.control_plane.kube_api import Api, Object
from support.control_plane.replicas import Asked
from support.drivers.scraping import scrape
from support.drivers.serving import Serving
from support.scenarios.admitting import until
from support.scenarios.boot_storm import Booting, Outcome
from support.scenarios.storm import Storm, filler
from support.sizes import size

VMS: Final = size("STORM_VMS")
ROUNDS: Final = range(size("STORM_ROUNDS"))
SEATS_OF_25_VMS: Final = 2  # on each of five nodes: 200 for 500 VMs
STORM: Final = Storm(vms=VMS, seats=VMS * SEATS_OF_25_VMS // 25)
WORKERS: Final = 10  # of virt-controller
LANES: Final = 4  # in which others create pods
AT_ONCE: Final = (WORKERS, 50)
WHOLE: Final = 500  # VMs

pytestmark = pytest.mark.soak

each_round = pytest.mark.parametrize("number", ROUNDS)


def in_soak(value: object) -> Any:
    """A parameter with which only `make soak` runs the test."""
    return pytest.param(value, marks=pytest.mark.soak_only)


@pytest.fixture(scope="module")
def booting(installed: Installed) -> Iterator[Booting]:
    """The storm's cluster, before anything starts."""
    with Booting(installed, STORM) as booting:
        yield booting


@each_round
@pytest.mark.parametrize("asked", [Asked.AT_RANDOM, in_soak(Asked.ONE)], ids=lambda asked: f"asked {asked.value}")
@pytest.mark.parametrize("at_once", AT_ONCE, ids=lambda many: f"{many} at once")
@pytest.mark.parametrize("replicas", [in_soak(1), 2, in_soak(3), in_soak(5)], ids=lambda many: f"{many} replicas")
def test_nobody_is_stranded(number: int, asked: Asked, at_once: int, replicas: int, booting: Booting) -> None:
    """Places beside a share-manager are taken, every other VM runs elsewhere, and nobody has to go for it."""
    with booting.served(count=replicas, asked=asked):
        outcome = booting.start(at_once)
    _show(f"{replicas} replicas, asked {asked.value}, {at_once} at once, round {number}", booting.storm, outcome)
    booting.stop_vms()
    _nobody_waits(outcome)
    assert outcome.together >= booting.storm.room * _taken(at_once, replicas)


@each_round
@pytest.mark.parametrize("how", [in_soak(signal.SIGTERM), signal.SIGKILL])
@pytest.mark.parametrize("at_once", [WORKERS, in_soak(50)], ids=lambda many: f"{many} at once")
def test_a_replica_ends_and_one_starts_amid_the_storm(
    number: int, at_once: int, how: signal.Signals, booting: Booting
) -> None:
    """Each decision shows in its pod while replicas start and stop. A VM without a decision runs on any node."""
    with booting.served() as replicas:
        starting = threading.Thread(target=replicas.start)

        def amid(_: Api) -> None:
            replicas.end_oldest(how)
            starting.start()

        outcome = booting.start(at_once, amid=amid)
        starting.join()
        replicas.until_ended()
    _show(f"{how.name} and a start amid {at_once} at once, round {number}", booting.storm, outcome)
    booting.stop_vms()
    _nobody_waits(outcome)
    assert outcome.together >= booting.storm.room * _taken(at_once, 2)


@each_round
@pytest.mark.parametrize("at_once", [WORKERS, in_soak(1)], ids=lambda many: f"{many} at once")
def test_a_storm_beside_pods_that_the_webhook_never_sees(number: int, at_once: int, booting: Booting) -> None:
    """The outcome says how many VMs end stuck: such a pod can take a place before the webhook sees it there."""
    started = threading.Event()

    def others(lane: int) -> None:
        started.wait()
        for index in range(lane, VMS // 2, LANES):
            booting.api.create(filler(f"deployed-{number}-{index}", None, "tests-high"))

    lanes = [threading.Thread(target=others, args=(lane,)) for lane in range(LANES)]
    for lane in lanes:
        lane.start()
    with booting.served():
        started.set()
        outcome = booting.start(at_once, until=lambda outcome: not outcome.waiting)
    for lane in lanes:
        lane.join()
    _show(f"beside {VMS // 2} pods of others, {at_once} at once, round {number}", booting.storm, outcome)
    booting.stop_vms()
    booting.stop_others("deployed-")
    assert outcome.waiting == []


@each_round
@pytest.mark.parametrize("at_once", [WORKERS, in_soak(50)], ids=lambda many: f"{many} at once")
def test_nodes_that_are_lost_or_taken_amid_the_storm(number: int, at_once: int, installed: Installed) -> None:
    """Nobody waits for them, and the one that nothing happened to is filled by its own.

    A VM that is pinned in calm, and whose node is lost before kube-scheduler has looked at it, would wait: amid a storm
    nobody is pinned.
    """
    with Booting(installed, STORM) as booting, booting.served() as replicas:

        def amid(api: Api) -> None:
            _disturb(api)
            until(lambda: all(map(_knows, replicas.serving)), "nodes of both replicas")

        outcome = booting.start(at_once, amid=amid)
    _show(f"nodes lost amid {at_once} at once, round {number}", STORM, outcome)
    _nobody_waits(outcome)
    assert outcome.at_home[STORM.home_names[-1]] >= STORM.seats * _taken(at_once, 2)


@each_round
@pytest.mark.parametrize("nodes", [150, in_soak(1000)], ids=lambda many: f"{many} nodes")
def test_a_storm_in_a_large_cluster(number: int, nodes: int, installed: Installed) -> None:
    """Where kube-scheduler scores a sample of the nodes, a preference comes with a short list of them."""
    storm = STORM._replace(nodes=nodes)
    with Booting(installed, storm) as booting, booting.served():
        outcome = booting.start(WORKERS)
    _show(f"{nodes} nodes, {WORKERS} at once, round {number}", storm, outcome)
    _nobody_waits(outcome)
    assert outcome.together >= storm.room * _taken(WORKERS, 2)


def _taken(at_once: int, replicas: int) -> float:
    """Of the places beside share-managers, by VMs whose share-manager is there.

    While more VMs are on the way to a node than it has room for, a VM does not even prefer it. So of many at once some
    places stay empty. A smaller storm than the whole one is over in a second. Where as many VMs come at once as it has
    places, no more than one replica's share is certain.
    """
    if at_once == WORKERS:
        return 0.98 if VMS >= WHOLE else 0.9
    return 0.5 if VMS >= WHOLE else 1 / replicas


def _nobody_waits(outcome: Outcome) -> None:
    assert outcome.waiting == []
    assert outcome.stranded == []
    assert outcome.evicted == []


def _knows(serving: Serving) -> bool:
    """Whether a replica has heard the last of what was done: a node is gone."""
    return scrape(serving.health_port).value("kubevirt_coschedule_cache_objects", cache="nodes") == STORM.nodes - 1


def _disturb(api: Api) -> None:
    """One node is cordoned, one is silent, one is gone, and on one somebody else's pods take half of what was there."""
    cordoned, silent, gone, taken, _ = map(_node, STORM.home_names)
    api.patch(cordoned, {"spec": {"unschedulable": True}})
    taints = [{"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in ("NoSchedule", "NoExecute")]
    api.patch(silent, {"spec": {"taints": taints}})
    api.patch(silent, {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, subresource="status")
    for index in range(STORM.seats // 2):
        api.create(filler(f"late-{index}", taken["metadata"]["name"], "tests-low"))
    api.delete(gone)


def _node(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def _show(name: str, storm: Storm, outcome: Outcome) -> None:
    """Print the figures; `pytest -rP` shows them."""
    print(f"{name}: {storm.vms} VMs, room for {storm.room}: {outcome}")  # noqa: T201 - shown by pytest -rP
