"""What two replicas may promise at once, that hear of each other late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.requests import Usage
from webhook.core.room import NodeLoad, refusal
from webhook.kube.promises import Promises

NODE: Final = "n1"
MANY: Final = 6
VM: Final = Usage((("cpu", 1000), ("memory", 2**30)))


def test_nothing_is_contested_while_nothing_was_promised() -> None:
    """A VM that starts alone gets the last place; and so it is again when a promise is settled."""
    promises = Promises()
    assert promises.contested(NODE) == {}
    promises.add("vm", NODE, VM)
    assert promises.contested(NODE)
    promises.settle("vm")
    assert promises.contested(NODE) == {}


class Clock:
    """The time, as a test has it."""

    now = 100.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now


def test_the_last_place_is_contested_while_others_ask() -> None:
    """Many of them in a moment, about whichever node, and whether or not anything was promised."""
    clock = Clock()
    promises = Promises(clock)
    for _ in range(MANY - 1):
        promises.ask(VM)
        assert promises.contested(NODE) == {}
    clock.now += 0.25
    promises.ask(VM)
    assert promises.open(NODE) == 0
    assert promises.contested(NODE) == {"pods": 1, "cpu": 1000, "memory": 2**30}
    clock.now += 1
    assert promises.contested(NODE)
    clock.now += 0.01
    assert promises.contested(NODE) == {}


def test_a_node_that_was_just_pinned_to_is_preferred_by_nobody() -> None:
    """By us or by another replica, which may have promised more: for a second, however soon that pod was there."""
    clock = Clock()
    promises = Promises(clock)
    for pin in (lambda: promises.add("vm", NODE, VM), lambda: promises.seen(NODE, ours=False)):
        pin()
        promises.settle("vm")
        assert promises.open(NODE) == 1
        clock.now += 1.1
        assert promises.open(NODE) == 0


def test_few_vms_that_start_leave_the_last_place_to_one() -> None:
    """However long they go on."""
    clock = Clock()
    promises = Promises(clock)
    for _ in range(100):
        promises.ask(VM)
        clock.now += 0.06
        assert promises.contested(NODE) == {}


def test_as_much_as_we_and_one_more() -> None:
    """On the node of the promises; on others one, if any. A VM has one, however often it asks."""
    promises = Promises()
    promises.ask(VM)
    for owner in ("a", "b", "b"):
        promises.add(owner, NODE, VM)
    assert (promises.open(NODE), promises.open("n2")) == (2, 0)
    assert promises.contested(NODE) == {"pods": 3, "cpu": 3000, "memory": 3 * 2**30}
    assert promises.contested("n2") == {}
    for _ in range(MANY):
        promises.ask(VM)
    assert promises.contested("n2") == {"pods": 1, "cpu": 1000, "memory": 2**30}


def test_what_is_settled_is_settled_once() -> None:
    """And the others stay open."""
    promises = Promises()
    promises.add("first", NODE, VM)
    promises.add("other", NODE, Usage((("cpu", 1),)))
    for _ in range(2):
        promises.settle("first")
    assert (promises.open(NODE), promises.contested(NODE)) == (1, {"pods": 2, "cpu": 1})


SEEN: Final[dict[str, tuple[str, int, int]]] = {
    "nothing is known": ("", 10, 1),
    "one of ours": ("+", 10, 1),
    "few of ours": ("+" * 19, 3, 1),
    "all are ours": ("+" * 20, 0, 0),
    "all were ours but one": ("+" * 19 + "-", 5, 1),
    "all were ours but one, long ago": ("-" + "+" * 500, 3, 1),
    "as many of theirs": ("+-" * 50, 10, 1),
    "half as many of theirs": ("++-" * 50, 10, 1),
    "a fifth as many": ("+++++-" * 20, 10, 1),
    "a fortieth as many": ("+" * 20 + "-" + "+" * 20, 3, 1),
    "thrice as many": ("+---" * 50, 10, 3),
    "theirs alone": ("-" * 500, 10, 16),
    "theirs, and then ours": ("-" * 500 + "+" * 40, 10, 1),
}


@pytest.mark.parametrize(("pins", "unknown", "ahead"), SEEN.values(), ids=SEEN)
def test_whose_pins_are_seen_tells_how_many_are_not(pins: str, unknown: int, ahead: int) -> None:
    """Beside ten promises of ours: with doubt, and never more than ten. And how many are asked for beside one of us."""
    promises = Promises()
    for _ in range(MANY):
        promises.ask(VM)
    for number in range(10):
        promises.add(number, NODE, VM)
    for pin in pins:
        promises.seen(NODE, ours=pin == "+")
    assert promises.open(NODE) == unknown
    assert promises.contested(NODE).get("pods", 0) == unknown + ahead
    assert promises.contested("n2").get("cpu", 0) == ahead * 1000
    assert unknown * 1000 - 1000 < promises.contested(NODE).get("cpu", 0) - ahead * 1000 <= unknown * 1000


def test_one_that_leaves_is_not_alone_any_more() -> None:
    """Calls turn to others: it gives half, as if they had come to all alike."""
    promises = Promises()
    promises.ask(VM)
    promises.leave()
    for _ in range(100):
        promises.seen(NODE, ours=True)
    for number in range(10):
        promises.add(number, NODE, VM)
    assert (promises.open(NODE), promises.contested(NODE)["pods"]) == (10, 11)


def test_who_was_asked_is_forgotten_when_nobody_is() -> None:
    """The next VM's call may go to another replica."""
    clock = Clock()
    promises = Promises(clock)
    promises.ask(VM)
    promises.add("vm", NODE, VM)
    for _ in range(20):
        promises.seen(NODE, ours=True)
    clock.now += 1
    promises.ask(VM)
    assert promises.contested(NODE) == {}
    clock.now += 1.1
    promises.ask(VM)
    assert promises.contested(NODE) == {"pods": 2, "cpu": 2000, "memory": 2**31}


