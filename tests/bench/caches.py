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

from clusters import Bench, Cluster, cluster, until_synced  # noqa: E402
from process import cpu_seconds, resident  # noqa: E402
from sample import sample_review  # noqa: E402
from scale import Scale, claim_name, namespace, uid_of, vm_name  # noqa: E402
from support.drivers.http_calls import Reply, request  # noqa: E402 - a script finds its neighbours after it has said where they are
from support.drivers.serving import Client, Serving  # noqa: E402
from support.repeated_step import RepeatedStep  # noqa: E402
from table import percentile, row, title  # noqa: E402

SECONDS_PER_100K: Final = 2.0
MIB: Final = 300.0  # at Kubernetes' limits; manifests/install.yaml allows 512
STALL_MS: Final = 20.0

_SMALL: Final = Scale(claims=2, pods=2, nodes=2, launchers=2)
_CALL_SECONDS: Final = 0.01


class Plan(NamedTuple):
    """How much to measure."""

    scale: Scale
    repeats: int
    reviews: int


FULL: Final = Plan(
    scale=Scale(claims=20_000, pods=20_000, nodes=5_000, launchers=10_000, others=140_000),
    repeats=3,
    reviews=500,
)
QUICK: Final = Plan(
    scale=Scale(claims=1_200, pods=40, nodes=20, launchers=20, others=60),
    repeats=1,
    reviews=8,
)


def inside(large: Cluster, repeats: int) -> None:
    """The caches alone, in a process of their own."""
    title(f"Caches alone, {large.scale.objects:,} objects, {repeats} runs")
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
            with Client(server.port, large.bench.pair.trust) as client:
                for each in requests:
                    assert client.ask(each).status == 200
            after = large.ask("/bench/requests")
            row("admissions in the steady state", len(requests), digits=0)
            row("calls to the API server in that time", after.get("get", 0) - before.get("get", 0), 0, digits=0)
            large.ask("/bench/expire")
            until_synced(server, times=2)
            held, highest = resident(server.process.pid)
            title("Everything expired at once, and was listed again beside what is shown: memory")
            row("resident, MiB", held, MIB)
            row("at the highest, MiB", highest, MIB)


class Caller(RepeatedStep):
    """Asks for one admission after the other; keeps each answer, when it was asked for, and the milliseconds."""

    def __init__(self, client: Client, requests: Sequence[bytes]) -> None:
        super().__init__(_CALL_SECONDS)
        self._client, self._requests = client, cycle(requests)
        self.answers: list[tuple[float, float, Reply]] = []

    def step(self) -> None:
        """Ask once."""
        began = perf_counter()
        reply = self._client.ask(next(self._requests))
        self.answers.append((began, (perf_counter() - began) * 1e3, reply))


def _while_listing(large: Cluster, server: Serving, reviews: Sequence[bytes]) -> None:
    """What callers see until all is synced, and as long after it."""
    with Caller(Client(server.port, large.bench.pair.trust), reviews) as caller:
        began, cpu = perf_counter(), cpu_seconds(server.process.pid)
        took = until_synced(server)
        cpu, synced = cpu_seconds(server.process.pid) - cpu, perf_counter()
        time.sleep(max(1.0, synced - began))
    title("`serve` while it lists")
    per_100k = large.scale.objects / 100_000
    row("seconds to synced, per 100,000 objects", took / per_100k, SECONDS_PER_100K, digits=2)
    row("share of the time that it had a core; below 0.9 others had it", cpu / (synced - began), digits=2)
    replies = [reply for _, _, reply in caller.answers]
    wrong = [reply for reply in replies if reply.status != 200 or not reply.response["allowed"]]
    audits = [reply.response["auditAnnotations"] for reply in replies if reply not in wrong]
    preferred = [audit for audit in audits if audit["decision"] == "preferred"]
    unpinned = [audit for audit in audits if audit["decision"] not in ("required", "preferred")]
    row("admissions that failed", len(wrong), 0, digits=0)
    row("admissions that only prefer the node, because the pods are not listed yet", len(preferred), digits=0)
    row("admissions without the node", len(unpinned), 0, digits=0)
    took_ms = [milliseconds for asked, milliseconds, _ in caller.answers if asked < synced]
    row("admission p50, ms", percentile(took_ms, 50))
    row("admission p99, ms", percentile(took_ms, 99))


def _requests(at: Cluster, count: int) -> list[bytes]:
    """Reviews of so many VMs, chosen at random among those that are there and whose share-manager has a pod."""
    few = min(at.scale.pods, at.scale.claims, at.scale.launchers or at.scale.claims)
    chosen = random.Random(0).sample(range(few), min(count, few))  # noqa: S311 - which ones does not matter
    return [
        request(sample_review([claim_name(index)], namespace(index), vm_name(index), uid_of(index).decode()))
        for index in chosen
    ]


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
        with cluster(bench, _SMALL) as small:
            bench.run("inside.py", small.kubeconfig)  # leaves the bytecode behind
            with cluster(bench, plan.scale) as large:
                product(plan, large, small)
                inside(large, plan.repeats)


if __name__ == "__main__":
    main()
