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
VM: Final = Usage((("cpu", 1000), ("memory", 2**30)))


def test_nothing_is_contested_while_nothing_was_promised() -> None:
    """A VM that starts alone gets the last place; and so it is again when a promise is settled."""
    promises = Promises()
    assert promises.contested(NODE) == {}
    promises.add("vm", NODE, VM)
    assert promises.contested(NODE)
    promises.settle("vm")
    assert promises.contested(NODE) == {}


def test_the_last_place_is_contested_while_others_ask() -> None:
    """Promised or not, and also when others' pins have settled all of ours; for as long as that is not forgotten."""
    promises = Promises()
    for _ in range(2):
        promises.ask(VM)
    promises.add("vm", NODE, VM)
    promises.matched(NODE)
    assert promises.open(NODE) == 0
    assert promises.contested(NODE) == {"pods": 1, "cpu": 1000, "memory": 2**30}
    promises.forget()
    assert promises.contested("n2")
    promises.forget()
    assert promises.contested(NODE) == {}


def test_as_much_as_we_and_one_more() -> None:
    """On the node of the promises; on others, one. A VM has one, however often it asks."""
    promises = Promises()
    promises.ask(VM)
    for owner in ("a", "b", "b"):
        promises.add(owner, NODE, VM)
    assert (promises.open(NODE), promises.open("n2")) == (2, 0)
    assert promises.contested(NODE) == {"pods": 3, "cpu": 3000, "memory": 3 * 2**30}
    assert promises.contested("n2") == {"pods": 1, "cpu": 1000, "memory": 2**30}


def test_a_pin_of_another_settles_the_oldest() -> None:
    """Once; and what was settled so is settled when its time comes."""
    promises = Promises()
    promises.add("oldest", NODE, VM)
    promises.add("other", NODE, Usage((("cpu", 1),)))
    promises.ask(Usage((("cpu", 1),)))
    promises.matched(NODE)
    promises.settle("oldest")
    assert promises.contested(NODE) == {"pods": 2, "cpu": 2}
    promises.matched("n2")
    promises.matched(NODE)
    promises.matched(NODE)
    promises.forget()
    assert promises.contested(NODE) == {}


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

    def hears(self) -> None:
        """Another's pin is seen."""
        self.load.add(VM)
        self.promises.matched(NODE)


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
    """Each gives its half, and hears of the other's."""
    first, second = Replica(), Replica()
    for _ in range(seats):
        for me, other in ((first, second), (second, first)):
            if me.ask(seats):
                other.hears()
    assert first.given + second.given >= seats - 1
