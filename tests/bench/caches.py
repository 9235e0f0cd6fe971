"""`make bench BENCH=caches`: `serve` with the caches of a large cluster.

Prints tables; README.md beside this file has the figures and how to read them. Needs Linux and two cores.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

HERE: Final = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

from clusters import Bench, Cluster, cluster, until_synced  # noqa: E402
from process import cpu_seconds, resident  # noqa: E402
from sample import sample_review  # noqa: E402
from scale import Scale, claim_name, namespace, uid_of, vm_name  # noqa: E402
from support.drivers.http_calls import request  # noqa: E402 - a script finds its neighbours after it has said where they are
from support.drivers.serving import Client  # noqa: E402
from table import row, title  # noqa: E402

SECONDS_PER_100K: Final = 2.0
MIB: Final = 300.0  # at Kubernetes' limits
ALLOWED_MIB: Final = 512.0  # by manifests/install.yaml

_SMALL: Final = Scale(claims=2, pods=2, nodes=2, launchers=2)
_FULL: Final = Scale(claims=20_000, pods=20_000, nodes=5_000, launchers=10_000, others=140_000)
_QUICK: Final = Scale(claims=1_200, pods=40, nodes=20, launchers=20, others=60)
_REVIEWS, _QUICK_REVIEWS = 500, 8


def measure(large: Cluster, small: Cluster, reviews: int) -> None:
    """`serve`, from its start to the steady state, and beside it one of a small cluster."""
    scale = large.scale
    with small.serving() as idle:
        until_synced(idle)
        base, _ = resident(idle.process.pid)
        with large.serving() as server:
            pid, per_100k = server.process.pid, scale.objects / 100_000
            took = until_synced(server)
            title(f"`serve`, {scale.objects:,} objects")
            row("seconds to synced, per 100,000 objects", took / per_100k, SECONDS_PER_100K, digits=2)
            row("CPU seconds until then, per 100,000 objects", cpu_seconds(pid) / per_100k, digits=2)
            held, highest = resident(pid)
            row("resident, MiB", held, MIB)
            row("at the highest, MiB", highest, MIB)
            row(f"resident with {small.scale.objects} objects, MiB", base)
            row("bytes an object", (held - base) * 1024**2 / scale.objects, digits=0)
            before = large.ask("/bench/reads")
            with Client(server.port, large.bench.pair.trust) as client:
                for each in _requests(large, reviews):
                    assert client.ask(each).status == 200
            row("admissions in the steady state", reviews, digits=0)
            row("calls to the API server in that time", large.ask("/bench/reads") - before, 0, digits=0)
            large.ask("/bench/expire")
            until_synced(server, times=2)
            held, highest = resident(pid)
            title("Everything expired at once, and was listed again: memory")
            row("resident, MiB", held, ALLOWED_MIB)
            row("at the highest, MiB", highest, ALLOWED_MIB)


def _requests(at: Cluster, count: int) -> list[bytes]:
    """Reviews of so many VMs, chosen at random among those that are there and whose share-manager has a pod."""
    few = min(at.scale.pods, at.scale.claims, at.scale.launchers)
    chosen = random.Random(0).sample(range(few), min(count, few))  # noqa: S311 - which ones does not matter
    return [
        request(sample_review([claim_name(index)], namespace(index), vm_name(index), uid_of(index).decode()))
        for index in chosen
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only show that it runs: the figures mean nothing")
    scale, reviews = (_QUICK, _QUICK_REVIEWS) if parser.parse_args().quick else (_FULL, _REVIEWS)
    with TemporaryDirectory() as name:
        bench = Bench.at(Path(name))
        with cluster(bench, _SMALL) as small, cluster(bench, scale) as large:
            with small.serving() as first:  # leaves the bytecode behind
                until_synced(first)
            measure(large, small, reviews)


if __name__ == "__main__":
    main()
