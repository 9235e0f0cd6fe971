"""Pods: the index of all pods of the cluster. It counts them in a SchedulerCache, together with the assumed pods.

This index (webhook.kube.informer.index) also makes the records that the cache of pods stores. A record has what is
needed to stop counting its pod. Invariant: `scheduler_cache` is the sum of the records and of the assumed pods.

A pod that no scheduler has evaluated is queued for QUEUED_SECONDS after this replica has seen it first. The time is the
replica's own, so that it does not depend on the clock of another machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from heapq import heappop, heappush
from typing import Final

from msgspec import Struct

from webhook.core.listed_snapshot import QUEUED_SECONDS
from webhook.core.scheduler.state.cache import SchedulerCache
from webhook.core.scheduler.state.pod_info import PodHandle, PodInfo
from webhook.kube.informer.index import Indexer
from webhook.kube.records.pods import DecodedPod, PodRecord
from webhook.kube.records.virt_launchers import VirtLauncher, by_claim

CREATE_HELD_SECONDS: Final = 34.0
"""The longest that an API server holds a CREATE (staging apiserver pkg/endpoints/handlers/rest.go,
requestTimeoutUpperBound): other webhooks can take that long after this one. Then the pod exists, or never will.

Nothing tells that a call ended earlier. An API server that did not wait for the answer admits the pod without it, and a
watch shows that pod. If the CREATE failed, virt-controller creates another pod. Both replace what was assumed."""


class _Queued(Struct):
    """A pod that no scheduler has evaluated: since when this replica has seen it, and how it counts."""

    since: float
    handles: tuple[PodHandle, ...]
    settled: tuple[PodInfo, ...]


class Pods:
    """An Index of all pods. Of each it stores only the requests, the required anti-affinity and the VM.

    The docstring of webhook.core.scheduler.state.cache has the states of a pod. This class changes the state:
    `assume`, `put` (confirm) and `forget` (forget, expire).

    Attributes:
        scheduler_cache: counts the pods.
        virt_launchers: the virt-launcher pods by cache key.
        by_claim: the keys of the virt-launcher pods by the claims that they use.
        replicas: the cache keys of the webhook's own pods.
    """

    def __init__(self, namespace: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        """`namespace` is that of the webhook's own pods; `clock` returns seconds."""
        self.scheduler_cache = SchedulerCache()
        self.virt_launchers: dict[str, VirtLauncher] = {}
        self.by_claim = Indexer(by_claim)
        self.replicas: set[str] = set()
        self._namespace = namespace
        self._assumed: dict[Hashable, tuple[PodHandle, ...]] = {}
        self._clock = clock
        self._queued: dict[str, _Queued] = {}
        self._ends: list[tuple[float, str]] = []  # a heap: when each of these pods is queued no more

    def same(self, old: PodRecord, new: DecodedPod) -> bool:
        """Whether nothing that counts has changed in the pod."""
        return old.digest == new.digest and old.virt_launcher == new.virt_launcher

    def put(self, key: str, old: PodRecord | None, new: DecodedPod) -> PodRecord:
        """Count a pod as a watch has just shown it, and no longer as the watch showed it before."""
        before = self._queued.get(key)
        if old is not None:
            if self.same(old, new):
                return old
            self.drop(key, old)
        if new.virt_launcher is not None:
            self.by_claim.put(key, None, new.virt_launcher)
            self.virt_launchers[key] = new.virt_launcher
            # The other pod of a live migration belongs to the same VM. A watch has shown it before.
            confirmed = self._assumed.pop((new.namespace, new.virt_launcher.uid), ()) if old is None else ()
            for assumed in confirmed:
                self.scheduler_cache.confirm(assumed)
        if new.replica and new.namespace == self._namespace:
            self.replicas.add(key)
        handles = tuple(map(self.scheduler_cache.add, new.pod_infos))
        if new.settled is not None:
            since = before.since if before else self._clock()
            self._queued[key] = _Queued(since, handles, new.settled)
            heappush(self._ends, (since + QUEUED_SECONDS, key))
        return PodRecord(handles[0] if len(handles) == 1 else handles, new.virt_launcher, new.digest)

    def drop(self, key: str, old: PodRecord) -> None:
        """Stop counting a pod."""
        self.replicas.discard(key)
        if old.virt_launcher is not None:
            self.by_claim.drop(key, old.virt_launcher)
            del self.virt_launchers[key]
        queued = self._queued.pop(key, None)
        for handle in queued.handles if queued else _handles(old):
            self.scheduler_cache.remove(handle)

    def settle(self) -> None:
        """Count the pods that have been queued for too long as what they are: no scheduler evaluates them."""
        now = self._clock()
        while self._ends and self._ends[0][0] <= now:
            queued = self._queued.get(heappop(self._ends)[1])
            if queued is None or queued.since + QUEUED_SECONDS > now:
                continue  # it was evaluated, or it is another pod of the same name
            for handle in queued.handles:
                self.scheduler_cache.remove(handle)
            queued.handles = tuple(map(self.scheduler_cache.add, queued.settled))

    def assume(self, owner: Hashable, pods: Iterable[PodInfo]) -> tuple[PodHandle, ...]:
        """Count a pod that is being created, on each of `pods`' nodes. An owner has one assumed pod: the last."""
        self.forget(owner)
        assumed = self._assumed[owner] = tuple(map(self.scheduler_cache.add, pods))
        return assumed

    def forget(self, owner: Hashable, only: tuple[PodHandle, ...] | None = None) -> None:
        """Stop counting the owner's assumed pod, if there is one; with `only`, only if it is that pod."""
        assumed = self._assumed.get(owner)
        if assumed is not None and (only is None or only is assumed):
            del self._assumed[owner]
            for handles in assumed:
                self.scheduler_cache.remove(handles)


def _handles(record: PodRecord) -> tuple[PodHandle, ...]:
    return record.handles if isinstance(record.handles, tuple) else (record.handles,)
