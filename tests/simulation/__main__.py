"""Play the month: `make simulate` prints the table; with --policy one run is played again, step by step checked."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter

from simulation import plot, table
from simulation.invariants import Invariants
from simulation.month import MONTH, ROUGH
from simulation.policies import POLICIES
from simulation.world import World


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds the table is the mean of")
    parser.add_argument("--svg", type=Path, help="write the picture to this file, too")
    parser.add_argument("--policy", choices=sorted(POLICIES), help="play this one alone, and check the invariants")
    parser.add_argument("--rough", action="store_true", help="two days in which much happens, in place of the month")
    parser.add_argument("--faults", action="store_true", help="with the faults that the seed draws")
    args = parser.parse_args()
    if args.policy:
        return _play_one(args)
    began = perf_counter()
    results = table.play_all(list(POLICIES), range(args.seed, args.seed + args.seeds))
    print("\n".join(table.lines(results)))  # noqa: T201 - the output of this program
    print(f"\n{len(results)} rules, {args.seeds} seed(s) from {args.seed}: {perf_counter() - began:.0f} s")  # noqa: T201
    if args.svg:
        args.svg.write_text(plot.svg(results), encoding="utf-8")
    return 0


def _play_one(args: argparse.Namespace) -> int:
    workload = ROUGH if args.rough else MONTH
    world = World(POLICIES[args.policy], args.seed, workload, with_faults=args.faults)
    checks = Invariants(world)
    world.play_month()
    hours = {what: round(each) for what, each in sorted(world.account.hours.items())}
    counted = f"{checks.answers.checked} answers and {checks.moves.made} moves checked"
    print(f"{args.policy}, seed {args.seed}: {hours}, {counted}")  # noqa: T201 - the output of this program
    print(f"{world.engine.steps} steps, digest {world.engine.digest}")  # noqa: T201 - as above
    return 0


if __name__ == "__main__":
    sys.exit(main())
