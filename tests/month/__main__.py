"""`make month`: a month of VMs on real controllers, once for each contestant, as a table of VM-hours and as JSON."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from month import plan, table
from month.contestants import CONTESTANTS, play
from support.control_plane.rendering import ROOT

_OUTPUT: Final = ROOT / "dist" / "month.json"


def main() -> int:
    """Play the plan for each contestant, and write the file after each. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="make month", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--days", type=float, default=15)
    parser.add_argument("--vms", type=int, default=80)
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--only", choices=CONTESTANTS, action="append", help="play these contestants")
    parser.add_argument("--output", type=Path, default=_OUTPUT, help="the file that is written")
    asked = parser.parse_args()
    drawn = plan.plan(asked.seed, days=asked.days, vms=asked.vms, nodes=asked.nodes)
    told = {key: getattr(asked, key) for key in ("seed", "days", "vms", "nodes")}
    report: dict[str, Any] = {"commit": _commit(), **told, "events": len(drawn.events), "contestants": {}}
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    for name in asked.only or CONTESTANTS:
        report["contestants"][name] = play(name, drawn)
        asked.output.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        sys.stderr.write(f"{name}: played in {report['contestants'][name]['seconds']} s\n")
    sys.stdout.write("\n".join(table.lines(report)) + "\n")
    return 0


def _commit() -> str:
    words = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    asked = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    return asked.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
