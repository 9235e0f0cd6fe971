"""A process of `reunite` beside a second one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from simulation.policies import TWICE
from simulation.run import Run
from support.sizes import size


def runs(of: Run) -> Iterator[Run]:
    """A run for each seed: some hours with the first one, two days with the others."""
    for seed in range(1, 1 + min(size("SIMULATED_SEEDS"), 100)):
        yield of._replace(seed=seed, workload="rough" if seed > 1 else "half a day")


@pytest.mark.soak
def test_two_processes_make_no_second_migration() -> None:
    """Both decide by what they see. The fixed names, and KubeVirt's own refusal, leave one migration of a VM."""
    for run in runs(Run(TWICE.title)):
        world, checks = run.checked_world()
        world.play_month()
        assert checks.moves.made, world.replay
