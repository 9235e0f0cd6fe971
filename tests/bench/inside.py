"""The caches alone in an event loop that ticks: how long they take to be whole, and for how long nothing else ran.

Call it as `inside.py KUBECONFIG`. It prints one line of JSON. First it lists everything. Then everything expires and is
listed again.

`stall_ms` is the longest time between two ticks. `stall_cpu_ms` is the most CPU time that this process used between two
ticks: on a machine with other load that figure is the better one.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter, process_time, thread_time
from typing import Any, Final

from msgspec import Struct
from process import resident

from webhook.component_base.client.api import Api
from webhook.component_base.options import Kubeconfig
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.informer.connection import Cause
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.informer.reflector import Reflector

_TICK_SECONDS: Final = 0.001


class Listing(Struct):
    """What one list of everything took."""

    objects: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    stall_ms: float = 0.0
    stall_cpu_ms: float = 0.0
    mib: float = 0.0
    mib_highest: float = 0.0


async def _measure(kubeconfig: Path) -> dict[str, Any]:
    api = await Api.connect(Kubeconfig(file=kubeconfig))
    store = ClusterCache(api, longhorn_namespace="longhorn-system")
    caches = list(store.caches.values())
    gc.freeze()  # as `serve` does
    before, _ = resident()
    reflectors = [asyncio.create_task(Reflector(api, cache).run()) for cache in caches]
    figures: dict[str, Any] = {"mib_before": before, "list": await _listing(caches, lambda cache: cache.synced)}
    await api.get("/bench/expire", seconds=10)
    figures["relist"] = await _listing(caches, lambda cache: cache.causes[Cause.EXPIRED] > 0 and not cache.problem)
    for reflector in reflectors:
        reflector.cancel()
    await asyncio.wait(reflectors)
    await api.close()
    return figures


async def _listing(caches: Sequence[ListWatch], done: Callable[[ListWatch], bool]) -> dict[str, float]:
    """Tick until all of them are done."""
    found = Listing()
    began, cpu = perf_counter(), process_time()
    last, last_own = perf_counter(), thread_time()
    while not all(map(done, caches)):
        await asyncio.sleep(_TICK_SECONDS)
        now, now_own = perf_counter(), thread_time()
        found.stall_ms = max(found.stall_ms, (now - last - _TICK_SECONDS) * 1e3)
        found.stall_cpu_ms = max(found.stall_cpu_ms, (now_own - last_own) * 1e3)
        last, last_own = now, now_own
    found.seconds, found.cpu_seconds = perf_counter() - began, process_time() - cpu
    found.objects = sum(len(cache.objects) for cache in caches)
    found.mib, found.mib_highest = resident()
    return {name: getattr(found, name) for name in found.__struct_fields__}


def main() -> None:
    """Measure and print, on the event loop that `serve` takes."""
    factory = None
    with suppress(ImportError):
        import uvloop  # noqa: PLC0415 - an extra

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        figures = runner.run(_measure(Path(sys.argv[1])))
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
