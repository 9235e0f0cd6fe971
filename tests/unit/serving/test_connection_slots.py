"""Which connection is closed when a listener has no free slot: by rows, and for any sequence of events."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.serving.connection_slots import ConnectionSlots, Peer
from webhook.serving.routes import Limits

LIMITS: Final = Limits(connections=4, connections_per_peer=3)


class Held:
    """A connection: what it did, and whether it was aborted."""

    def __init__(self, peer: Peer, *, caller_waits: bool = False) -> None:
        self.peer, self.last_request_at, self.caller_waits = peer, -inf, caller_waits
        self.is_cut = False

    def abort(self) -> None:
        """Note that the connection was aborted."""
        self.is_cut = True


class ListenerSlots:
    """The slots of a listener, and a clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slots: ConnectionSlots[Held] = ConnectionSlots(LIMITS, lambda: self.now)

    def connect(self, address: str, asked_ago: float | None = None, *, caller_waits: bool = False) -> Held | None:
        """Connect from `address`, with a request so many seconds ago. None: the connection was refused."""
        peer = self.slots.reserve(address)
        if peer is None:
            return None
        held = Held(peer, caller_waits=caller_waits)
        self.slots.add(held)
        if asked_ago is not None:
            held.last_request_at = self.now - asked_ago
            self.slots.request_arrived(held)
        return held


Row = tuple[str, float | None, bool]
"""An address, how many seconds ago it sent a request, and whether a caller waits for an answer."""

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


@pytest.mark.parametrize(("existing", "new_address", "gone"), ROWS.values(), ids=ROWS)
def test_which_connection_is_closed(existing: Sequence[Row], new_address: str, gone: int | None) -> None:
    """`gone`: the index of the aborted connection, -1 for none, None if the new connection is refused."""
    listener = ListenerSlots()
    held = [
        listener.connect(address, asked_ago, caller_waits=caller_waits) for address, asked_ago, caller_waits in existing
    ]
    new = listener.connect(new_address)
    assert (new is None) == (gone is None)
    assert [each is not None and each.is_cut for each in held] == [index == gone for index in range(len(held))]
    assert len(listener.slots) <= LIMITS.connections


def test_an_address_that_asked_is_known_while_it_is_connected() -> None:
    """The address is known by any of its connections. After the last one is gone, nothing of it is stored."""
    listener = ListenerSlots()
    asked, spare = listener.connect("a", 0), listener.connect("a")
    assert asked
    assert spare
    assert spare.peer.has_sent
    listener.slots.remove(asked)
    listener.slots.remove(asked)  # it was cut, and then is lost
    again = listener.connect("a")
    assert again
    assert again.peer is spare.peer
    for each in (spare, again):
        listener.slots.remove(each)
    new = listener.connect("a")
    assert new
    assert (new.peer.has_sent, new.peer.connections, len(listener.slots)) == (False, 1, 1)


def test_an_address_whose_last_connection_is_closed_is_counted_again() -> None:
    """A new connection can come from the address whose connection it replaces."""
    listener = ListenerSlots()
    for address in "abcd":
        listener.connect(address)
    new = listener.connect("a")
    assert new
    assert new.peer.connections == 1
    assert [each.peer.address for each in listener.slots] == ["b", "c", "d", "a"]


def test_a_flood_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """The line has the counts of closed and refused connections, and the latest address."""
    listener = ListenerSlots()
    for _ in range(4):
        listener.connect("a", 1, caller_waits=True)
    for _ in range(8):
        listener.connect("b")
    listener.now += 60
    listener.connect("a")
    told = [vars(record)["fields"] for record in caplog.records]
    assert [(each["latest_from"], each["cut_so_far"], each["refused_so_far"]) for each in told] == [
        ("a", 0, 1),
        ("a", 7, 2),
    ]


STEPS: Final = st.lists(
    st.tuples(st.sampled_from(["come", "ask", "answer", "leave"]), st.sampled_from("abc"), st.integers(0, 9))
)


@given(STEPS)
def test_slots_add_up(steps: list[tuple[str, str, int]]) -> None:
    """At most the limit, none lost, no awaited call aborted. A new connection is accepted if another can be closed."""
    listener, existing = ListenerSlots(), list[Held]()
    for step, address, number in steps:
        listener.now += 1
        existing = [each for each in existing if not each.is_cut]
        if step == "come":
            own = [each for each in existing if each.peer.address == address]
            before = own if len(own) == LIMITS.connections_per_peer else existing
            full = len(before) >= (LIMITS.connections_per_peer if before is own else LIMITS.connections)
            new = listener.connect(address)
            assert (new is None) == (full and all(each.caller_waits for each in before))
            existing += [new] if new else []
        elif existing:
            held = existing[number % len(existing)]
            if step == "ask":
                held.caller_waits, held.last_request_at = True, listener.now
                listener.slots.request_arrived(held)
            elif step == "answer":
                held.caller_waits = False
            else:
                listener.slots.remove(held)
                existing.remove(held)
        kept = [each for each in existing if not each.is_cut]
        assert list(listener.slots) == kept
        assert not any(each.is_cut and each.caller_waits for each in existing)
        for each in kept:
            assert each.peer.connections == sum(other.peer is each.peer for other in kept)
            assert each.peer.connections <= LIMITS.connections_per_peer
        assert len(kept) <= LIMITS.connections
