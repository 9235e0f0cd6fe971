"""Every pod of the cluster, as little of each as is asked for: what it takes of its node, whom it repels, whose it is.

An index (webhook.kube.informer.index) that also makes what the cache keeps: a record holds what it takes to count its
pod no more. Invariant: `scheduler_cache` is what the records and the assumed pods add up to.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from webhook.core.scheduler.state.cache import PodHandle, PodInfo, SchedulerCache
from webhook.kube.informer.index import Indexer
from webhook.kube.records.pods import DecodedPod, PodRecord
from webhook.kube.records.virt_launchers import VirtLauncher, by_claim


class Pods:
    """An Index, and what kube-scheduler calls its cache: every pod that takes a place, seen or assumed.

    A pod that was just admitted is assumed to be where it was drawn to, until a watch shows it, until it is decided on
    anew, or until it expires, for somebody after us may have refused it (pkg/scheduler/backend/cache/interface.go)::

        admitted -> assumed --+--> confirmed: a watch shows the VM's pod
                              +--> forgotten: the same VM's pod is asked about again
                              +--> expired

    Attributes:
        gathering: where the pods are.
        launchers: the virt-launcher pods by cache key; `by_claim`: their keys by the claims they use.
        replicas: the cache keys of our own pods.
    """

    def __init__(self, namespace: str = "") -> None:
        """Our own pods are in `namespace`."""
        self.scheduler_cache = SchedulerCache()
        self.virt_launchers: dict[str, VirtLauncher] = {}
        self.by_claim = Indexer(by_claim)
        self.replicas: set[str] = set()
        self._namespace = namespace
        self._assumed: dict[Hashable, tuple[PodHandle, ...]] = {}

    def same(self, old: PodRecord, new: DecodedPod) -> bool:
        """Whether the pod is as it was."""
        return old.digest == new.digest and old.virt_launcher == new.virt_launcher

    def put(self, key: str, old: PodRecord | None, new: DecodedPod) -> PodRecord:
        """Count a pod as it is now, and no more as it was."""
        if old is not None:
            if self.same(old, new):
                return old
            self.drop(key, old)
        if new.virt_launcher is not None:
            self.by_claim.put(key, None, new.virt_launcher)
            self.virt_launchers[key] = new.virt_launcher
            for assumed in self._assumed.pop((new.namespace, new.virt_launcher.uid), ()):
                self.scheduler_cache.confirm(assumed)
        if new.replica and new.namespace == self._namespace:
            self.replicas.add(key)
        handles = tuple(map(self.scheduler_cache.add, new.pod_infos))
        return PodRecord(handles[0] if len(handles) == 1 else handles, new.virt_launcher, new.digest)

    def drop(self, key: str, old: PodRecord) -> None:
        """Count a pod no more."""
        self.replicas.discard(key)
        if old.virt_launcher is not None:
            self.by_claim.drop(key, old.virt_launcher)
            del self.virt_launchers[key]
        for handles in old.handles if isinstance(old.handles, tuple) else (old.handles,):
            self.scheduler_cache.remove(handles)

    def assume(self, owner: Hashable, pods: Iterable[PodInfo]) -> tuple[PodHandle, ...]:
        """Count a pod that is being created, on each node that it is drawn to. An owner has one: the last."""
        self.forget(owner)
        assumed = self._assumed[owner] = tuple(map(self.scheduler_cache.add, pods))
        return assumed

    def forget(self, owner: Hashable, only: tuple[PodHandle, ...] | None = None) -> None:
        """Count the owner's assumed pod no more, if there is one; where `only` is told, if it is that one."""
        assumed = self._assumed.get(owner)
        if assumed is not None and (only is None or only is assumed):
            del self._assumed[owner]
            for handles in assumed:
                self.scheduler_cache.remove(handles)
