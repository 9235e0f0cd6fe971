"""`make month`: a month of VMs on real controllers, once for each contestant, as a table of VM-hours and as JSON."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from month import plan, results
from month.contestants import CONTESTANTS, play
from support.control_plane.rendering import ROOT

_OUTPUT: Final = ROOT / "dist" / "month.json"


def main() -> int:
    """Play the plan of each seed for each contestant, and write the file after each. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="make month", description=__doc__)
    parser.add_argument("--seed", type=int, default=[1], nargs="+")
    parser.add_argument("--days", type=float, default=15)
    parser.add_argument("--vms", type=int, default=80)
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--only", choices=CONTESTANTS, action="append", help="play these contestants")
    parser.add_argument("--output", type=Path, default=_OUTPUT, help="the file that is written")
    asked = parser.parse_args()
    told = {key: getattr(asked, key) for key in ("days", "vms", "nodes")}
    report: dict[str, Any] = {"commit": _commit(), **told, "seeds": {}}
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    for seed in asked.seed:
        drawn = plan.plan(seed, **told)
        played = report["seeds"][str(seed)] = {}
        for name in asked.only or CONTESTANTS:
            played[name] = play(name, drawn)
            asked.output.write_text(results.written(report), encoding="utf-8")
            sys.stderr.write(f"seed {seed}, {name}: played in {played[name]['seconds']} s\n")
    sys.stdout.write(results.table(report) + "\n")
    return 0


def _commit() -> str:
    """The commit that changed last what is played: the program and its manifests."""
    last, changed = _git("log", "-1", "--abbrev=12", "--format=%h"), _git("status", "--porcelain")
    return f"{last or 'unknown'}{'-dirty' if changed else ''}"


def _git(*words: str) -> str:
    command = ["git", *words, "--", "webhook", "manifests"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
