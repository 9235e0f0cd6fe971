"""Who gives way when a listener has no place left: by rows, and for any run of comings, calls and goings."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.serving.places import Peer, Places
from webhook.serving.routes import Limits

LIMITS: Final = Limits(connections=4, connections_per_peer=3)


class Held:
    """A connection: what it did, and whether it was cut."""

    def __init__(self, peer: Peer, *, waited_for: bool = False) -> None:
        self.peer, self.asked_at, self.waited_for = peer, -inf, waited_for
        self.is_cut = False

    def cut(self) -> None:
        """Remember it."""
        self.is_cut = True


class Hall:
    """Places, and the time."""

    def __init__(self) -> None:
        self.now = 100.0
        self.places: Places[Held] = Places(LIMITS, lambda: self.now)

    def come(self, address: str, asked_ago: float | None = None, *, waited_for: bool = False) -> Held | None:
        """A newcomer, who may have asked so many seconds ago; None where it got no place."""
        peer = self.places.room(address)
        if peer is None:
            return None
        held = Held(peer, waited_for=waited_for)
        self.places.take(held)
        if asked_ago is not None:
            held.asked_at = self.now - asked_ago
            self.places.asked(held)
        return held


Row = tuple[str, float | None, bool]
"""An address, how long ago it asked, and whether a call of it is waited for."""

SILENT, IDLE, BUSY = (None, False), (5.0, False), (1.0, True)

ROWS: Final[dict[str, tuple[Sequence[Row], str, int | None]]] = {
    "room is left": ([("a", *SILENT)] * 3, "a2", -1),
    "the longest silent": ([("a", *IDLE), ("b", *SILENT), ("c", *SILENT), ("d", *BUSY)], "e", 1),
    "who asked longest ago": ([("a", 5, False), ("b", 9, False), ("c", 7, False), ("d", *BUSY)], "e", 1),
    "of the address with the most": ([("a", 9, False), ("b", 1, False), ("b", 2, False), ("c", 7, False)], "e", 2),
    "a silent one that is just asking stays": ([("a", None, True), ("b", *IDLE), ("c", *BUSY), ("d", *BUSY)], "e", 1),
    "nobody: all have calls in flight": ([(each, *BUSY) for each in "abcd"], "e", None),
    "of a full address its own silent one": ([("b", *SILENT), ("a", *IDLE), ("a", *SILENT), ("a", *BUSY)], "a", 2),
    "of a full address its own idle one": ([("b", *SILENT), ("a", *IDLE), ("a", *BUSY), ("a", *BUSY)], "a", 1),
    "nobody of a full address": ([("b", *SILENT), ("a", *BUSY), ("a", *BUSY), ("a", *BUSY)], "a", None),
}


@pytest.mark.parametrize(("there", "newcomer", "gone"), ROWS.values(), ids=ROWS)
def test_who_gives_way(there: Sequence[Row], newcomer: str, gone: int | None) -> None:
    """The number of the one that is cut, -1 for none; None where the newcomer is refused instead."""
    hall = Hall()
    held = [hall.come(address, asked_ago, waited_for=waited_for) for address, asked_ago, waited_for in there]
    new = hall.come(newcomer)
    assert (new is None) == (gone is None)
    assert [each is not None and each.is_cut for each in held] == [index == gone for index in range(len(held))]
    assert len(hall.places) <= LIMITS.connections


def test_an_address_that_asked_is_known_while_it_is_connected() -> None:
    """By any of its connections; when the last one is gone nothing of it is kept."""
    hall = Hall()
    asked, spare = hall.come("a", 0), hall.come("a")
    assert asked
    assert spare
    assert spare.peer.asks
    hall.places.leave(asked)
    hall.places.leave(asked)  # it was cut, and then is lost
    again = hall.come("a")
    assert again
    assert again.peer is spare.peer
    for each in (spare, again):
        hall.places.leave(each)
    new = hall.come("a")
    assert new
    assert (new.peer.asks, new.peer.connections, len(hall.places)) == (False, 1, 1)


def test_an_address_whose_last_connection_gives_way_is_counted_anew() -> None:
    """The newcomer may be of the address whose connection it replaces."""
    hall = Hall()
    for address in "abcd":
        hall.come(address)
    new = hall.come("a")
    assert new
    assert new.peer.connections == 1
    assert [each.peer.address for each in hall.places] == ["b", "c", "d", "a"]


def test_a_flood_is_said_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """With how many were cut and refused so far, and where the latest came from."""
    hall = Hall()
    for _ in range(4):
        hall.come("a", 1, waited_for=True)
    for _ in range(8):
        hall.come("b")
    hall.now += 60
    hall.come("a")
    told = [vars(record)["fields"] for record in caplog.records]
    assert [(each["latest_from"], each["cut_so_far"], each["refused_so_far"]) for each in told] == [
        ("a", 0, 1),
        ("a", 7, 2),
    ]


STEPS: Final = st.lists(
    st.tuples(st.sampled_from(["come", "ask", "answer", "leave"]), st.sampled_from("abc"), st.integers(0, 9))
)


@given(STEPS)
def test_places_add_up(steps: list[tuple[str, str, int]]) -> None:
    """No more than allowed, none lost, no call in flight cut; and a newcomer is in wherever one can go."""
    hall, there = Hall(), list[Held]()
    for step, address, number in steps:
        hall.now += 1
        there = [each for each in there if not each.is_cut]
        if step == "come":
            own = [each for each in there if each.peer.address == address]
            before = own if len(own) == LIMITS.connections_per_peer else there
            full = len(before) >= (LIMITS.connections_per_peer if before is own else LIMITS.connections)
            new = hall.come(address)
            assert (new is None) == (full and all(each.waited_for for each in before))
            there += [new] if new else []
        elif there:
            held = there[number % len(there)]
            if step == "ask":
                held.waited_for, held.asked_at = True, hall.now
                hall.places.asked(held)
            elif step == "answer":
                held.waited_for = False
            else:
                hall.places.leave(held)
                there.remove(held)
        kept = [each for each in there if not each.is_cut]
        assert list(hall.places) == kept
        assert not any(each.is_cut and each.waited_for for each in there)
        for each in kept:
            assert each.peer.connections == sum(other.peer is each.peer for other in kept)
            assert each.peer.connections <= LIMITS.connections_per_peer
        assert len(kept) <= LIMITS.connections
