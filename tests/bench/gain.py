"""`make gain`: what it takes a VM to read, write and fsync 4 KiB, on the share-manager's node and over a network.

The server is NFS-Ganesha, as in a share-manager. docs/concepts/gain.md has the figures, and says what they do not show.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from nfs.testbed import Testbed, Unfit, Way, testbed  # noqa: E402 - a script finds its neighbours after it has said where they are

LOCAL: Final = Way("the share-manager's node")
WAYS: Final = (LOCAL, *(Way(f"relay, {added} us added", added) for added in (0, 100, 200, 500)))
OPERATIONS: Final = ("read", "write", "fsync")
DEPTHS: Final = (1, 16)
AGREE_PERCENT: Final = 15  # issue 16 asks for runs that agree so far

Case = tuple[Way, str, int]
CASES: Final[tuple[Case, ...]] = tuple(
    (way, name, depth)
    for way in WAYS
    for name, depth in (("null", 1), *((name, depth) for depth in DEPTHS for name in OPERATIONS))
)


class Plan(NamedTuple):
    """How long it measures."""

    runs: int
    rounds: int
    slice_seconds: float


FULL: Final = Plan(runs=3, rounds=24, slice_seconds=0.08)
QUICK: Final = Plan(runs=1, rounds=1, slice_seconds=0.02)


class Figure(NamedTuple):
    """The p50 of each run, in microseconds."""

    runs: Sequence[float]

    @property
    def p50(self) -> float:
        """The middle run."""
        return statistics.median(self.runs)

    @property
    def spread_percent(self) -> float:
        """How far the runs are from each other."""
        return (max(self.runs) - min(self.runs)) / self.p50 * 100

    def __str__(self) -> str:
        """The middle run, and the spread."""
        return f"{self.p50:.0f} ({self.spread_percent:.0f} %)"


def measure(bed: Testbed, plan: Plan) -> Mapping[Case, Figure]:
    """All cases take turns, slice by slice, so that a moment in which the machine is slow is in all of them."""
    runs: dict[Case, list[float]] = defaultdict(list)
    _round(bed, plan)  # the first requests of a connection are slow
    for number in range(1, plan.runs + 1):
        slices: dict[Case, list[float]] = defaultdict(list)
        for _ in range(plan.rounds):
            for case, p50 in _round(bed, plan):
                slices[case].append(p50)
        for case, found in slices.items():
            runs[case].append(middle_mean(found))
        sys.stderr.write(f"run {number} of {plan.runs} done\n")
    return {case: Figure(found) for case, found in runs.items()}


def middle_mean(values: Sequence[float]) -> float:
    """The mean of the values without their lowest and their highest quarter, so that a slow moment does not move it."""
    quarter = len(values) // 4
    return statistics.fmean(sorted(values)[quarter : len(values) - quarter])


def _round(bed: Testbed, plan: Plan) -> Sequence[tuple[Case, float]]:
    return [(case, bed.clients[case[0]].p50(case[1], case[2], plan.slice_seconds)) for case in CASES]


def table(figures: Mapping[Case, Figure]) -> Iterator[str]:
    """The figures as Markdown."""
    columns = [("null", 1), *((name, depth) for depth in DEPTHS for name in OPERATIONS)]
    yield f"| | {' | '.join(f'{name}, {depth}' for name, depth in columns)} |"
    yield "|---|" + "---:|" * len(columns)
    for way in WAYS:
        yield f"| {way.title} | {' | '.join(str(figures[way, *column]) for column in columns)} |"


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="show that it measures; the figures say nothing")
    plan = QUICK if parser.parse_args().quick else FULL
    try:
        with testbed(WAYS) as bed:
            figures, late_us = measure(bed, plan), bed.late_us()
            sys.stdout.write(f"p50 in microseconds (spread of {plan.runs} runs); {bed.server}\n\n")
    except Unfit as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    agree = sum(figure.spread_percent <= AGREE_PERCENT for figure in figures.values())
    lines = [
        *table(figures),
        "",
        f"{agree} of {len(figures)} figures: runs within {AGREE_PERCENT} %",
        f"the relay passes bytes on {late_us:.1f} us later than asked, on average",
        f"load average of the machine in the last 5 minutes: {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores",
    ]
    sys.stdout.write("\n".join([*lines, ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
