"""The invariants hold for every seed; each planted fault breaks its own. A seed always leads to the same run.

`make soak` plays more seeds. SIMULATED_FROM names the first seed, so that other machines play others.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from simulation.__main__ import Run
from simulation.faults import SCENES
from simulation.invariants import Broken, Invariants
from simulation.planted_faults import PLANTED_FAULTS
from simulation.world import World
from support.sizes import size

FIRST_SEED = int(os.environ.get("SIMULATED_FROM", "1"))
TESTS = Path(__file__).parents[1]
FIVE_HOURS = Run(14, reunite=1, days=0.2)


@pytest.mark.soak
@pytest.mark.parametrize("reunite", [0, pytest.param(1, marks=pytest.mark.soak_only), 2])
def test_the_invariants_hold_for_each_seed(reunite: int) -> None:
    """Two rough days with the faults that the seed draws. A failure prints the command that replays it.

    Two processes of `reunite` decide by what they see: fixed names and KubeVirt's refusal leave a VM one migration.
    """
    seeds = range(FIRST_SEED, FIRST_SEED + size("SIMULATED_SEEDS"))
    scenes = ["", *SCENES]
    with ProcessPoolExecutor() as processes:
        lines = list(processes.map(Run.play, [Run(seed, reunite, scene=scenes[seed % 3]) for seed in seeds]))
    assert len(lines) == len(seeds)
    assert [" 0 moves" in line for line in lines] == [not reunite] * len(lines)


@pytest.mark.parametrize("name", PLANTED_FAULTS)
def test_a_planted_fault_breaks_its_invariant(name: str) -> None:
    """With the seed that shows it."""
    fault = PLANTED_FAULTS[name]
    with pytest.raises(Broken, match=f"^{fault.breaks}: "):
        Run(fault.seed, fault.reunite, planted=name).play()


def test_the_printed_command_plays_exactly_the_same_run() -> None:
    """In another process, with other hashes of texts."""
    command = [sys.executable, *shlex.split(FIVE_HOURS.replay)[2:]]
    environment = {"PYTHONHASHSEED": "1", "PYTHONPATH": f"{TESTS}:{TESTS.parent}"}
    played = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603 - our own program
    assert FIVE_HOURS.play() in played.stdout


def test_a_broken_invariant_names_its_seed_and_the_command_that_replays_it() -> None:
    """A reader copies the command from the message."""
    broken = Invariants(World(14, 1), FIVE_HOURS.replay).broken("stranded", "vm-01 waits")
    assert "stranded: vm-01 waits" in str(broken)
    assert "-m simulation --seed 14 --reunite 1 --days 0.2" in FIVE_HOURS.replay
    assert FIVE_HOURS.replay in str(broken)
