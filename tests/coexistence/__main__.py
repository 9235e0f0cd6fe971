"""`make coexistence`: the programs that users run beside the webhook, each real and in its own process."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from coexistence import autoscalers, balanced, cluster, deschedulers, schedulers
from coexistence.rows import Row, surprises, table

PARTS: Final[dict[str, Callable[[cluster.Cluster], Iterator[Row]]]] = {
    "kube-scheduler": schedulers.rows,
    "descheduler": deschedulers.rows,
    "reunite": balanced.rows,
    "karpenter": autoscalers.rows,
}
PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "coexistence.md"
BEGIN, END = "<!-- make coexistence writes from here -->", "<!-- to here -->"


def main() -> int:
    """Print the table. Returns 1 if something else happened than was expected."""
    parser = argparse.ArgumentParser(prog="coexistence", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}; all if none is named")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}, too")
    args = parser.parse_args()
    if unknown := set(args.parts) - PARTS.keys():
        parser.error(f"{', '.join(sorted(unknown))}: expected some of {', '.join(PARTS)}")
    began = time.perf_counter()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as directory, cluster.running(Path(directory)) as running:
        for name in args.parts or PARTS:
            rows += PARTS[name](running)
            running.clear()
    today = datetime.now(tz=UTC).date()
    text = f"Seen on {today}, beside a kube-apiserver {cluster.VERSION}:\n\n{table(rows)}"
    print(text)  # noqa: T201 - the output of this program
    print(f"\n{len(rows)} rows, {len(surprises(rows))} not as expected: {time.perf_counter() - began:.0f} s")  # noqa: T201
    if args.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")
    return 1 if surprises(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
