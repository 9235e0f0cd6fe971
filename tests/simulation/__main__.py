"""`make simulate`: play rough days from their seeds, and check after each step what must always hold."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from simulation.faults import SCENES
from simulation.invariants import Broken, Invariants
from simulation.planted_faults import PLANTED_FAULTS
from simulation.world import World


class Run(NamedTuple):
    """One run by names alone, so that a command can play exactly this run again.

    `scene` and `planted` are names of SCENES and PLANTED_FAULTS, or empty. `days`: how long it is.
    `reunite`: how many processes of the program run.
    """

    seed: int = 1
    reunite: int = 0
    days: float = 2.0
    scene: str = ""
    planted: str = ""

    @property
    def replay(self) -> str:
        """The command that plays it."""
        words = [word for name, value in self._asdict().items() if value for word in (f"--{name}", str(value))]
        return f"PYTHONPATH=tests .venv/bin/python -m simulation {shlex.join(words)}"

    def play(self) -> str:
        """Play it, and return a line of figures.

        Raises:
            Broken: an invariant does not hold.
        """
        world = World(self.seed, self.reunite)
        checks = Invariants(world, self.replay)
        planted = [SCENES[self.scene]] if self.scene else []
        planted += [PLANTED_FAULTS[self.planted].fault] if self.planted else []
        world.play(self.days, planted)
        answers, pins, moves = checks.answers.checked, checks.answers.pinned, checks.moves.made
        assert pins, "the webhook has pinned nobody, so that nothing was checked"
        return (
            f"seed {self.seed}: {answers} answers, {pins} of them pins, and {moves} moves checked, "
            f"{world.engine.steps} steps, digest {world.engine.digest}"
        )


def told(run: Run) -> str:
    """Play it in a process of its own, and return its line."""
    try:
        return run.play()
    except Broken as broken:
        return f"seed {run.seed}: BROKEN {broken}"


def main() -> int:
    """Play each seed, also after one that broke an invariant. The exit code is 1 if one did."""
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds are played")
    parser.add_argument("--reunite", type=int, default=0, help="how many processes of reunite run")
    parser.add_argument("--days", type=float, default=2.0, help="how long it lasts")
    parser.add_argument("--scene", choices=SCENES, default="", help="what happens besides")
    parser.add_argument("--planted", choices=PLANTED_FAULTS, default="", help="what is made wrong")
    args = parser.parse_args()
    rest = (args.reunite, args.days, args.scene, args.planted)
    runs = [Run(seed, *rest) for seed in range(args.seed, args.seed + args.seeds)]
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        lines = list(processes.map(told, runs))
    broken = sum("BROKEN" in line for line in lines)
    print(*lines, f"{args.seeds} seed(s) from {args.seed}, {broken} of them broke an invariant", sep="\n")  # noqa: T201 - the output of this program
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
