"""Admissions in one process, with every pod of a cluster known and with none, in turn: CPU time and time of each.

Called as `alone.py CLAIMS PODS NODES LAUNCHERS OTHERS CALLS`; prints one line of JSON: microseconds at percentiles.
Each has the same machine at the same moment, so what differs is its own. What was drawn to a node is assumed to be
there, and its pod is never seen.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Sequence
from time import perf_counter_ns, thread_time_ns
from typing import Any, Final

from filled import store_of
from sample import sample_review
from scale import Scale, claim_name, collections, namespace
from table import percentile

from webhook.app.handler import admit_function
from webhook.core.opt_in import Policy
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.kinds import WatchedPods

_OWNER: Final = b"82e8dbfd"  # how the VM's uid begins
_TURNS_AT_ONCE: Final = 4
_PERCENTS: Final = (50, 99, 99.9)


def _known(scale: Scale, pods: WatchedPods) -> ClusterCache:
    return store_of({each.path: each.objects() for each in collections(scale)}, pods)


async def _measure(scale: Scale, calls: int) -> dict[str, Any]:
    admits = {
        pods: admit_function(_known(scale, pods), Policy(), lambda _: None)
        for pods in (WatchedPods.ALL, WatchedPods.NONE)
    }
    vms = range(min(scale.claims, scale.launchers))
    reviews = [sample_review([claim_name(vm)], namespace(vm)).replace(_OWNER, b"%08x" % vm) for vm in vms]
    took: dict[str, dict[str, list[float]]] = {pods: {"cpu": [], "wall": []} for pods in admits}
    loop = asyncio.get_running_loop()
    for turn in range(calls):
        for pods, admit in admits.items():
            cpu, began = thread_time_ns(), perf_counter_ns()
            await admit(reviews[turn % len(reviews)], loop.time() + 1)
            took[pods]["cpu"].append((thread_time_ns() - cpu) / 1e3)
            took[pods]["wall"].append((perf_counter_ns() - began) / 1e3)
        if turn % _TURNS_AT_ONCE == 0:
            await asyncio.sleep(0)
    return {pods: {what: _percentiles(each) for what, each in found.items()} for pods, found in took.items()}


def _percentiles(found: Sequence[float]) -> dict[str, float]:
    return {f"p{percent}": percentile(found, percent) for percent in _PERCENTS} | {"most": max(found)}


def main() -> None:
    """Measure and print."""
    *counts, calls = map(int, sys.argv[1:])
    gc.freeze()  # as `serve` does
    sys.stdout.write(json.dumps(asyncio.run(_measure(Scale(*counts), calls))) + "\n")


if __name__ == "__main__":
    main()
