"""The hunt for planted faults: which invariant finds which fault, and with how many seeds."""

from __future__ import annotations

from typing import Final, NamedTuple

from simulation.account import LOCAL
from simulation.invariants import Broken, Invariants
from simulation.month import ROUGH
from simulation.mutations import MUTATIONS, Mutation
from simulation.policies import OURS, REUNITE
from simulation.table import share
from simulation.world import World

SEEDS: Final = 6
LEAST_LOCAL: Final = {OURS.title: 60.0, REUNITE.title: 70.0}  # in %, of the rough days


class Found(NamedTuple):
    """What found a fault, and with which seed; `invariant` is empty if no seed did."""

    invariant: str
    seed: int


def play(policy_of: Mutation | None, title: str, seed: int) -> str:
    """Play the rough days with a planted fault, or with none; return the invariant that broke, empty for none."""
    policy = policy_of.policy if policy_of else {OURS.title: OURS, REUNITE.title: REUNITE}[title]
    world = World(policy, seed, ROUGH, with_faults=True)
    Invariants(world)
    if policy_of:
        world.planted = policy_of.plant
    try:
        world.play_month()
    except Broken as broken:
        return broken.invariant if policy_of else str(broken)
    local = share(world.account.hours, LOCAL)
    return "" if local >= LEAST_LOCAL[policy.title] else f"local {local:.0f} %"


def hunt(name: str, seeds: int = SEEDS) -> Found:
    """Look for a planted fault, seed by seed."""
    for seed in range(1, seeds + 1):
        if invariant := play(MUTATIONS[name], "", seed):
            return Found(invariant, seed)
    return Found("", seeds)
