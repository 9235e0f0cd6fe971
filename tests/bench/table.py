"""Figures as rows: what, how much, the goal where there is one, and whether it was met."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

_WIDTH: Final = 66


def title(text: str) -> None:
    """The head of a table."""
    sys.stdout.write(f"\n{text:{_WIDTH}}{'figure':>12}{'goal':>10}\n")


def row(what: str, figure: float, goal: float | None = None, *, digits: int = 1) -> None:
    """One figure; a goal is the most that it may be. Shown as it comes: a long run should say what it does."""
    judged = "" if goal is None else f"{f'<= {goal:g}':>10}  {'met' if figure <= goal else 'NOT MET'}"
    sys.stdout.write(f"{what:{_WIDTH}}{figure:12.{digits}f}{judged}\n")
    sys.stdout.flush()


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest of the values that so many percent of them are not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
