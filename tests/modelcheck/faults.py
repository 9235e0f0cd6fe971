"""Faults to plant into a replica: the search must find each of them.

Each is the real part with one thing wrong. None has another purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final

from modelcheck.replica import Parts
from msgspec.structs import replace

from webhook.core.api.node import Node
from webhook.core.scheduler.cache import NO_REQUESTS, UNLISTED, CSIDrivers, NodeInfo, SchedulerCache
from webhook.core.scheduler.pod_info import PodInfo
from webhook.kube.records.pods import PodRecord
from webhook.kube.scheduler_cache.assumed_pods import PodIndex
from webhook.kube.scheduler_cache.snapshot import CachedSnapshot


class _WholeNode(CachedSnapshot):
    @property
    def replicas(self) -> int:
        return 1


class _NothingAssumed(PodIndex):
    def assume(self, owner: Hashable, pods: Iterable[PodInfo]) -> tuple[PodInfo, ...]:
        super().assume(owner, pods)
        self.forget(owner)
        return ()


class _Evaluated(PodIndex):
    def put(self, key: str, old: PodRecord | None, new: PodRecord) -> PodRecord:
        return super().put(key, old, replace(new, counted=()) if old and new.by_record else new)


def _cache_with(**wrong: Callable[[NodeInfo], object]) -> Callable[..., PodIndex]:
    """Return Pods whose cache gives a wrong value for these fields of each NodeInfo."""

    class Cache(SchedulerCache):
        def node_info(
            self, name: str, allocatable: Mapping[str, int], csi_drivers: CSIDrivers | None, node: Node = UNLISTED
        ) -> NodeInfo:
            found = super().node_info(name, allocatable, csi_drivers, node)
            return replace(found, **{field: value(found) for field, value in wrong.items()})

    class PodsOfCache(PodIndex):
        def __init__(self, namespace: str = "", **more: Any) -> None:
            super().__init__(namespace, **more)
            self.scheduler_cache = Cache()

    return PodsOfCache


FAULTS: Final[Mapping[str, Parts]] = {
    "a share is not divided by the replicas": Parts(snapshot=_WholeNode),
    "an answer is not assumed": Parts(pods=_NothingAssumed),
    "pods on the way to the node are not counted as such": Parts(pods=_cache_with(on_the_way=lambda _: NO_REQUESTS)),
    "a pinned pod counts only until kube-scheduler has evaluated it": Parts(pods=_Evaluated),
}
