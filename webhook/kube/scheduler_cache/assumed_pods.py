"""Pods: the index of all pods of the cluster. It counts them in a SchedulerCache, together with the assumed pods.

An index (webhook.kube.informer.index) that also makes the records that the cache of pods stores: a record has what it
takes to stop counting its pod. Invariant: `scheduler_cache` is the sum of the records and of the assumed pods.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from webhook.core.scheduler.state.cache import PodHandle, SchedulerCache
from webhook.core.scheduler.state.pod_info import PodInfo
from webhook.kube.records.pods import Record, Seen
from webhook.kube.records.virt_launchers import ByClaim, Launcher


class Pods:
    """An Index of all pods, as little of each as is needed: its requests, its required anti-affinity, its VM.

    webhook.core.scheduler.state.cache draws the states of a pod. This class takes a pod from one to the next:
    `assume`, `put` (confirm) and `forget` (forget, expire).

    Attributes:
        scheduler_cache: counts the pods.
        launchers: the virt-launcher pods by cache key.
        by_claim: the keys of the virt-launcher pods by the claims that they use.
        replicas: the cache keys of the webhook's own pods.
    """

    def __init__(self, namespace: str = "") -> None:
        """`namespace` is that of the webhook's own pods."""
        self.scheduler_cache = SchedulerCache()
        self.launchers: dict[str, Launcher] = {}
        self.by_claim = ByClaim()
        self.replicas: set[str] = set()
        self._namespace = namespace
        self._assumed: dict[Hashable, tuple[PodHandle, ...]] = {}

    def same(self, old: Record, new: Seen) -> bool:
        """Whether nothing that counts has changed in the pod."""
        return old.digest == new.digest and old.launcher == new.launcher

    def put(self, key: str, old: Record | None, new: Seen) -> Record:
        """Count a pod as a watch has just shown it, and no longer as the watch showed it before."""
        if old is not None:
            if self.same(old, new):
                return old
            self.drop(key, old)
        if new.launcher is not None:
            self.by_claim.put(key, None, new.launcher)
            self.launchers[key] = new.launcher
            for assumed in self._assumed.pop((new.namespace, new.launcher.uid), ()):
                self.scheduler_cache.confirm(assumed)
        if new.replica and new.namespace == self._namespace:
            self.replicas.add(key)
        counted = tuple(map(self.scheduler_cache.add, new.counts))
        return Record(counted[0] if len(counted) == 1 else counted, new.launcher, new.digest)

    def drop(self, key: str, old: Record) -> None:
        """Stop counting a pod."""
        self.replicas.discard(key)
        if old.launcher is not None:
            self.by_claim.drop(key, old.launcher)
            del self.launchers[key]
        for counted in old.counted if isinstance(old.counted, tuple) else (old.counted,):
            self.scheduler_cache.remove(counted)

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
            for counted in assumed:
                self.scheduler_cache.remove(counted)
