"""`make bench BENCH=caches`: the caches of a large cluster, alone and in the product.

Prints tables; README.md beside this file has the figures and how to read them. Needs Linux and two cores.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

from admissions import Contender, contender, measure  # noqa: E402
from admissions import Plan as Slices  # noqa: E402
from callers import Caller  # noqa: E402
from clusters import Bench, Cluster, cluster, until_synced  # noqa: E402
from process import cpu_seconds, resident  # noqa: E402
from sample import sample_review  # noqa: E402
from scale import Scale, claim_name, collections, namespace, uid_of, vm_name  # noqa: E402
from support.drivers.http_calls import request  # noqa: E402 - a script finds its neighbours after it has said where they are
from support.drivers.serving import Client, Serving  # noqa: E402
from table import percentile, row, title  # noqa: E402

from webhook.core.reasons import Reason  # noqa: E402
from webhook.kube.kinds import resources  # noqa: E402

SECONDS_PER_100K: Final = 2.0
MIB: Final = 512.0  # the limit of manifests/base/deployment.yaml
STALL_MS: Final = 20.0

_SMALL: Final = Scale(claims=2, pods=2, nodes=2, launchers=2)
_PROBE_SECONDS: Final = 0.001
_CALL_SECONDS: Final = 0.01
_LOOK_SECONDS: Final = 0.02


class Plan(NamedTuple):
    """How much to measure."""

    scale: Scale
    repeats: int
    kinds: int
    reviews: int
    events: int
    slices: Slices


FULL: Final = Plan(
    scale=Scale(claims=100_000, pods=100_000, nodes=5_000, launchers=20_000, others=80_000),
    repeats=3,
    kinds=8,
    reviews=500,
    events=50_000,
    slices=Slices(rounds=7, slice_seconds=1.0, connections=4, stage_repeats=0, imports=0),
)
QUICK: Final = Plan(
    scale=Scale(claims=1_200, pods=40, nodes=20, launchers=20, others=60),
    repeats=1,
    kinds=1,
    reviews=8,
    events=200,
    slices=Slices(rounds=1, slice_seconds=0.1, connections=2, stage_repeats=0, imports=0),
)


def inside(large: Cluster, way: str, repeats: int) -> None:
    """The caches alone, in a process of their own."""
    title(f"Caches alone, {way}, {large.scale.objects:,} objects, {repeats} runs")
    runs = [large.bench.run("inside.py", large.kubeconfig) for _ in range(repeats)]
    per_100k = large.scale.objects / 100_000
    for name, phase in (("list", "list"), ("list again", "relist")):
        found = [run[phase] for run in runs]
        assert all(each["objects"] == large.scale.objects for each in found), found
        seconds, cpu = _each(found, "seconds"), _each(found, "cpu_seconds")
        stalls = _each(found, "stall_ms")
        row(f"{name}: seconds per 100,000 objects, least", min(seconds) / per_100k, SECONDS_PER_100K, digits=2)
        row(f"{name}: seconds per 100,000 objects, median", statistics.median(seconds) / per_100k, digits=2)
        row(f"{name}: CPU seconds per 100,000 objects, median", statistics.median(cpu) / per_100k, digits=2)
        stall_cpu = statistics.median(_each(found, "stall_cpu_ms"))
        row(f"{name}: longest stall, its CPU time, median, ms", stall_cpu, STALL_MS)
        row(f"{name}: longest stall, least, ms", min(stalls), STALL_MS)
        row(f"{name}: longest stall, median, ms", statistics.median(stalls))
        held = [run[phase]["mib"] - run["mib_before"] for run in runs]
        row(f"{name}: memory of the caches, median, MiB", statistics.median(held))


def each_kind(large: Cluster, kinds: int) -> None:
    """One kind at a time."""
    title("One kind at a time, stream: CPU seconds per 100,000 objects; MiB")
    for resource in [each for each in resources("longhorn-system", autoscaler=False) if each.watched][-kinds:]:
        run = large.bench.run("inside.py", large.kubeconfig, resource.title)
        found = run["list"]
        per_100k = found["objects"] / 100_000
        row(f"{resource.title}: {found['objects']:,} objects", found["cpu_seconds"] / per_100k, digits=2)
        row(f"{resource.title}: MiB", found["mib"] - run["mib_before"])


def product(plan: Plan, large: Cluster, small: Cluster) -> None:
    """`serve`, from its start to the steady state, and beside it one of a small cluster."""
    scale = large.scale
    with small.serving() as idle:
        until_synced(idle)
        base, _ = resident(idle.process.pid)
        requests = _requests(large, plan.reviews)
        with large.serving() as server:
            _while_listing(large, server, requests)
            title("`serve`: memory")
            held, highest = resident(server.process.pid)
            row("resident, MiB", held, MIB)
            row("at the highest, MiB", highest, MIB)
            row(f"resident with {small.scale.objects} objects, MiB", base)
            row("bytes an object", (held - base) * 1024**2 / scale.objects, digits=0)
            before = large.ask("/bench/requests")
            big = _contender("large", large, server, requests, plan)
            other = _contender("small", small, idle, _requests(small, plan.reviews), plan)
            measure([big, other], plan.slices)
            _compare(big, other)
            after = large.ask("/bench/requests")
            row("calls to the API server in that time", after.get("get", 0) - before.get("get", 0), 0, digits=0)
            _events(large, server, plan.events)
            large.ask("/bench/expire")
            until_synced(server, times=2)
            held, highest = resident(server.process.pid)
            title("Everything expired at once, and was listed again beside what is shown: memory")
            row("resident, MiB", held, MIB)
            row("at the highest, MiB", highest, MIB)


def _while_listing(large: Cluster, server: Serving, reviews: Sequence[bytes]) -> None:
    """What callers see until all is synced, and as long after it."""
    requests = cycle(reviews)
    health = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    trust = large.bench.pair.trust
    with (
        Caller(Client(server.health_port), lambda: health, _PROBE_SECONDS) as probe,
        Caller(Client(server.port, trust), lambda: next(requests), _CALL_SECONDS) as caller,
    ):
        began = perf_counter()
        cpu = cpu_seconds(server.process.pid)
        took = until_synced(server)
        cpu = cpu_seconds(server.process.pid) - cpu
        synced = perf_counter()
        time.sleep(max(1.0, synced - began))
    title("`serve` while it lists, stream: callers' view")
    per_100k = large.scale.objects / 100_000
    row("seconds to synced", took, digits=2)
    row("seconds to synced, per 100,000 objects", took / per_100k, SECONDS_PER_100K, digits=2)
    row("CPU seconds, admissions and probes included, per 100,000 objects", cpu / per_100k, digits=2)
    row("share of the time that it had a core; below 0.9 others had it", cpu / (synced - began), digits=2)
    during, after = probe.milliseconds(began, synced), probe.milliseconds(synced)
    row("/healthz each millisecond: longest answer, ms", max(during))
    row("/healthz each millisecond: longest in as long a time afterwards, ms", max(after))
    row("/healthz: p99.9 while it lists, ms", percentile(during, 99.9), STALL_MS)
    row("/healthz: p99.9 afterwards, ms", percentile(after, 99.9))
    calls = caller.milliseconds(began, synced)
    wrong = [reply for reply in caller.replies if reply.status != 200 or not reply.response["allowed"]]
    audits = [reply.response["auditAnnotations"] for reply in caller.replies if reply not in wrong]
    preferred = [audit for audit in audits if audit["reason"] == Reason.FREE_RESOURCES_UNKNOWN.code]
    unpinned = [audit for audit in audits if audit["decision"] != "required" and audit not in preferred]
    row("admissions", len(calls), digits=0)
    row("admissions that failed", len(wrong), 0, digits=0)
    row("admissions that only prefer the node, because the pods are not listed yet", len(preferred), digits=0)
    row("admissions without the node", len(unpinned), 0, digits=0)
    row("admission p50, ms", percentile(calls, 50))
    row("admission p99, ms", percentile(calls, 99))


def _compare(big: Contender, small: Contender) -> None:
    title("Admissions in the steady state: many objects; few")
    pairs = [(ours.cpu_us, theirs.cpu_us) for ours, theirs in zip(big.full_slices, small.full_slices, strict=True)]
    row("CPU of an admission, many objects, median, us", statistics.median(ours for ours, _ in pairs))
    row("CPU of an admission, few objects, median, us", statistics.median(theirs for _, theirs in pairs))
    row("ratio of CPU, median of rounds", statistics.median(ours / theirs for ours, theirs in pairs), digits=2)
    for percent in (50, 99):
        for each, what in ((big, "many"), (small, "few")):
            latencies = [latency * 1e3 for piece in each.single_slices for latency in piece.latencies]
            row(f"one at a time, {what} objects, p{percent}, ms", percentile(latencies, percent), digits=2)


def _events(large: Cluster, server: Serving, count: int) -> None:
    """Changes as fast as they can be read; a deletion after them shows that all are in."""
    managers = collections(large.scale)[3]
    began, cpu = perf_counter(), cpu_seconds(server.process.pid)
    large.ask(f"/bench/events?path={managers.path}&count={count}")
    with Client(server.health_port) as client:
        whole = f"sharemanagers.longhorn.io ok: {managers.count} objects"
        while whole in client.ask(b"GET /readyz?verbose HTTP/1.1\r\nHost: localhost\r\n\r\n").body.decode():
            time.sleep(_LOOK_SECONDS)
    seconds, cpu = perf_counter() - began, cpu_seconds(server.process.pid) - cpu
    title(f"Watch: {count:,} changes of ShareManagers at once")
    row("events a second", count / seconds, digits=0)
    row("CPU of an event, us", cpu / count * 1e6)


def _requests(at: Cluster, count: int) -> list[bytes]:
    """Reviews of so many VMs, chosen at random among those that are there and whose share-manager has a pod."""
    few = min(at.scale.pods, at.scale.claims, at.scale.launchers or at.scale.claims)
    chosen = random.Random(0).sample(range(few), min(count, few))  # noqa: S311 - which ones does not matter
    return [
        request(sample_review([claim_name(index)], namespace(index), vm_name(index), uid_of(index).decode()))
        for index in chosen
    ]


def _contender(name: str, at: Cluster, server: Serving, requests: Sequence[bytes], plan: Plan) -> Contender:
    return contender(name, server.process, server.port, at.bench.pair.trust, requests=requests, plan=plan.slices)


def _each(found: Sequence[dict[str, Any]], name: str) -> list[float]:
    return [each[name] for each in found]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only show that it runs: the figures mean nothing")
    plan = QUICK if parser.parse_args().quick else FULL
    sys.setswitchinterval(0.0002)  # of our own threads: each is to see an answer when it comes
    with TemporaryDirectory() as name:
        bench = Bench.at(Path(name))
        with cluster(bench, _SMALL, "stream") as small:
            bench.run("inside.py", small.kubeconfig)  # leaves the bytecode behind
            with cluster(bench, plan.scale, "stream") as large:
                product(plan, large, small)
                inside(large, "stream", plan.repeats)
                each_kind(large, plan.kinds)
            with cluster(bench, plan.scale, "paged") as large:
                inside(large, "paged", plan.repeats)


if __name__ == "__main__":
    main()
