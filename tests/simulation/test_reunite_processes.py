"""What surrounds a process of `reunite`: pinned nodes that fail, and a second process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from simulation.policies import REUNITE, TWICE
from simulation.run import Run
from support.sizes import size


def runs(of: Run) -> Iterator[Run]:
    """A run for each seed: some hours with the first one, two days with the others."""
    for seed in range(1, 1 + min(size("SIMULATED_SEEDS"), 100)):
        yield of._replace(seed=seed, workload="rough" if seed > 1 else "half a day")


@pytest.mark.soak
def test_pods_of_failed_pinned_nodes_are_freed() -> None:
    """Nodes are cordoned and lost between admission and binding: the next run lets other nodes run the VMs."""
    for run in runs(Run(REUNITE.title, scene="pinned nodes fail")):
        world, _ = run.checked_world()
        world.play_month()
        assert world.reuniting[0].requests.freed, world.replay


@pytest.mark.soak
def test_two_processes_make_no_second_migration() -> None:
    """Both decide by what they see. The fixed names, and KubeVirt's own refusal, leave one migration of a VM."""
    for run in runs(Run(TWICE.title)):
        world, checks = run.checked_world()
        world.play_month()
        assert checks.moves.made, world.replay
