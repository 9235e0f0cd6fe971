"""What pods leave of nodes, counted as they come and go."""

from __future__ import annotations

import pytest

from webhook.core.scheduler.budget import Budget
from webhook.core.scheduler.state.cache import PodHandle, PodInfo, SchedulerCache
from webhook.core.scheduler.state.label_selector import EVERYTHING, Scope
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.scheduler.state.pod_index import Found, Presence
from webhook.core.scheduler.state.pod_requests import HostPort, Usage

PORT = HostPort("TCP", 80, "0.0.0.0")  # noqa: S104 - as the scheduler writes it
HAS = {"pods": 10, "cpu": 1000, "memory": 2**30}
SMALL = Usage((("cpu", 100), ("memory", 2**20)), (PORT,))


def attendant(node: str = "n1", **described: object) -> PodInfo:
    """A pod that takes a little."""
    return PodInfo(**{"namespace": "vms", "node": node, "usage": SMALL, **described})  # type: ignore[arg-type]


def room(scheduler_cache: SchedulerCache, node: str = "n1") -> NodeInfo:
    """What is on a node of one CPU."""
    return scheduler_cache.room(node, HAS, {})


def test_a_node_that_nobody_is_on_has_no_load() -> None:
    """Nor is anybody on the way there; and asking makes nothing of it."""
    scheduler_cache = SchedulerCache()
    assert (room(scheduler_cache).load.pods, room(scheduler_cache).on_way, room(scheduler_cache).pinned) == (
        0,
        0,
        False,
    )
    scheduler_cache.add(attendant("n2"))
    assert room(scheduler_cache).load.pods == 0


def test_pods_come_and_go() -> None:
    """Each is counted on its node, in load and among neighbours, until it is removed."""
    scheduler_cache = SchedulerCache()
    first, second = scheduler_cache.add(attendant(labels={"app": "db"})), scheduler_cache.add(attendant())
    load = room(scheduler_cache).load
    assert (load.pods, load.requested, load.ports) == (2, {"cpu": 200, "memory": 2**21}, {PORT: 2})
    scheduler_cache.remove(first)
    load = room(scheduler_cache).load
    assert (load.pods, load.requested, load.ports) == (1, {"cpu": 100, "memory": 2**20}, {PORT: 1})
    found = scheduler_cache.pod_index.find([Scope(("vms",))], EVERYTHING, rule="a test", budget=Budget())
    assert found == Found(there={"n1": 1})
    scheduler_cache.remove(second)
    assert not scheduler_cache._nodes, "of a node that may be gone nothing is left"


@pytest.mark.parametrize("presence", [Presence.BOUND, Presence.TERMINATING])
def test_a_pod_that_is_bound_is_on_its_way_no_more(presence: Presence) -> None:
    """Whatever is told of it beside."""
    scheduler_cache = SchedulerCache()
    scheduler_cache.add(attendant(presence=presence, on_way=True, pinned=True, listed=True, in_flight=True))
    found = room(scheduler_cache)
    assert (found.load.pods, found.on_way, found.pinned, found.in_flight.pods) == (1, 0, False, 0)
    assert not scheduler_cache.listed(in_flight=True)


def test_a_pod_that_is_drawn_to_a_node_counts_there() -> None:
    """In the load, and as one that is on its way, waits for this node alone, is on a list, and is not seen yet."""
    scheduler_cache = SchedulerCache()
    bound = scheduler_cache.add(attendant())
    drawn = scheduler_cache.add(
        attendant(presence=Presence.EXPECTED, on_way=True, pinned=True, listed=True, in_flight=True)
    )
    found = room(scheduler_cache)
    assert (found.load.pods, found.load.requested["cpu"]) == (2, 200)
    assert (found.on_way, found.pinned, found.in_flight.requested) == (1, True, dict(SMALL.requests))
    assert (scheduler_cache.listed(in_flight=True), scheduler_cache.listed(in_flight=False)) == ({SMALL: 1}, {})
    scheduler_cache.remove(bound)
    assert room(scheduler_cache).load.pods == 1
    scheduler_cache.remove(drawn)
    assert (room(scheduler_cache).load.pods, scheduler_cache.listed(in_flight=True), scheduler_cache._nodes) == (
        0,
        {},
        {},
    )


