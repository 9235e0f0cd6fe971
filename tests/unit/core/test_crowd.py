"""What pods leave of nodes, counted as they come and go."""

from __future__ import annotations

import pytest

from webhook.core.budget import Budget
from webhook.core.crowd import Attendant, Gathering, Room
from webhook.core.neighbours import Found, Presence
from webhook.core.requests import HostPort, Usage
from webhook.core.selectors import EVERYTHING, Scope

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


def test_after_a_crowd_pods_that_come_one_by_one_are_no_crowd() -> None:
    """Once all know that it has gone: the first of them tells; it takes several at once to be a crowd again."""
    gathering = Gathering()
    gathering.add(attendant())
    for counted in [gathering.add(attendant(presence=Presence.EXPECTED, on_way=True)) for _ in range(2)]:
        gathering.remove(counted)
    found = []
    for _ in range(3):
        found.append(room(gathering).crowded)
        answered = gathering.add(attendant(presence=Presence.EXPECTED, on_way=True, in_flight=True))
        gathering.confirm(answered)
        shown = gathering.add(attendant(presence=Presence.EXPECTED, on_way=True))
        gathering.remove(shown)
    assert found == [True, False, False]
    several = [gathering.add(attendant(presence=Presence.EXPECTED, on_way=True)) for _ in range(2)]
    assert room(gathering).crowded
    for counted in several:
        gathering.remove(counted)
    assert room(gathering).crowded
