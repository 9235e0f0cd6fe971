"""How many lines of a storm are written, and what is told of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from webhook.telemetry.log import Counts, Storm

START: Final = 1000.25  # of the clock: no second's beginning


class Weather:
    """A storm in a time that a test makes: `told` is what it told, each with its time."""

    def __init__(self, per_second: int) -> None:
        self.now = START
        self.told: list[tuple[float, Counts]] = []
        self._alarms: list[tuple[float, Callable[[], None]]] = []
        self.storm = Storm(
            per_second,
            lambda counts: self.told.append((self.now - START, counts)),
            clock=lambda: self.now,
            later=lambda seconds, call: self._alarms.append((self.now + seconds, call)),
        )

    def until(self, seconds: float) -> None:
        """Let so much time be over since the start."""
        due = [alarm for alarm in self._alarms if alarm[0] <= START + seconds]
        self._alarms = [alarm for alarm in self._alarms if alarm not in due]
        for at, call in due:
            self.now = at
            call()
        self.now = START + seconds

    def lines(self, count: int, *key: str) -> int:
        """How many of so many lines pass."""
        return sum(self.storm.passes(*key) for _ in range(count))


@pytest.mark.parametrize(("per_second", "lines", "written"), [(3, 2, 2), (3, 3, 3), (3, 4, 3), (0, 1, 0)])
def test_the_first_lines_of_a_second_pass(per_second: int, lines: int, written: int) -> None:
    """As many as were allowed; those that did not are counted."""
    weather = Weather(per_second)
    assert weather.lines(lines, "a") == written
    assert weather.storm.left_out == lines - written


def test_a_second_begins_with_its_first_line() -> None:
    """What was allowed is allowed again when a second is over, and not before."""
    weather = Weather(2)
    weather.lines(2, "a")
    weather.until(0.99)
    assert weather.lines(1, "a") == 0
    weather.until(1.0)
    assert weather.lines(3, "a") == 2


def test_what_was_left_out_is_told_once_a_second_by_key() -> None:
    """When the second is over, though no line comes any more; and nothing of it a second time."""
    weather = Weather(1)
    weather.lines(3, "required", "ShareManagerPod")
    weather.lines(2, "unchanged", "NoClaims")
    assert weather.told == []
    weather.until(5)
    assert weather.told == [(1.0, {("required", "ShareManagerPod"): 2, ("unchanged", "NoClaims"): 2})]


def test_a_storm_that_lasts_is_told_each_second() -> None:
    """Each time with what has been left out since."""
    weather = Weather(1)
    for second in range(3):
        weather.until(second)
        weather.lines(second + 2, "a")
    weather.until(10)
    assert weather.told == [(1.0, {("a",): 1}), (2.0, {("a",): 2}), (3.0, {("a",): 3})]
    assert weather.storm.left_out == 6


def test_what_was_left_out_is_told_at_the_end() -> None:
    """A program that stops in a storm says so before."""
    weather = Weather(0)
    weather.lines(4, "a")
    weather.storm.flush()
    weather.storm.flush()
    assert weather.told == [(0.0, {("a",): 4})]


def test_without_a_loop_the_next_line_tells() -> None:
    """Nothing is lost where nobody can be asked to come back later."""
    told: list[Counts] = []
    now = [START]
    storm = Storm(0, told.append, clock=lambda: now[0])
    storm.passes("a")
    now[0] += 1
    storm.passes("b")
    assert told == [{("a",): 1}]
