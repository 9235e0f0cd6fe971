"""The invariants hold for every seed; each planted fault is found.

`make soak` plays more seeds. SIMULATED_FROM names the first seed, so that other machines play others.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor

import pytest
from simulation.invariants import Broken
from simulation.planted_faults import PLANTED_FAULTS
from simulation.run import Run
from simulation.scenes import SCENES
from support.sizes import size

FIRST_SEED = int(os.environ.get("SIMULATED_FROM", "1"))
SEEDS = 12


def _migrations(run: Run) -> int:
    """Play the run in a process of its own, which can't return a world, and return how many `reunite` made."""
    world, checks = run.checked_world()
    world.play()
    return checks.moves.made


@pytest.mark.soak
@pytest.mark.parametrize("reunite", [0, pytest.param(1, marks=pytest.mark.soak_only), 2])
def test_the_invariants_hold_for_each_seed(reunite: int) -> None:
    """Two rough days with the faults that the seed draws. A failure prints the command that replays it.

    Two processes of `reunite` decide by what they see: fixed names and KubeVirt's refusal leave a VM one migration.
    """
    seeds = range(FIRST_SEED, FIRST_SEED + size("SIMULATED_SEEDS"))
    scenes = ["", *SCENES]
    with ProcessPoolExecutor() as processes:
        made = list(processes.map(_migrations, [Run(seed, reunite, scene=scenes[seed % 3]) for seed in seeds]))
    assert len(made) == len(seeds)
    assert all(made) == bool(reunite)


@pytest.mark.parametrize("name", PLANTED_FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    """It breaks an invariant within a few seeds; or VMs are on their share-manager's node for less time."""
    fault = PLANTED_FAULTS[name]
    run = Run(reunite=fault.reunite, scene=fault.scene)
    if fault.less_local:
        wrong, right = (each.play().account.local_share for each in (run._replace(planted=name), run))
        assert wrong < right
        return
    assert any(_breaks(run._replace(seed=seed, planted=name)) for seed in range(1, 1 + SEEDS))


def _breaks(run: Run) -> bool:
    try:
        run.play()
    except Broken:
        return True
    return False
