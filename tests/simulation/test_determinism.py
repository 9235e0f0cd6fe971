"""A seed always leads to the same run: that is what makes a failure of the simulation worth reading."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from simulation.invariants import Broken, Invariants
from simulation.month import SHORT
from simulation.policies import BOTH, OURS
from simulation.world import World

TESTS = Path(__file__).parents[1]
PLAY = """
from simulation.month import SHORT
from simulation.policies import BOTH
from simulation.world import World
world = World(BOTH, 7, SHORT, with_faults=True)
world.play_month()
print(world.engine.digest)
"""


def digest(seed: int) -> str:
    """Play five rough hours, and return the digest of the trace."""
    world = World(BOTH, seed, SHORT, with_faults=True)
    world.play_month()
    return world.engine.digest


def test_a_seed_leads_to_the_same_trace_in_other_processes_with_other_hashes() -> None:
    """Python's hashes of texts differ between the processes, and nothing of that is seen."""
    traces = {digest(7)}
    for hash_seed in ("1", "2"):
        environment = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{TESTS}:{TESTS.parent}"}
        command = [sys.executable, "-c", PLAY]
        played = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
        traces.add(played.stdout.strip())
    assert len(traces) == 1


def test_another_seed_leads_to_another_trace() -> None:
    """A digest that never changes would make the test above worthless."""
    assert digest(7) != digest(8)


def test_a_broken_invariant_names_its_seed_and_the_command_that_replays_it() -> None:
    """A reader copies the command from the message."""
    world = World(OURS, 7, SHORT, with_faults=True)
    broken = Invariants(world).broken("room", "node-01 is too full")
    assert isinstance(broken, Broken)
    assert "room: node-01 is too full" in str(broken)
    assert "-m simulation --policy 'ours' --seed 7 --faults" in str(broken)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_dead_replica_counts_nothing_and_begins_with_empty_caches(seed: int) -> None:
    """A replica that was down has, after its list, what one has that was never down."""
    world = World(OURS, seed, SHORT)
    world.run(3600.0)
    first, second = (replica.watcher for replica in world.replicas)
    first.restart()
    for watcher in (first, second):
        watcher.sync()
    assert {k: set(c.objects) for k, c in first.caches.items()} == {k: set(c.objects) for k, c in second.caches.items()}
