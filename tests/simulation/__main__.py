"""`make simulate`: play rough days from their seeds, and check after each step what must always hold."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor

from simulation.invariants import Broken
from simulation.planted_faults import PLANTED_FAULTS
from simulation.run import Run
from simulation.scenes import SCENES
from simulation.workload import WORKLOADS


def main() -> int:
    """Play each seed, also after one that broke an invariant. The exit code is 1 if one did."""
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds are played")
    parser.add_argument("--reunite", type=int, default=0, help="how many processes of reunite run")
    parser.add_argument("--workload", choices=WORKLOADS, default="rough", help="how long it lasts")
    parser.add_argument("--scene", choices=SCENES, default="", help="what happens besides")
    parser.add_argument("--planted", choices=PLANTED_FAULTS, default="", help="what is made wrong")
    parser.add_argument("--no-faults", action="store_true", help="without the faults that the seed draws")
    args = parser.parse_args()
    runs = [
        Run(seed, args.reunite, args.workload, args.scene, args.planted, faults=not args.no_faults)
        for seed in range(args.seed, args.seed + args.seeds)
    ]
    broken = 0
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        for text in processes.map(_play, runs):
            print(text, flush=True)  # noqa: T201 - the output of this program
            broken += "BROKEN" in text
    print(f"{args.seeds} seed(s) from {args.seed}, {broken} of them broke an invariant")  # noqa: T201 - as above
    return 1 if broken else 0


def _play(run: Run) -> str:
    world, checks = run.checked_world()
    try:
        world.play()
    except Broken as broken:
        return f"seed {run.seed}: BROKEN {broken}"
    local, answers, moves = world.account.local_share, checks.answers.checked, checks.moves.made
    return (
        f"seed {run.seed}: local {local:.1%}, {answers} answers and {moves} moves checked, "
        f"{world.engine.steps} steps, digest {world.engine.digest}"
    )


if __name__ == "__main__":
    sys.exit(main())
