"""`make bench BENCH=status`: `status` over the VMs of a large cluster, and the rows that `serve` keeps of them.

Prints tables; README.md beside this file has the figures and how to read them. Needs Linux and two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

from clusters import Bench, Cluster, cluster  # noqa: E402 - a script finds its neighbours after it has said where
from scale import Scale, is_together  # noqa: E402
from table import row, title  # noqa: E402

SECONDS: Final = 2.0
STALL_MS: Final = 5.0


class Plan(NamedTuple):
    """How much to measure."""

    vms: int
    nodes: int
    repeats: int


FULL: Final = Plan(vms=10_000, nodes=500, repeats=3)
QUICK: Final = Plan(vms=60, nodes=20, repeats=1)


class Ran(NamedTuple):
    """One run of a program: its time, its CPU time, its exit code, and what it printed."""

    seconds: float
    cpu_seconds: float
    code: int
    out: str


def run(bench: Bench, *words: str | Path) -> Ran:
    """Run this Python with these words on the core that is measured."""
    environment = {**os.environ, **bench.environment}
    os.sched_setaffinity(0, {bench.core})  # a child inherits it
    try:
        before, started = os.times(), perf_counter()
        ended = subprocess.run(  # noqa: S603 - ours
            [sys.executable, *map(str, words)], capture_output=True, text=True, check=False, env=environment
        )
        seconds, after = perf_counter() - started, os.times()
    finally:
        os.sched_setaffinity(0, {bench.other_core})
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    assert ended.returncode in (0, 1), ended.stderr
    return Ran(seconds, cpu, ended.returncode, ended.stdout)


def program(large: Cluster, plan: Plan) -> None:
    """The command as a user runs it, and what of its time is Python's and its imports'."""
    title(f"`status -A`, {plan.vms:,} VMs, {plan.repeats} runs")
    words = ("-m", "webhook", "status", "-A", "--kubeconfig", large.kubeconfig)
    tables = [run(large.bench, *words) for _ in range(plan.repeats)]
    reports = [run(large.bench, *words, "-o", "json") for _ in range(plan.repeats)]
    nothing = [run(large.bench, "-c", "import webhook.status.live_rows") for _ in range(plan.repeats)]
    _check(tables[0], reports[0], plan)
    for name, found in (("table", tables), ("json", reports)):
        row(f"{name}: seconds, least", min(each.seconds for each in found), SECONDS, digits=2)
        row(f"{name}: seconds, median", statistics.median(each.seconds for each in found), SECONDS, digits=2)
        row(f"{name}: CPU seconds, median", statistics.median(each.cpu_seconds for each in found), digits=2)
    row("the imports alone: seconds, median", statistics.median(each.seconds for each in nothing), digits=2)
    row("the imports alone: CPU seconds, median", statistics.median(each.cpu_seconds for each in nothing), digits=2)


def _check(table: Ran, report: Ran, plan: Plan) -> None:
    """It is the right answer that was timed."""
    apart = sum(not is_together(index) for index in range(plan.vms))
    assert len(table.out.splitlines()) == plan.vms + 1, table.out[:500]
    summary = json.loads(report.out)["summary"]
    assert (summary["together"], summary["apart"]) == (plan.vms - apart, apart), summary


def kept(large: Cluster, plan: Plan) -> None:
    """The rows as `serve` keeps them, in a process of their own."""
    title(f"Rows kept up from the caches, {plan.vms:,} VMs, {plan.repeats} runs")
    runs = [large.bench.run("rows.py", large.kubeconfig) for _ in range(plan.repeats)]
    assert all(each["rows"] == plan.vms for each in runs), runs
    for name, key in (
        ("the first pass: CPU ms", "first_ms"),
        ("a pass with nothing new: CPU ms", "idle_ms"),
        ("a pass with one change: CPU ms", "change_ms"),
    ):
        row(name, statistics.median(each[key] for each in runs))
    row("longest time on the event loop, CPU ms", statistics.median(each["stall_ms"] for each in runs), STALL_MS)
    row("memory, MiB", statistics.median(each["mib"] for each in runs))


def main(words: Sequence[str]) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small: to see that it works")
    plan = QUICK if parser.parse_args(words).quick else FULL
    with TemporaryDirectory() as directory:
        bench = Bench.at(Path(directory))
        scale = Scale(claims=plan.vms, pods=plan.vms, nodes=plan.nodes, launchers=plan.vms)
        with cluster(bench, scale, "paged") as large:
            program(large, plan)
        with cluster(bench, scale, "stream") as large:
            kept(large, plan)


if __name__ == "__main__":
    main(sys.argv[1:])
