"""A seed always leads to the same run: that is what makes a failure of the simulation worth reading."""

from __future__ import annotations

import pickle
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from simulation.invariants import Broken
from simulation.month import SHORT
from simulation.policies import OURS, REUNITE, TWICE
from simulation.run import Run
from simulation.world import World

TESTS = Path(__file__).parents[1]
FIVE_HOURS = Run(REUNITE.title, 14, "short")


def digest(run: Run) -> str:
    """Play it, and return the digest of the trace."""
    world, _ = run.checked_world()
    world.play_month()
    return world.engine.digest


def replayed(run: Run, hash_seed: str = "0") -> str:
    """Return the digest that the printed command of a run prints. PYTHONHASHSEED changes Python's hashes of texts."""
    words = shlex.split(run.checked_world()[0].replay)
    command = [sys.executable, *words[words.index("-m") :]]
    environment = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{TESTS}:{TESTS.parent}"}
    played = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    return played.stdout.strip().rpartition("digest ")[2]


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_a_seed_leads_to_the_same_trace_in_other_processes_with_other_hashes(hash_seed: str) -> None:
    """Python's hashes of texts differ between the processes, and nothing of that is seen."""
    assert replayed(FIVE_HOURS, hash_seed) == digest(FIVE_HOURS)


def test_another_seed_leads_to_another_trace() -> None:
    """A digest that never changes would make the test above worthless."""
    assert digest(FIVE_HOURS) != digest(FIVE_HOURS._replace(seed=9))


@pytest.mark.parametrize(
    "run",
    [
        FIVE_HOURS._replace(faults=False),
        FIVE_HOURS._replace(policy=TWICE.title),
        FIVE_HOURS._replace(policy=OURS.title, scene="restarts after cordons"),
        FIVE_HOURS._replace(
            policy=REUNITE.title, scene="pinned nodes fail", planted="share-manager pods are not steered"
        ),
        pytest.param(Run(REUNITE.title, 4, "half a day"), marks=pytest.mark.soak_only),
        pytest.param(Run(REUNITE.title, 4), marks=pytest.mark.soak_only),
    ],
    ids=lambda run: " ".join(run.arguments),
)
def test_the_printed_command_plays_exactly_the_same_run(run: Run) -> None:
    """With its workload, its scene, what is planted, and its number of processes. Each of them changes the trace."""
    assert replayed(run) == digest(run)
    assert run == FIVE_HOURS or digest(run) != digest(FIVE_HOURS)


def test_a_broken_invariant_names_its_seed_and_the_command_that_replays_it() -> None:
    """A reader copies the command from the message."""
    world, checks = FIVE_HOURS.checked_world()
    broken = checks.broken("room", "node-01 is too full")
    assert isinstance(broken, Broken)
    assert str(pickle.loads(pickle.dumps(broken))) == str(broken)  # noqa: S301 - a process pool hands it on
    assert "room: node-01 is too full" in str(broken)
    assert world.replay in str(broken)
    assert "-m simulation --policy 'ours + reunite' --seed 14 --workload short --faults" in world.replay


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
