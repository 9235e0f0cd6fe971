"""The invariants hold for every seed; each planted fault is found.

`make soak` plays more seeds. SIMULATED_FROM names the first seed, so that other machines play others.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor

import pytest
from simulation.account import LOCAL
from simulation.invariants import Broken
from simulation.planted_faults import PLANTED_FAULTS
from simulation.policies import OURS, REUNITE, Policy
from simulation.run import Run
from simulation.table import share
from support.sizes import size

FIRST_SEED = int(os.environ.get("SIMULATED_FROM", "1"))
SEEDS = 8
SLOW = ("a second migration of a VM is made",)


def _hours(run: Run) -> float:
    """Play the run in a process of its own, which can't return a world."""
    return run.play().account.hours.total()


@pytest.mark.soak
@pytest.mark.parametrize(
    "policy", [OURS, pytest.param(REUNITE, marks=pytest.mark.soak_only)], ids=lambda each: each.title
)
def test_the_invariants_hold_for_each_seed(policy: Policy) -> None:
    """Two rough days with the faults that the seed draws. A failure prints the command that replays it."""
    runs = [Run(policy.title, seed) for seed in range(FIRST_SEED, FIRST_SEED + size("SIMULATED_SEEDS"))]
    with ProcessPoolExecutor() as processes:
        assert len(list(processes.map(_hours, runs))) == len(runs)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak_only if name in SLOW else ()) for name in PLANTED_FAULTS]
)
def test_a_planted_fault_is_found(name: str) -> None:
    """It breaks an invariant within a few seeds; or VMs are on their share-manager's node for less time."""
    fault = PLANTED_FAULTS[name]
    run = Run(fault.policy.title, 1, fault.workload, fault.scene)
    if fault.less_local:
        wrong, right = (share(each.play().account.hours, LOCAL) for each in (run._replace(planted=name), run))
        assert wrong < right
        return
    assert any(_breaks(run._replace(seed=seed, planted=name)) for seed in range(1, 1 + SEEDS))


def _breaks(run: Run) -> bool:
    try:
        run.play()
    except Broken:
        return True
    return False
