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

SEEDS: Final = 12
# In % of the rough days; the least of 8 seeds without a planted fault was 65 and 74.
LEAST_LOCAL: Final = {OURS.title: 58.0, REUNITE.title: 70.0}
MOST_SINCE_START: Final = 6.0  # in %: the table has 0, and here 1 % of the answers is lost, and replicas die


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
    local, since_start = share(world.account.hours, LOCAL), share(world.account.hours, "start")
    if local < LEAST_LOCAL[policy.title]:
        return f"local {local:.0f} %"
    return f"apart since a start {since_start:.0f} %" if since_start > MOST_SINCE_START else ""


def hunt(name: str, seeds: int = SEEDS) -> Found:
    """Look for a planted fault, seed by seed."""
    for seed in range(1, seeds + 1):
        if invariant := play(MUTATIONS[name], "", seed):
            return Found(invariant, seed)
    return Found("", seeds)
