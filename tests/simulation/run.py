"""Run: one run of the simulation by names alone, so that a command can play exactly this run again."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from simulation.invariants import Invariants
from simulation.planted_faults import PLANTED_FAULTS
from simulation.scenes import SCENES
from simulation.workload import WORKLOADS
from simulation.world import World


class Run(NamedTuple):
    """What is played: names of WORKLOADS, SCENES and PLANTED_FAULTS; the last two can be empty.

    `reunite`: how many processes of the program run. `faults`: with the faults that the seed draws.
    """

    seed: int = 1
    reunite: int = 0
    workload: str = "rough"
    scene: str = ""
    planted: str = ""
    faults: bool = True

    @property
    def replay(self) -> str:
        """The command that plays it."""
        options = {"--seed": self.seed, "--reunite": self.reunite, "--workload": self.workload}
        options |= {"--scene": self.scene, "--planted": self.planted}
        words = [word for name, value in options.items() if value for word in (name, str(value))]
        words += [] if self.faults else ["--no-faults"]
        return f"PYTHONPATH=tests .venv/bin/python -m simulation {shlex.join(words)}"

    def checked_world(self) -> tuple[World, Invariants]:
        """Return its world before the first event, and the checks that follow it."""
        world = World(self.seed, WORKLOADS[self.workload], reunite=self.reunite, with_faults=self.faults)
        world.replay = self.replay
        faults = [SCENES[self.scene]] if self.scene else []
        faults += [PLANTED_FAULTS[self.planted].fault] if self.planted else []
        world.planted = lambda each: [fault(each) for fault in faults]
        return world, Invariants(world)

    def play(self) -> World:
        """Play it, and return its world after the last event.

        Raises:
            Broken: an invariant does not hold.
        """
        world, _ = self.checked_world()
        world.play()
        return world
