"""Called as `rows.py KUBECONFIG`: the rows of all VMs, kept up from the caches of `serve`; prints one line of JSON."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

from process import resident
from scale import vm_name

from webhook.component_base.kubeconfig import Kubeconfig
from webhook.core.opt_in import Policy
from webhook.core.view import Kind
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.client.api import Api
from webhook.kube.kinds import WatchedPods, resources
from webhook.kube.vm_status import VMStatusTracker

_LONGHORN = "longhorn-system"


class Stalls:
    """The longest CPU time between two turns of the event loop."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        """Until cancelled."""
        last = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.longest, last = max(self.longest, now - last), now


async def _pass(fleet: VMStatusTracker) -> float:
    before = time.thread_time()
    await fleet.refresh()
    return (time.thread_time() - before) * 1000


async def measure(kubeconfig: str) -> dict[str, Any]:
    """Every figure."""
    api = await Api.connect(Kubeconfig(file=Path(kubeconfig)))
    kinds = resources(_LONGHORN, WatchedPods.VIRT_LAUNCHER)
    store = ClusterCache(api, longhorn_namespace=_LONGHORN, kinds=kinds)
    gc.freeze()
    caches = asyncio.create_task(store.run())
    while not all(cache.synced for cache in store.caches.values()):  # noqa: ASYNC110 - it has no event
        await asyncio.sleep(0.01)
    gc.collect()
    gc.freeze()
    before, _ = resident()
    fleet = VMStatusTracker(store.caches, Policy())
    figures: dict[str, Any] = {"first_ms": await _pass(fleet)}
    figures["mib"] = resident()[0] - before
    figures["idle_ms"] = await _pass(fleet)
    pods = store.caches[Kind.SHARE_MANAGER_POD].objects
    pods.pop(next(iter(pods)))
    figures["change_ms"] = await _pass(fleet)
    stalls = Stalls()
    watching = asyncio.create_task(stalls.watch())
    await asyncio.sleep(0)
    another = VMStatusTracker(store.caches, Policy())  # measured: its first pass. Kept, because freeing it takes time
    await another.refresh()
    await asyncio.sleep(0)
    await fleet.refresh()
    await asyncio.sleep(0)
    figures["stall_ms"] = stalls.longest * 1000
    figures["rows"] = len(another.snapshot.rows)
    assert any(row.name == vm_name(0) for row in fleet.snapshot.rows)
    watching.cancel()
    caches.cancel()
    await asyncio.wait([watching, caches])
    await api.close()
    return figures


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(measure(sys.argv[1]))) + "\n")
