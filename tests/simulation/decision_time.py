"""DecisionTime: the time of a decision, which knows until when the same facts lead to the same decision.

`reunite` decides each ten seconds, and in most rounds nothing has changed. What a decision says then changes only by
the time, at a moment with which the decision has compared it.
"""

from __future__ import annotations

from math import inf
from typing import Self


class DecisionTime(float):
    """Seconds since 1970. `next_change` is the first moment at which one of its comparisons can come out otherwise."""

    behind: float
    _of: DecisionTime

    def __new__(cls, seconds: float, of: DecisionTime | None = None) -> Self:
        """`of`: the time of the same decision that this one is derived from."""
        time = super().__new__(cls, seconds)
        time._of = of or time
        time.behind = float(time._of) - seconds
        return time

    def __init__(self, *_: object) -> None:
        self.next_change = inf

    def __sub__(self, seconds: float) -> DecisionTime:
        return DecisionTime(float(self) - seconds, self._of)

    def __lt__(self, other: float) -> bool:
        self._note(other)
        return super().__lt__(other)

    def __le__(self, other: float) -> bool:
        self._note(other)
        return super().__le__(other)

    def __gt__(self, other: float) -> bool:
        self._note(other)
        return super().__gt__(other)

    def __ge__(self, other: float) -> bool:
        self._note(other)
        return super().__ge__(other)

    def _note(self, other: float) -> None:
        if float.__ge__(float(other), float(self)):
            self._of.next_change = min(self._of.next_change, other + self.behind)
