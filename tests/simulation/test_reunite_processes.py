"""What surrounds a process of `reunite`: pins that are spoiled, and a second process."""

from __future__ import annotations

from dataclasses import replace

import pytest
from simulation.invariants import Invariants
from simulation.month import ROUGH
from simulation.policies import REUNITE
from simulation.reuniting import Reuniting
from simulation.spoiled import spoil
from simulation.world import World
from support.sizes import size

HALF_A_DAY = replace(ROUGH, days=0.6)  # a node loss and many drains are in it
SEEDS = [pytest.param(seed, marks=pytest.mark.soak_only if seed > 1 else ()) for seed in range(1, 13)]
_TWICE = REUNITE._replace(install=lambda world: [Reuniting(world, f"reunite {n}").begin() for n in (1, 2)])


@pytest.mark.parametrize("seed", SEEDS)
def test_pods_of_spoiled_pins_are_freed(seed: int) -> None:
    """Nodes are cordoned and lost between admission and binding: other nodes run the VMs within 90 s."""
    world = World(REUNITE, seed, HALF_A_DAY if seed == 1 else ROUGH, with_faults=True)
    Invariants(world)
    world.planted = spoil
    world.play_month()
    assert world.reuniting[0].stuck.freed


@pytest.mark.soak
def test_two_processes_make_no_second_migration() -> None:
    """Both decide by what they see. The fixed names, and KubeVirt's own refusal, leave one migration of a VM."""
    for seed in range(1, 1 + min(size("SIMULATED_SEEDS"), 100)):
        world = World(_TWICE, seed, ROUGH if seed > 1 else HALF_A_DAY, with_faults=True)
        checked = Invariants(world)
        world.play_month()
        assert checked.moves.made, f"seed {seed}"
