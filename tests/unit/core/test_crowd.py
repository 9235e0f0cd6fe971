"""What pods leave of nodes, counted as they come and go."""

from __future__ import annotations

import pytest

from webhook.core.budget import Budget
from webhook.core.crowd import Attendant, Counted, Gathering, Room
from webhook.core.neighbours import Found, Presence
from webhook.core.requests import HostPort, Usage
from webhook.core.room import NodeLoad
from webhook.core.selectors import EVERYTHING, Scope

PORT = HostPort("TCP", 80, "0.0.0.0")  # noqa: S104 - as the scheduler writes it
SMALL = Usage((("cpu", 100), ("memory", 2**20)), (PORT,))


def attendant(node: str = "n1", **described: object) -> Attendant:
    """A pod that takes a little."""
    return Attendant(**{"namespace": "vms", "node": node, "usage": SMALL, **described})  # type: ignore[arg-type]


def test_a_node_that_nobody_is_on_has_no_load() -> None:
    """Nor is anybody expected there; and asking makes nothing of it."""
    gathering = Gathering()
    assert (gathering.load("n1").pods, gathering.expected("n1")) == (0, 0)
    gathering.add(attendant("n2"))
    assert gathering.load("n1").pods == 0


def test_pods_come_and_go() -> None:
    """Each is counted on its node, in load and among neighbours, until it is removed."""
    gathering = Gathering()
    first, _ = gathering.add(attendant(labels={"app": "db"})), gathering.add(attendant())
    load = gathering.load("n1")
    assert (load.pods, load.requested, load.ports) == (2, {"cpu": 200, "memory": 2**21}, {PORT: 2})
    assert isinstance(first, Counted)
    gathering.remove(first)
    assert (load.pods, load.requested, load.ports) == (1, {"cpu": 100, "memory": 2**20}, {PORT: 1})
    found = gathering.neighbours.find([Scope(("vms",))], EVERYTHING, rule="a test", budget=Budget())
    assert found == Found(there={"n1": 1})


@pytest.mark.parametrize(
    ("presence", "expected"), [(Presence.BOUND, 0), (Presence.TERMINATING, 0), (Presence.EXPECTED, 1)]
)
def test_those_that_are_not_bound_are_told_apart(presence: Presence, expected: int) -> None:
    """They count in the load like all others, and are known to be still on their way."""
    gathering = Gathering()
    counted = gathering.add(attendant(presence=presence))
    assert (gathering.load("n1").pods, gathering.expected("n1")) == (1, expected)
    gathering.remove(counted)
    assert (gathering.load("n1").pods, gathering.expected("n1")) == (0, 0)


def test_a_room_is_nobody_s_unless_told() -> None:
    """Where a cluster is described by files nothing is under way."""
    room = Room({}, NodeLoad(), {})
    assert (room.expected, room.contested) == (0, {})
