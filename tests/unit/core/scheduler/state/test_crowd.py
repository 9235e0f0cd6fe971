"""What pods leave of nodes, counted as they come and go."""

from __future__ import annotations

import pytest

from webhook.core.scheduler.budget import Budget
from webhook.core.scheduler.state.cache import Attendant, Counted, Gathering
from webhook.core.scheduler.state.label_selector import EVERYTHING, Scope
from webhook.core.scheduler.state.node_info import Room
from webhook.core.scheduler.state.pod_index import Found, Presence
from webhook.core.scheduler.state.pod_requests import HostPort, Usage

PORT = HostPort("TCP", 80, "0.0.0.0")  # noqa: S104 - as the scheduler writes it
HAS = {"pods": 10, "cpu": 1000, "memory": 2**30}
SMALL = Usage((("cpu", 100), ("memory", 2**20)), (PORT,))


def attendant(node: str = "n1", **described: object) -> Attendant:
    """A pod that takes a little."""
    return Attendant(**{"namespace": "vms", "node": node, "usage": SMALL, **described})  # type: ignore[arg-type]


def room(gathering: Gathering, node: str = "n1") -> Room:
    """What is on a node of one CPU."""
    return gathering.room(node, HAS, {})


def test_a_node_that_nobody_is_on_has_no_load() -> None:
    """Nor is anybody on the way there; and asking makes nothing of it."""
    gathering = Gathering()
    assert (room(gathering).load.pods, room(gathering).on_way, room(gathering).pinned) == (0, 0, False)
    gathering.add(attendant("n2"))
    assert room(gathering).load.pods == 0


def test_pods_come_and_go() -> None:
    """Each is counted on its node, in load and among neighbours, until it is removed."""
    gathering = Gathering()
    first, second = gathering.add(attendant(labels={"app": "db"})), gathering.add(attendant())
    load = room(gathering).load
    assert (load.pods, load.requested, load.ports) == (2, {"cpu": 200, "memory": 2**21}, {PORT: 2})
    gathering.remove(first)
    load = room(gathering).load
    assert (load.pods, load.requested, load.ports) == (1, {"cpu": 100, "memory": 2**20}, {PORT: 1})
    found = gathering.neighbours.find([Scope(("vms",))], EVERYTHING, rule="a test", budget=Budget())
    assert found == Found(there={"n1": 1})
    gathering.remove(second)
    assert not gathering._nodes, "of a node that may be gone nothing is left"


@pytest.mark.parametrize("presence", [Presence.BOUND, Presence.TERMINATING])
def test_a_pod_that_is_bound_is_on_its_way_no_more(presence: Presence) -> None:
    """Whatever is told of it beside."""
    gathering = Gathering()
    gathering.add(attendant(presence=presence, on_way=True, pinned=True, listed=True, in_flight=True))
    found = room(gathering)
    assert (found.load.pods, found.on_way, found.pinned, found.in_flight.pods) == (1, 0, False, 0)
    assert not gathering.listed(in_flight=True)


def test_a_pod_that_is_drawn_to_a_node_counts_there() -> None:
    """In the load, and as one that is on its way, waits for this node alone, is on a list, and is not seen yet."""
    gathering = Gathering()
    bound = gathering.add(attendant())
    drawn = gathering.add(attendant(presence=Presence.EXPECTED, on_way=True, pinned=True, listed=True, in_flight=True))
    found = room(gathering)
    assert (found.load.pods, found.load.requested["cpu"]) == (2, 200)
    assert (found.on_way, found.pinned, found.in_flight.requested) == (1, True, dict(SMALL.requests))
    assert (gathering.listed(in_flight=True), gathering.listed(in_flight=False)) == ({SMALL: 1}, {})
    gathering.remove(bound)
    assert room(gathering).load.pods == 1
    gathering.remove(drawn)
    assert (room(gathering).load.pods, gathering.listed(in_flight=True), gathering._nodes) == (0, {}, {})


def test_several_pods_of_one_shape_are_told_by_their_number() -> None:
    """Each is counted, and each is let go."""
    gathering = Gathering()
    waiting = [gathering.add(attendant(presence=Presence.EXPECTED, pinned=True, listed=True)) for _ in range(3)]
    assert (room(gathering).load.pods, gathering.listed(in_flight=False)) == (3, {SMALL: 3})
    gathering.remove(waiting.pop())
    assert (room(gathering).load.pods, gathering.listed(in_flight=False)) == (2, {SMALL: 2})
    assert room(gathering).pinned


def test_a_pod_that_is_larger_than_its_node_takes_nothing_of_it() -> None:
    """A DaemonSet's that will never be bound there, or a VM's: nobody has to wait for it."""
    gathering = Gathering()
    gathering.add(attendant(usage=Usage((("cpu", 1001),)), presence=Presence.EXPECTED, pinned=True))
    assert (room(gathering).load.pods, room(gathering).pinned) == (0, False)
    gathering.add(attendant(usage=Usage((("cpu", 1000),)), presence=Presence.EXPECTED, pinned=True))
    assert (room(gathering).load.pods, room(gathering).pinned) == (1, True)


def coming(gathering: Gathering, *, vm: bool = True) -> Counted:
    """A watch shows a pod that is on its way."""
    return gathering.add(attendant(presence=Presence.EXPECTED, on_way=True, vm=vm))


def answered(gathering: Gathering) -> None:
    """An answer is given, and a watch shows its pod, which is bound at once."""
    gathering.confirm(gathering.add(attendant(presence=Presence.EXPECTED, on_way=True, vm=True, in_flight=True)))


def crowd(gathering: Gathering) -> tuple[bool, bool]:
    """Whether there is one, and whether all know of it."""
    found = room(gathering)
    return found.crowded, found.settled


def test_several_vms_on_their_way_are_a_crowd() -> None:
    """All know of it, and of its end, once a pod was shown that was answered for after it was seen."""
    gathering = Gathering()
    early = gathering.add(attendant("n2", presence=Presence.EXPECTED, on_way=True, vm=True, in_flight=True))
    vms = [coming(gathering)]
    assert crowd(gathering) == (False, False)
    vms.append(coming(gathering))
    assert crowd(gathering) == (True, False)
    gathering.confirm(early)
    assert crowd(gathering) == (True, False), "that one was answered for before"
    answered(gathering)
    assert crowd(gathering) == (True, True)
    gathering.add(attendant())
    for vm in vms:
        gathering.remove(vm)
    assert crowd(gathering) == (True, False)
    again = coming(gathering)
    assert crowd(gathering) == (True, False), "one that comes in between may not be known to all"
    gathering.remove(again)
    answered(gathering)
    assert crowd(gathering) == (False, False)


def test_after_a_crowd_vms_that_come_one_by_one_are_none() -> None:
    """Once all know that it has gone: the first of them tells. It takes several at once to be a crowd again."""
    gathering = Gathering()
    gathering.add(attendant())
    for vm in [coming(gathering) for _ in range(2)]:
        gathering.remove(vm)
    found = []
    for _ in range(3):
        found.append(room(gathering).crowded)
        answered(gathering)
        gathering.remove(coming(gathering))
    assert found == [True, False, False]


def test_other_pods_are_no_crowd() -> None:
    """A DaemonSet's come to each new node at once, and no replica has drawn them there."""
    gathering = Gathering()
    for _ in range(3):
        coming(gathering, vm=False)
    assert crowd(gathering) == (False, False)
    assert room(gathering).on_way == 3