def test_several_pods_of_one_shape_are_told_by_their_number() -> None:
    """Each is counted, and each is let go."""
    scheduler_cache = SchedulerCache()
    waiting = [scheduler_cache.add(attendant(presence=Presence.EXPECTED, pinned=True, listed=True)) for _ in range(3)]
    assert (room(scheduler_cache).load.pods, scheduler_cache.listed(in_flight=False)) == (3, {SMALL: 3})
    scheduler_cache.remove(waiting.pop())
    assert (room(scheduler_cache).load.pods, scheduler_cache.listed(in_flight=False)) == (2, {SMALL: 2})
    assert room(scheduler_cache).pinned


def test_a_pod_that_is_larger_than_its_node_takes_nothing_of_it() -> None:
    """A DaemonSet's that will never be bound there, or a VM's: nobody has to wait for it."""
    scheduler_cache = SchedulerCache()
    scheduler_cache.add(attendant(usage=Usage((("cpu", 1001),)), presence=Presence.EXPECTED, pinned=True))
    assert (room(scheduler_cache).load.pods, room(scheduler_cache).pinned) == (0, False)
    scheduler_cache.add(attendant(usage=Usage((("cpu", 1000),)), presence=Presence.EXPECTED, pinned=True))
    assert (room(scheduler_cache).load.pods, room(scheduler_cache).pinned) == (1, True)


def coming(scheduler_cache: SchedulerCache, *, vm: bool = True) -> PodHandle:
    """A watch shows a pod that is on its way."""
    return scheduler_cache.add(attendant(presence=Presence.EXPECTED, on_way=True, vm=vm))


def answered(scheduler_cache: SchedulerCache) -> None:
    """An answer is given, and a watch shows its pod, which is bound at once."""
    scheduler_cache.confirm(
        scheduler_cache.add(attendant(presence=Presence.EXPECTED, on_way=True, vm=True, in_flight=True))
    )


def snapshot(scheduler_cache: SchedulerCache) -> tuple[bool, bool]:
    """Whether there is one, and whether all know of it."""
    found = room(scheduler_cache)
    return found.crowded, found.settled


def test_several_vms_on_their_way_are_a_crowd() -> None:
    """All know of it, and of its end, once a pod was shown that was answered for after it was seen."""
    scheduler_cache = SchedulerCache()
    early = scheduler_cache.add(attendant("n2", presence=Presence.EXPECTED, on_way=True, vm=True, in_flight=True))
    vms = [coming(scheduler_cache)]
    assert snapshot(scheduler_cache) == (False, False)
    vms.append(coming(scheduler_cache))
    assert snapshot(scheduler_cache) == (True, False)
    scheduler_cache.confirm(early)
    assert snapshot(scheduler_cache) == (True, False), "that one was answered for before"
    answered(scheduler_cache)
    assert snapshot(scheduler_cache) == (True, True)
    scheduler_cache.add(attendant())
    for vm in vms:
        scheduler_cache.remove(vm)
    assert snapshot(scheduler_cache) == (True, False)
    again = coming(scheduler_cache)
    assert snapshot(scheduler_cache) == (True, False), "one that comes in between may not be known to all"
    scheduler_cache.remove(again)
    answered(scheduler_cache)
    assert snapshot(scheduler_cache) == (False, False)


def test_after_a_crowd_vms_that_come_one_by_one_are_none() -> None:
    """Once all know that it has gone: the first of them tells. It takes several at once to be a crowd again."""
    scheduler_cache = SchedulerCache()
    scheduler_cache.add(attendant())
    for vm in [coming(scheduler_cache) for _ in range(2)]:
        scheduler_cache.remove(vm)
    found = []
    for _ in range(3):
        found.append(room(scheduler_cache).crowded)
        answered(scheduler_cache)
        scheduler_cache.remove(coming(scheduler_cache))
    assert found == [True, False, False]


def test_other_pods_are_no_crowd() -> None:
    """A DaemonSet's come to each new node at once, and no replica has drawn them there."""
    scheduler_cache = SchedulerCache()
    for _ in range(3):
        coming(scheduler_cache, vm=False)
    assert snapshot(scheduler_cache) == (False, False)
    assert room(scheduler_cache).on_way == 3
