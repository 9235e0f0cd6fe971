"""Run: one run of the simulation by names alone, so that a command can play exactly this run again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from simulation.invariants import Invariants
from simulation.month import WORKLOADS
from simulation.planted_faults import PLANTED_FAULTS
from simulation.policies import POLICIES
from simulation.scenes import SCENES
from simulation.world import World


class Run(NamedTuple):
    """What is played: names of POLICIES, WORKLOADS, SCENES and PLANTED_FAULTS; the last two can be empty.

    `faults`: with the faults that the seed draws.
    """

    policy: str
    seed: int = 1
    workload: str = "rough"
    scene: str = ""
    planted: str = ""
    faults: bool = True

    @property
    def arguments(self) -> Sequence[str]:
        """The arguments of the command that plays it."""
        named = {"--policy": self.policy, "--seed": str(self.seed), "--workload": self.workload}
        named |= {"--scene": self.scene} if self.scene else {}
        named |= {"--planted": self.planted} if self.planted else {}
        return [*(word for pair in named.items() for word in pair), *(["--faults"] if self.faults else [])]

    def checked_world(self) -> tuple[World, Invariants]:
        """Return its world before the first event, and the checks that follow it."""
        world = World(POLICIES[self.policy], self.seed, WORKLOADS[self.workload], with_faults=self.faults)
        world.replay = f"PYTHONPATH=tests .venv/bin/python -m simulation {shlex.join(self.arguments)}"
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
        world.play_month()
        return world
