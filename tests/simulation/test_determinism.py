"""A seed always leads to the same run: that is what makes a failure of the simulation worth reading."""

from __future__ import annotations

import pickle
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from simulation.invariants import Broken
from simulation.run import Run
from simulation.world import World

TESTS = Path(__file__).parents[1]
FIVE_HOURS = Run(14, reunite=1, workload="short")


def digest(run: Run) -> str:
    """Play it, and return the digest of the trace."""
    return run.play().engine.digest


@pytest.mark.parametrize(
    ("run", "hash_seed"),
    [
        (FIVE_HOURS, "1"),
        (FIVE_HOURS._replace(faults=False, reunite=2), "2"),
        (FIVE_HOURS._replace(reunite=0, scene="pinned nodes fail", planted="share-manager pods are not steered"), "3"),
        pytest.param(Run(4, reunite=1), "4", marks=pytest.mark.soak_only),
    ],
    ids=lambda each: "" if isinstance(each, str) else each.replay.partition("simulation ")[2],
)
def test_the_printed_command_plays_exactly_the_same_run(run: Run, hash_seed: str) -> None:
    """In another process, with other hashes of texts. Each part of a run changes the trace."""
    words = shlex.split(run.replay)
    environment = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{TESTS}:{TESTS.parent}"}
    command = [sys.executable, *words[words.index("-m") :]]
    played = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    assert f"digest {digest(run)}\n" in played.stdout
    assert run == FIVE_HOURS or digest(run) != digest(FIVE_HOURS)


def test_a_broken_invariant_names_its_seed_and_the_command_that_replays_it() -> None:
    """A reader copies the command from the message."""
    world, checks = FIVE_HOURS.checked_world()
    broken = checks.broken("stranded", "vm-01 waits")
    assert isinstance(broken, Broken)
    assert str(pickle.loads(pickle.dumps(broken))) == str(broken)  # noqa: S301 - a process pool hands it on
    assert "stranded: vm-01 waits" in str(broken)
    assert "-m simulation --seed 14 --reunite 1 --workload short" in world.replay
    assert world.replay in str(broken)


def test_a_dead_replica_counts_nothing_and_begins_with_empty_caches() -> None:
    """A replica that was down has, after its list, what one has that was never down."""
    world = World(1)
    world.run(3600.0)
    first, second = (replica.watcher for replica in world.replicas)
    first.restart()
    for watcher in (first, second):
        watcher.sync()
    assert {k: set(c.objects) for k, c in first.caches.items()} == {k: set(c.objects) for k, c in second.caches.items()}
