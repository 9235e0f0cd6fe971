"""What surrounds a process of `reunite`: pins that are spoiled, and a second process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from simulation.invariants import Invariants
from simulation.month import ROUGH
from simulation.policies import REUNITE, Policy
from simulation.reuniting import Reuniting
from simulation.spoiled import spoil
from simulation.world import World
from support.sizes import size

HALF_A_DAY = replace(ROUGH, days=0.6)  # a node loss and many drains are in it
_TWICE = REUNITE._replace(install=lambda world: [Reuniting(world, f"reunite {n}").begin() for n in (1, 2)])


def worlds(policy: Policy) -> Iterator[World]:
    """A world for each seed: some hours with the first one, two days with the others."""
    for seed in range(1, 1 + min(size("SIMULATED_SEEDS"), 100)):
        yield World(policy, seed, ROUGH if seed > 1 else HALF_A_DAY, with_faults=True)


@pytest.mark.soak
def test_pods_of_spoiled_pins_are_freed() -> None:
    """Nodes are cordoned and lost between admission and binding: other nodes run the VMs within 90 s."""
    for world in worlds(REUNITE):
        Invariants(world)
        world.planted = spoil
        world.play_month()
        assert world.reuniting[0].stuck.freed, world.replay


@pytest.mark.soak
def test_two_processes_make_no_second_migration() -> None:
    """Both decide by what they see. The fixed names, and KubeVirt's own refusal, leave one migration of a VM."""
    for world in worlds(_TWICE):
        checked = Invariants(world)
        world.play_month()
        assert checked.moves.made, world.replay
