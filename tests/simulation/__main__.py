"""Play the month: `make simulate` prints the table; with --policy one run is played again, step by step checked."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import perf_counter

from simulation import plot, table
from simulation.invariants import Broken
from simulation.month import WORKLOADS
from simulation.planted_faults import PLANTED_FAULTS
from simulation.policies import COMPARED, POLICIES
from simulation.run import Run
from simulation.scenes import SCENES


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds are played; the table is their mean")
    parser.add_argument("--svg", type=Path, help="write the picture to this file, too")
    parser.add_argument(
        "--two-disks", type=float, default=0.0, help="the share of VMs with a second disk, in the table"
    )
    parser.add_argument("--policy", choices=sorted(POLICIES), help="play this one alone, and check the invariants")
    parser.add_argument(
        "--workload", choices=WORKLOADS, default="month", help="what happens in the cluster, and how long"
    )
    parser.add_argument("--scene", choices=SCENES, default="", help="what happens besides")
    parser.add_argument("--planted", choices=PLANTED_FAULTS, default="", help="what is made wrong")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="how many seeds are played at once")
    parser.add_argument("--faults", action="store_true", help="with the faults that the seed draws")
    args = parser.parse_args()
    if args.policy:
        return _play_alone(args)
    began = perf_counter()
    results = table.play_all(
        [policy.title for policy in COMPARED], range(args.seed, args.seed + args.seeds), args.two_disks
    )
    print("\n".join(table.lines(results)))  # noqa: T201 - the output of this program
    print(f"\n{len(results)} rules, {args.seeds} seed(s) from {args.seed}: {perf_counter() - began:.0f} s")  # noqa: T201
    if args.svg:
        args.svg.write_text(plot.svg(results), encoding="utf-8")
    return 0


def _play_alone(args: argparse.Namespace) -> int:
    """Play each seed, also after one that broke an invariant. The exit code is 1 if one did."""
    runs = [
        Run(args.policy, seed, args.workload, args.scene, args.planted, args.faults)
        for seed in range(args.seed, args.seed + args.seeds)
    ]
    broken = 0
    with ProcessPoolExecutor(args.processes) as processes:
        for text in processes.map(_play_one, runs):
            print(text, flush=True)  # noqa: T201 - the output of this program
            broken += "BROKEN" in text
    if args.seeds > 1:
        print(f"{args.seeds} seeds from {args.seed}, {broken} of them broke an invariant")  # noqa: T201 - as above
    return 1 if broken else 0


def _play_one(run: Run) -> str:
    world, checks = run.checked_world()
    try:
        world.play_month()
    except Broken as broken:
        return f"{run.policy}, seed {run.seed}: BROKEN {broken}"
    hours = {what: round(each) for what, each in sorted(world.account.hours.items())}
    counted = f"{checks.answers.checked} answers and {checks.moves.made} moves checked"
    return (
        f"{run.policy}, seed {run.seed}: {hours}, {counted}, {world.engine.steps} steps, digest {world.engine.digest}"
    )


if __name__ == "__main__":
    sys.exit(main())
