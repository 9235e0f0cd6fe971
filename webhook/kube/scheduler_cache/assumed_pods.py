"""Pods: the index of all pods of the cluster. It counts them in a SchedulerCache, together with the assumed pods.

This index (webhook.kube.informer.index) also makes the records that the cache of pods stores. A record has what is
needed to stop counting its pod. Invariant: `scheduler_cache` is the sum of the records and of the assumed pods.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from webhook.core.scheduler.state.cache import SchedulerCache
from webhook.core.scheduler.state.pod_info import PodHandle, PodInfo
from webhook.kube.informer.index import Indexer
from webhook.kube.records.pods import DecodedPod, PodRecord
from webhook.kube.records.virt_launchers import VirtLauncher, by_claim


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

    def __init__(self, namespace: str = "") -> None:
        """`namespace` is that of the webhook's own pods."""
        self.scheduler_cache = SchedulerCache()
        self.virt_launchers: dict[str, VirtLauncher] = {}
        self.by_claim = Indexer(by_claim)
        self.replicas: set[str] = set()
        self._namespace = namespace
        self._assumed: dict[Hashable, tuple[PodHandle, ...]] = {}

    def same(self, old: PodRecord, new: DecodedPod) -> bool:
        """Whether nothing that counts has changed in the pod."""
        return old.digest == new.digest and old.virt_launcher == new.virt_launcher

    def put(self, key: str, old: PodRecord | None, new: DecodedPod) -> PodRecord:
        """Count a pod as a watch has just shown it, and no longer as the watch showed it before."""
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
        return PodRecord(handles[0] if len(handles) == 1 else handles, new.virt_launcher, new.digest)

    def drop(self, key: str, old: PodRecord) -> None:
        """Stop counting a pod."""
        self.replicas.discard(key)
        if old.virt_launcher is not None:
            self.by_claim.drop(key, old.virt_launcher)
            del self.virt_launchers[key]
        for handle in _handles(old):
            self.scheduler_cache.remove(handle)

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
