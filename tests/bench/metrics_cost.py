"""`make bench BENCH=metrics_cost`: what a call pays for /metrics: `serve` against a `serve` that counts nothing.

Both run on one core in one run, in slices that take turns. README.md beside this file has the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, perf_counter_ns, process_time

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

from admissions import QUICK, Contender, Plan, contender  # noqa: E402
from msgspec.structs import replace  # noqa: E402
from sample import sample_review  # noqa: E402
from stages import stages  # noqa: E402
from support.drivers import serving  # noqa: E402 - a script finds its neighbours after it has said where they are
from support.drivers.http_calls import request  # noqa: E402 - a script finds its neighbours after it has said where they are
from support.drivers.scraping import asking, scraped  # noqa: E402
from support.objects.fleets import launcher, the_row  # noqa: E402

from webhook.app.handler import admit_function  # noqa: E402
from webhook.core.observe.vm_status import State  # noqa: E402
from webhook.core.opt_in import Policy  # noqa: E402
from webhook.files.manifests import Manifests  # noqa: E402
from webhook.kube.metrics import NAMED_VMS_MAX, vm_families  # noqa: E402
from webhook.telemetry.metrics import Admissions, Metrics  # noqa: E402

FULL = Plan(rounds=25, slice_seconds=1.0, connections=8, stage_repeats=400, imports=0)
GOAL = 0.02
_SCRAPES = 20
_VMS = 5_000
_PAIRS = 20_000
_COUNTING = "count it for /metrics"


@contextmanager
def contenders(directory: Path, plan: Plan, cpu: int) -> Iterator[tuple[Contender, Contender, int]]:
    """Both servers on one core, connected; and where the one tells its metrics."""
    pair = serving.issue(directory)
    manifests = serving.write_cluster(directory / "cluster.json", serving.cluster())
    flags = ["--tls-cert-file", str(pair.cert_file), "--tls-private-key-file", str(pair.key_file)]
    flags += ["--manifests", str(manifests), "--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0"]
    requests = [request(sample_review())]
    counted = [sys.executable, "-m", "webhook", "serve", *flags]
    uncounted = [sys.executable, str(HERE / "uncounted.py"), "serve", *flags]
    logs = directory / "counted.log", directory / "uncounted.log"
    with serving.spawned(counted, logs[0], cpu=cpu) as one, serving.spawned(uncounted, logs[1], cpu=cpu) as other:
        lines = [serving.until_logged(each, log, "serving") for each, log in zip((one, other), logs, strict=True)]
        ports = [serving.port_of(line["listen"]) for line in lines]
        both = [
            contender(name, process, port, pair.trust, requests=requests, plan=plan)
            for name, process, port in zip(("counted", "uncounted"), (one, other), ports, strict=True)
        ]
        yield both[0], both[1], serving.port_of(lines[0]["health_listen"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only show that it runs: the figures mean nothing")
    plan = QUICK if parser.parse_args().quick else FULL
    server_cpu, client_cpu, *_ = sorted(os.sched_getaffinity(0)) * 2
    os.sched_setaffinity(0, {client_cpu})
    with TemporaryDirectory() as name:
        with contenders(Path(name), plan, server_cpu) as (counted, uncounted, port):
            for each in (counted, uncounted):
                each.full.run(plan.slice_seconds)
            for number in range(plan.rounds):
                for each in (counted, uncounted) if number % 2 else (uncounted, counted):
                    each.full_slices.append(each.full.run(plan.slice_seconds))
            seconds, size = _scrapes(port)
        cpu = statistics.median(uncounted.cpu())
        extra = statistics.median(a - b for a, b in zip(counted.cpu(), uncounted.cpu(), strict=True))
        view = Manifests.load(Path(name) / "cluster.json", longhorn_namespace="longhorn-system")
        counting = dict(stages(sample_review(), view, plan.stage_repeats))[_COUNTING]
        alone, more = asyncio.run(_in_turn(view, sample_review(), _PAIRS if plan is FULL else 1))
    for title, value in (
        ("server CPU per review, uncounted, median, us", cpu),
        ("of a pair of slices, the counted more, median, us", extra),
        ("an admission alone, one process, uncounted, median, us", alone),
        ("the same, counted, more in the median of pairs, us", more),
        (f"that, as a share of server CPU per review, % (goal <= {GOAL:.0%})", more / cpu * 100),
        ("counting alone, in a tight loop, us", counting),
        ("a scrape, median, ms", seconds * 1e3),
        ("a scrape, KiB", size / 1024),
        *(
            (f"the metrics of {_VMS:,} VMs, {apart:,} apart, CPU ms", _vms_ms(apart))
            for apart in (0, NAMED_VMS_MAX, 2_500)
        ),
    ):
        sys.stdout.write(f"{title:66}{value:12.2f}\n")


async def _in_turn(view: Manifests, body: bytes, pairs: int) -> tuple[float, float]:
    """(median microseconds of an admission without counting, median of how much more the next one took, counted)."""
    admissions = Admissions()
    uncounted, counted = (admit_function(view, Policy(), note) for note in (lambda _: None, admissions.count))
    took, more = [], []
    for number in range(pairs):
        ns = {}
        for admit in (uncounted, counted) if number % 2 else (counted, uncounted):
            began = perf_counter_ns()
            await admit(body, inf)
            ns[admit] = perf_counter_ns() - began
        took.append(ns[uncounted] / 1e3)
        more.append((ns[counted] - ns[uncounted]) / 1e3)
    return statistics.median(took), statistics.median(more)


def _vms_ms(apart: int) -> float:
    """Return the median CPU milliseconds of a scrape of VMs alone, after a pass that found a change."""
    vm = replace(the_row(launcher()), since="2026-01-01T00:00:00Z")
    rows = tuple(replace(vm, name=f"vm{n}", state=State.APART if n < apart else State.TOGETHER) for n in range(_VMS))
    took = []
    for _ in range(_SCRAPES):
        began = process_time()
        Metrics(lambda: vm_families(rows)).expose("")
        took.append(process_time() - began)
    return statistics.median(took) * 1e3


def _scrapes(port: int) -> tuple[float, int]:
    """(median seconds, bytes) of scrapes, one at a time."""
    took = []
    with serving.Client(port) as client:
        for _ in range(_SCRAPES):
            began = perf_counter()
            reply = client.ask(asking())
            took.append(perf_counter() - began)
    assert scraped(reply).families
    return statistics.median(took), len(reply.body)


if __name__ == "__main__":
    main()
