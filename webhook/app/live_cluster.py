"""A live cluster to serve: the caches that follow its API server, and the background tasks of these caches.

Only `run` imports this module, and only for a live cluster: kubernetes-asyncio needs 66 MB.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from webhook.app.handler import ServedCluster
from webhook.app.settings import ServeSettings
from webhook.component_base.client.api import Api
from webhook.component_base.health import Check
from webhook.component_base.lifecycle import Background
from webhook.core.observe.vm_status import VMStatus
from webhook.core.placement.replica_share import OWN_NAMESPACE
from webhook.kube.cache.caches import CacheState
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.events import EventRecorder, ReuniteMessages, read_messages
from webhook.kube.kinds import resources
from webhook.kube.metrics import CacheMetrics, VMMetrics, event_families
from webhook.kube.vm_status import VMStarts, VMStatusTracker
from webhook.telemetry.record import LOGGER

POD_SYNC_TIMEOUT_SECONDS: Final = 30.0  # the time to list every pod; after it the replica takes calls without the pods


@asynccontextmanager
async def live_cluster(settings: ServeSettings, background: Background) -> AsyncIterator[ServedCluster]:
    """Connect to the cluster, start its caches in `background`, and stop what it started at the end.

    Raises:
        UserError: the kubeconfig can't be used; nothing was started.
    """
    api = await Api.connect(settings.client_config)
    policy = settings.policy
    kinds = resources(
        settings.longhorn_namespace,
        (api.namespace if api.in_pod else None) or OWN_NAMESPACE,
        autoscaler=policy.shortlist,
    )
    cache = ClusterCache(api, longhorn_namespace=settings.longhorn_namespace, kinds=kinds)
    gc.freeze()  # imported modules stay: without this each full collection visits them, which takes 50 ms
    for name, work in cache.reflectors().items():
        background.start(f"cache {name}", work)
    vm_statuses = VMStatusTracker(cache.caches, policy, on_stuck=_log_stuck)
    background.start("vms", vm_statuses.run())
    events = EventRecorder(api) if settings.events else None
    if events is not None:
        background.start("events", events.run())
    try:
        yield ServedCluster(
            cache,
            api.host,
            {"cluster": api.host},
            checks=_cache_checks(cache),
            metrics=(
                CacheMetrics(cache.states, cache.lookups).families,
                VMMetrics(vm_statuses, VMStarts(cache.caches, policy)).families,
                lambda: event_families(events.counts if events else {}),
            ),
            vm_statuses=lambda: vm_statuses.snapshot,
            has_vm=vm_statuses.has_vm,
            reunite_messages=ReuniteMessages(lambda: read_messages(api, "")),
            on_answer=events.record if events else None,
        )
    finally:
        if events is not None:
            await events.stop()
        await background.stop()
        await api.close()


def _log_stuck(row: VMStatus) -> None:
    """Log a VM whose pinned pod no node can take: another pod took the free resources after the webhook's answer."""
    fields = {"namespace": row.namespace, "vmi": row.name, "pod": row.pod, "because": row.because}
    LOGGER.warning(
        "a pinned VM fits nowhere",
        extra={"fields": {**fields, "to_free_it": row.remedy}},
    )


def _cache_checks(cache: ClusterCache) -> Callable[[], Sequence[Check]]:
    now = asyncio.get_running_loop().time
    until = now() + POD_SYNC_TIMEOUT_SECONDS
    return lambda: [_cache_check(state, starting=now() < until) for state in cache.states()]


def _cache_check(state: CacheState, *, starting: bool) -> Check:
    """Return the check of one cache. It does not gate: without a cache a call reads the objects that it needs.

    Exception: a replica that has just started is not ready until it has listed the pods. Reads during a call can't
    replace that list, and without it the webhook answers with a preference instead of a pin.
    """
    waits = starting and state.title == "pods" and state.heard_seconds is None
    return Check(state.title, ok=state.fresh, detail=state.detail, gates=waits)
