"""`python tests/bench/reunite.py`: what one round of `reunite` decides costs, in milliseconds of CPU."""

from __future__ import annotations

import sys
from pathlib import Path
from time import thread_time
from typing import Final

HERE: Final = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

from support.objects.reunite_vms import move, plan_of, situation, vm  # noqa: E402 - its path is known only now

VMS: Final = 5_000
APART: Final = 500
_MOVES_EACH: Final = 5  # what KubeVirt keeps of a VM
_ROUNDS: Final = 7


def main() -> None:
    """Print the least of some rounds: each VM that is apart is asked about, and refused or moved."""
    vms = [vm(f"vm-{i}", f"n-{i % 100}", (f"n-{(i + (i < APART)) % 100}",)) for i in range(VMS)]
    moves = [move(100_000 + each, vmi=f"vm-{i}") for i in range(VMS) for each in range(_MOVES_EACH)]
    at = situation(*vms, *moves, at_once=APART, at_once_per_node=APART)
    spent = []
    for _ in range(_ROUNDS):
        begin = thread_time()
        plan, asked = plan_of(at)
        spent.append((thread_time() - begin) * 1000)
    counts = f"{VMS:,} VMs, {APART} apart, {len(moves):,} final migrations"
    told = f"{counts}: {min(spent):.1f} ms, {len(asked)} asked about, {len(plan.creates)} created"
    sys.stdout.write(told + "\n")


if __name__ == "__main__":
    main()
