"""The hunt for planted faults: which invariant finds which fault, or which comparison, and with how many seeds.

A fault that breaks no invariant is compared with the same seeds without the fault. It counts as found only if every run
with the fault has a smaller share of local VM-hours. A fault without an effect on that share does so by chance with
12 of 12 seeds once in 4,096 hunts.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from simulation.account import LOCAL
from simulation.invariants import Broken
from simulation.mutations import MUTATIONS, PLANTED
from simulation.run import Run
from simulation.table import share

SEEDS: Final = 12
LESS_LOCAL: Final = "less local with every seed"


class Found(NamedTuple):
    """What found a fault, and with which seed: an invariant, LESS_LOCAL with the last seed, or empty for nothing."""

    by: str
    seed: int


def play(run: Run) -> float:
    """Play it, and return the share of local VM-hours in %.

    Raises:
        Broken: an invariant does not hold.
    """
    world, _ = run.checked_world()
    world.play_month()
    return share(world.account.hours, LOCAL)


_local_without = cache(play)


def hunt(name: str, seeds: int = SEEDS, scene: str = "") -> Found:
    """Look for a planted fault, seed by seed. Fewer than SEEDS seeds are too few for a comparison."""
    fault, less_local = PLANTED[name], seeds >= SEEDS
    for seed in range(1, seeds + 1):
        run = Run(fault.policy.title, seed, fault.workload, scene or fault.scene)
        try:
            local = play(run._replace(planted=name))
        except Broken as broken:
            return Found(broken.invariant, seed)
        less_local = less_local and local < _local_without(run)
    return Found(LESS_LOCAL if less_local else "", seeds)


def found(count: int) -> dict[str, Found]:
    """Look for the first so many of MUTATIONS; return what found each, by its name."""
    return {name: hunt(name) for name in list(MUTATIONS)[:count]}
