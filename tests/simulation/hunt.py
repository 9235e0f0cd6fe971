"""The hunt for planted faults: which invariant finds which fault, or which comparison, and with how many seeds.

A fault that breaks no invariant is compared with the same seeds without the fault. It counts as found only if every run
with the fault has a smaller share of local VM-hours. A fault without an effect on that share does so by chance with
12 of 12 seeds once in 4,096 hunts.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from simulation.account import LOCAL
from simulation.invariants import Broken, Invariants
from simulation.month import ROUGH
from simulation.mutations import MUTATIONS, Mutation, Plant
from simulation.policies import Policy
from simulation.table import share
from simulation.world import World

SEEDS: Final = 12
LESS_LOCAL: Final = "less local with every seed"


class Found(NamedTuple):
    """What found a fault, and with which seed: an invariant, LESS_LOCAL with the last seed, or empty for nothing."""

    by: str
    seed: int


def play(policy: Policy, seed: int, *plants: Plant) -> float:
    """Play the rough days, with what is planted, and return the share of local VM-hours in %.

    Raises:
        Broken: an invariant does not hold.
    """
    world = World(policy, seed, ROUGH, with_faults=True)
    Invariants(world)
    world.planted = lambda each: [plant(each) for plant in plants]
    world.play_month()
    return share(world.account.hours, LOCAL)


_local_without = cache(play)


def hunt(fault: Mutation, seeds: int = SEEDS) -> Found:
    """Look for a planted fault, seed by seed. Fewer than SEEDS seeds are too few for a comparison."""
    less_local = seeds >= SEEDS
    for seed in range(1, seeds + 1):
        try:
            local = play(fault.policy, seed, fault.scene, fault.plant)
        except Broken as broken:
            return Found(broken.invariant, seed)
        less_local = less_local and local < _local_without(fault.policy, seed, fault.scene)
    return Found(LESS_LOCAL if less_local else "", seeds)


def found(count: int) -> dict[str, Found]:
    """Look for the first so many of MUTATIONS; return what found each, by its name."""
    return {name: hunt(fault) for name, fault in list(MUTATIONS.items())[:count]}
