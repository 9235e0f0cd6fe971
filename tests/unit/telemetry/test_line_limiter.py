"""How many lines of a burst are written, and how the others are reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from webhook.telemetry.log import Counts, LineLimiter

START: Final = 1000.25  # of the clock: no second's beginning


class Burst:
    """A burst of lines with a clock of the test. `told`: the reported counts, each with its time."""

    def __init__(self, per_second: int) -> None:
        self.now = START
        self.told: list[tuple[float, Counts]] = []
        self._alarms: list[tuple[float, Callable[[], None]]] = []
        self.limiter = LineLimiter(
            per_second,
            lambda counts: self.told.append((self.now - START, counts)),
            clock=lambda: self.now,
            call_later=lambda seconds, call: self._alarms.append((self.now + seconds, call)),
        )

    def until(self, seconds: float) -> None:
        """Set the clock to so many seconds after the start."""
        due = [alarm for alarm in self._alarms if alarm[0] <= START + seconds]
        self._alarms = [alarm for alarm in self._alarms if alarm not in due]
        for at, call in due:
            self.now = at
            call()
        self.now = START + seconds

    def lines(self, count: int, *key: str) -> int:
        """Return how many of these lines are allowed."""
        return sum(self.limiter.allows(*key) for _ in range(count))


@pytest.mark.parametrize(("per_second", "lines", "written"), [(3, 2, 2), (3, 3, 3), (3, 4, 3), (0, 1, 0)])
def test_the_first_lines_of_a_second_pass(per_second: int, lines: int, written: int) -> None:
    """Exactly the permitted number; the others are counted."""
    burst = Burst(per_second)
    assert burst.lines(lines, "a") == written
    assert burst.limiter.left_out == lines - written


def test_a_second_begins_with_its_first_line() -> None:
    """Lines are allowed again when a second is over, and not before."""
    burst = Burst(2)
    burst.lines(2, "a")
    burst.until(0.99)
    assert burst.lines(1, "a") == 0
    burst.until(1.0)
    assert burst.lines(3, "a") == 2


def test_left_out_lines_are_reported_once_a_second_by_key() -> None:
    """At the end of the second, even if no other line follows, and only once."""
    burst = Burst(1)
    burst.lines(3, "required", "ShareManagerPod")
    burst.lines(2, "unchanged", "NoClaims")
    assert burst.told == []
    burst.until(5)
    assert burst.told == [(1.0, {("required", "ShareManagerPod"): 2, ("unchanged", "NoClaims"): 2})]


def test_a_longer_burst_is_reported_each_second() -> None:
    """Each report has the lines since the report before."""
    burst = Burst(1)
    for second in range(3):
        burst.until(second)
        burst.lines(second + 2, "a")
    burst.until(10)
    assert burst.told == [(1.0, {("a",): 1}), (2.0, {("a",): 2}), (3.0, {("a",): 3})]
    assert burst.limiter.left_out == 6


def test_left_out_lines_are_reported_at_the_end() -> None:
    """A program that stops during a burst reports the counts first."""
    burst = Burst(0)
    burst.lines(4, "a")
    burst.limiter.flush()
    burst.limiter.flush()
    assert burst.told == [(0.0, {("a",): 4})]


def test_without_a_loop_the_next_line_reports() -> None:
    """Without an event loop there is no timer, so the next line reports the counts."""
    told: list[Counts] = []
    now = [START]
    limiter = LineLimiter(0, told.append, clock=lambda: now[0])
    limiter.allows("a")
    now[0] += 1
    limiter.allows("b")
    assert told == [{("a",): 1}]
