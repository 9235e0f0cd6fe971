"""How the time of VMs in each state is counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from webhook.core.observe.vm_status import State
from webhook.kube.vm_status import VMSeconds

NOBODY: Final = dict.fromkeys(State, 0)
ONE_EACH: Final = dict.fromkeys(State, 1)
Pass = tuple[float, Mapping[State, int], bool]  # when it ended, the VMs by state, whether a cache was late

TWO: Final = {**NOBODY, State.TOGETHER: 2}
APART: Final = {**NOBODY, State.TOGETHER: 1, State.APART: 1}
CASES: Final[dict[str, tuple[list[Pass], dict[State, float]]]] = {
    "no pass": ([], {}),
    "one pass": ([(5, TWO, False)], {}),
    "two passes": ([(5, TWO, False), (15, TWO, False)], {State.TOGETHER: 20}),
    "the states of the pass before": (
        [(0, TWO, False), (10, APART, False), (22, TWO, False)],
        {State.TOGETHER: 32, State.APART: 12},
    ),
    "every state": ([(0, ONE_EACH, False), (10, ONE_EACH, False)], dict.fromkeys(State, 10)),
    "two passes at one time": ([(0, TWO, False), (0, TWO, False)], {}),
    "just not a pass missing": ([(0, TWO, False), (20, TWO, False)], {State.TOGETHER: 40}),
    "a pass missing": ([(0, TWO, False), (20.001, TWO, False)], {}),
    "a suspended process": (
        [(0, TWO, False), (10, TWO, False), (3610, APART, False), (3620, APART, False)],
        {State.TOGETHER: 30, State.APART: 10},
    ),
    "a suspended process with late caches": ([(0, TWO, True), (3600, TWO, True)], {}),
    "a cache that becomes late": ([(0, APART, False), (10, APART, True)], {State.UNKNOWN: 20}),
    "a cache that was late": ([(0, APART, True), (10, APART, False)], {State.UNKNOWN: 20}),
    "a cache that was late for a pass": (
        [(0, TWO, False), (10, TWO, False), (20, TWO, True), (30, TWO, False), (40, TWO, False)],
        {State.TOGETHER: 40, State.UNKNOWN: 40},
    ),
}


@pytest.mark.parametrize(("passes", "counted"), CASES.values(), ids=CASES)
def test_time_is_counted_only_if_passes_saw_it(passes: list[Pass], counted: dict[State, float]) -> None:
    """Every state has a number, also if no VM was in it."""
    seconds = VMSeconds()
    for at, counts, late in passes:
        seconds.add(counts, late=late, at=at)
    assert seconds.by_state == {**NOBODY, **counted}
