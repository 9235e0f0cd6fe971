"""`make bench BENCH=pods`: what it costs to know every pod of a large cluster: `--watch-pods=all` against `none`.

Prints tables; README.md beside this file has the figures and how to read them. Needs Linux and two cores.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

from admissions import Contender, contender, measure  # noqa: E402
from admissions import Plan as Slices  # noqa: E402
from callers import Caller  # noqa: E402
from clusters import Bench, Cluster, cluster, until_synced  # noqa: E402
from process import cpu_seconds, resident  # noqa: E402
from sample import sample_review  # noqa: E402
from scale import PODS, Scale, claim_name, namespace  # noqa: E402
from support.drivers.http_calls import request  # noqa: E402 - a script finds its neighbours after it has said where they are
from support.drivers.serving import Client, Serving  # noqa: E402
from table import percentile, row, title  # noqa: E402

from webhook.kube.kinds import WatchedPods  # noqa: E402

MIB: Final = 60.0
SHARE_OF_A_CORE: Final = 0.10
EVENTS_A_SECOND: Final = 1_000

_BURST_SECONDS: Final = 0.1
_PROBE_SECONDS: Final = 0.001


class Plan(NamedTuple):
    """How much to measure."""

    scale: Scale
    reviews: int
    seconds: float
    calls: int
    slices: Slices


FULL: Final = Plan(
    scale=Scale(claims=20_000, pods=20_000, nodes=5_000, launchers=20_000, others=80_000),
    reviews=500,
    seconds=10.0,
    calls=8_000,
    slices=Slices(rounds=7, slice_seconds=1.0, connections=4, stage_repeats=0, imports=0),
)
QUICK: Final = Plan(
    scale=Scale(claims=40, pods=40, nodes=20, launchers=20, others=80),
    reviews=8,
    seconds=0.5,
    calls=20,
    slices=Slices(rounds=1, slice_seconds=0.1, connections=2, stage_repeats=0, imports=0),
)


class Started(NamedTuple):
    """What a server had taken when all was synced."""

    seconds: float
    cpu: float
    mib: float


def started(server: Serving, pods: WatchedPods) -> Started:
    """Wait until it is synced."""
    seconds = until_synced(server, pods=pods)
    return Started(seconds, cpu_seconds(server.process.pid), resident(server.process.pid)[0])


def costs(large: Cluster, plan: Plan) -> None:
    """Servers of one cluster, that know all pods, those of VMs, or none."""
    none, some, every = WatchedPods.NONE, WatchedPods.VIRT_LAUNCHER, WatchedPods.ALL
    with large.serving("--watch-pods", some) as of_vms:
        vms = started(of_vms, some)
    with large.serving("--watch-pods", none) as without, large.serving("--watch-pods", every) as knowing:
        base, whole = started(without, none), started(knowing, every)
        scale = plan.scale
        title(f"{scale.launchers + scale.others:,} pods on {scale.nodes:,} nodes, all watched; none")
        row("seconds to synced, all", whole.seconds, digits=2)
        row("seconds to synced, none", base.seconds, digits=2)
        row("more CPU seconds to synced", whole.cpu - base.cpu, digits=2)
        row("resident, all, MiB", whole.mib)
        row("resident, those of VMs alone, MiB", vms.mib)
        row("resident, none, MiB", base.mib)
        row("more resident than with none, MiB", whole.mib - base.mib)
        row("more resident than with the guard off (VMs' alone), MiB", whole.mib - vms.mib, MIB)
        _admissions(large, knowing, without, plan)
        for moved in (False, True):
            _events(large, knowing, plan, moved=moved)


def _admissions(large: Cluster, knowing: Serving, without: Serving, plan: Plan) -> None:
    reviews = [
        request(sample_review([claim_name(index)], namespace(index)))
        for index in range(min(plan.reviews, plan.scale.claims))
    ]

    def of(name: str, server: Serving) -> Contender:
        return contender(name, server.process, server.port, large.bench.pair.trust, requests=reviews, plan=plan.slices)

    guarded, bare = of("all", knowing), of("none", without)
    measure([guarded, bare], plan.slices)
    title("Admissions: room counted; not counted")
    for each in (guarded, bare):
        row(f"CPU of an admission, {each.name}, median, us", statistics.median(s.cpu_us for s in each.full_slices))
    pairs = zip(guarded.full_slices, bare.full_slices, strict=True)
    row(
        "ratio of CPU, median of rounds",
        statistics.median(ours.cpu_us / theirs.cpu_us for ours, theirs in pairs),
        digits=2,
    )
    for percent in (50, 99):
        for each in (guarded, bare):
            latencies = [latency * 1e3 for piece in each.single_slices for latency in piece.latencies]
            row(f"one at a time, {each.name}, p{percent}, ms", percentile(latencies, percent), digits=2)


def alone(bench: Bench, plan: Plan) -> None:
    """The same admission in one process, in turn."""
    found = bench.run("alone.py", *map(str, plan.scale), str(plan.calls))
    title("Admissions alone, in one process, in turn: CPU us")
    for name in ("p50", "p99", "p99.9", "most"):
        for pods in (WatchedPods.ALL, WatchedPods.NONE):
            row(f"{pods}, {name}", found[pods]["cpu"][name])


def _events(large: Cluster, server: Serving, plan: Plan, *, moved: bool) -> None:
    """Pods change, a thousand a second, in bursts; what that takes, and for how long nobody else is answered."""
    burst = int(EVENTS_A_SECOND * _BURST_SECONDS)
    path = f"/bench/events?path={PODS}&count={burst - 1}{'&moved=1' if moved else ''}"
    health = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with Caller(Client(server.health_port), lambda: health, _PROBE_SECONDS) as probe:
        quiet = _share(server, plan.seconds, lambda: None)
        began = perf_counter()
        busy = _share(server, plan.seconds, lambda: large.ask(path))
        during, before = probe.milliseconds(began), probe.milliseconds(0, began)
    title(
        f"{EVENTS_A_SECOND:,} events of pods a second, each {'on another node' if moved else 'of nothing that counts'}"
    )
    row("share of a core, the probe's taken off", busy - quiet, SHARE_OF_A_CORE, digits=3)
    row("/healthz each millisecond: longest answer, ms", max(during))
    row("/healthz each millisecond: longest without events, ms", max(before))
    row("/healthz: p99.9, ms", percentile(during, 99.9))
    row("/healthz: p99.9 without events, ms", percentile(before, 99.9))


def _share(server: Serving, seconds: float, act: object) -> float:
    """CPU seconds a second while `act` is done at every burst's time."""
    assert callable(act)
    began, cpu = perf_counter(), cpu_seconds(server.process.pid)
    for turn in range(int(seconds / _BURST_SECONDS)):
        act()
        time.sleep(max(0.0, began + (turn + 1) * _BURST_SECONDS - perf_counter()))
    return (cpu_seconds(server.process.pid) - cpu) / (perf_counter() - began)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only show that it runs: the figures mean nothing")
    plan = QUICK if parser.parse_args().quick else FULL
    sys.setswitchinterval(0.0002)  # of our own threads: each is to see an answer when it comes
    with TemporaryDirectory() as name:
        bench = Bench.at(Path(name))
        with cluster(bench, QUICK.scale, "stream") as small:
            bench.run("inside.py", small.kubeconfig)  # leaves the bytecode behind
        with cluster(bench, plan.scale, "stream") as large:
            costs(large, plan)
        alone(bench, plan)


if __name__ == "__main__":
    main()