@pytest.mark.parametrize(("seconds", "ahead"), [(0.9, 16), (1.1, 0)])
def test_one_that_calls_turn_to_knows_of_those_before_it(seconds: float, ahead: int) -> None:
    """As long as their pins were seen just now, what they have promised besides is more than what it has itself."""
    clock = Clock()
    promises = Promises(clock)
    promises.ask(VM)
    clock.now += 60
    for _ in range(100):
        promises.seen(NODE, ours=False)
    clock.now += seconds
    promises.ask(VM)
    assert promises.contested(NODE).get("pods", 0) == ahead
    assert promises.open("n2") == (ahead > 0)


class Replica:
    """One that counts its own pins at once, and another's when it is told."""

    def __init__(self) -> None:
        self.promises, self.load, self.given = Promises(), NodeLoad(), 0

    def ask(self, seats: int) -> bool:
        """Whether a VM is pinned to the node."""
        has = {"pods": 1000, "cpu": seats * 1000, "memory": 2**50}
        full = refusal(VM, has, self.load, self.promises.contested(NODE))
        self.promises.ask(VM)
        if full is not None:
            return False
        self.given += 1
        self.load.add(VM)
        self.promises.add(self.given, NODE, VM)
        return True

    def sees(self) -> None:
        """The pod that it has just pinned is there."""
        self.promises.seen(NODE, ours=True)

    def settles(self) -> None:
        """All its pods are seen, and those of the same time."""
        for owner in range(self.given + 1):
            self.promises.settle(owner)

    def hears(self) -> None:
        """Another's pin is seen."""
        self.load.add(VM)
        self.promises.seen(NODE, ours=False)


@given(seats=st.integers(0, 12), steps=st.lists(st.sampled_from(("ask 0", "ask 1", "hear 0", "hear 1")), max_size=60))
def test_two_give_no_place_too_many_but_an_only_one(seats: int, steps: Sequence[str]) -> None:
    """Whoever is asked how often, and whenever each hears of the other's pins.

    Where one place is left before either is asked at all, both may give it.
    """
    replicas, heard = (Replica(), Replica()), [0, 0]
    for step in steps:
        what, index = step.split()
        me, other = replicas[int(index)], replicas[1 - int(index)]
        if what == "ask":
            me.ask(seats)
        elif heard[int(index)] < other.given:
            heard[int(index)] += 1
            me.hears()
    assert sum(each.given for each in replicas) <= seats + (seats == 1)


@pytest.mark.parametrize("seats", [1, 2, 7, 10])
def test_all_seats_are_given_where_both_are_asked_alike(seats: int) -> None:
    """Each gives half of what is left, hears of the other's, and when its own are settled gives half of the rest."""
    first, second = Replica(), Replica()
    for _ in range(seats):
        for me, other in ((first, second), (second, first)):
            if me.ask(seats):
                me.sees()
                other.hears()
        for each in (first, second):
            each.settles()
    assert first.given + second.given >= seats - 1
