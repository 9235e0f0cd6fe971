"""Caches: the caches of one cluster by kind, the answers that take more than one of them, and what /readyz and the
metrics say of each.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import StrEnum
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.scheduler.cache import AnySnapshot, SnapshotUnavailable
from webhook.core.view import Kind
from webhook.kube.informer.connection import Cause
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.informer.store import Resource
from webhook.kube.records.objects import NodeIndex
from webhook.kube.scheduler_cache.assumed_pods import ANY_NUMBER, PodIndex
from webhook.kube.scheduler_cache.snapshot import CachedSnapshot


class LookupCounts:
    """The lookups of one kind, in its cache and by live reads.

    Attributes:
        hit: the fresh cache had the object.
        miss: the fresh cache did not have the object; a live read follows.
        stale: the cache was not fresh; a live read follows.
        found: a live read returned the object.
        absent: a live read showed that the object does not exist.
        failed: a live read got no usable answer.
        late: a live read had no answer before the deadline of an admission. Its answer is counted when it comes.
    """

    __slots__ = ("absent", "failed", "found", "hit", "late", "miss", "stale")

    def __init__(self) -> None:
        self.hit = self.miss = self.stale = 0
        self.found = self.absent = self.failed = 0
        self.late = 0


class CacheState(Struct, frozen=True, kw_only=True):
    """The state of one cache.

    Attributes:
        fresh: whether admissions are answered from the cache.
        detail: a sentence with the number of objects, and with the problem if there is one.
        heard_seconds: seconds since the API server last sent an event or a list; None if the cache was never synced.
        causes: how many lists and watches ended too early, by cause.
        unreadable: how many objects were left out so far because they could not be decoded.
    """

    title: str
    fresh: bool
    detail: str
    objects: int
    heard_seconds: float | None
    causes: Mapping[Cause, int]
    unreadable: int


def cache_state(cache: ListWatch, now: float) -> CacheState:
    """Return the state of this cache at the time `now` (event-loop time)."""
    known = f"{len(cache.objects)} objects"
    if cache.unreadable:
        known += f", {cache.unreadable} unreadable ones left out so far"
    if not cache.synced:
        known = "not synced"
    elif cache.problem or cache.age(now):  # between two watches there is no problem
        known += f", known {cache.age(now):.0f} s ago"
    else:
        known += f", last event {cache.heard(now):.0f} s ago"
    detail = f"{known}: {cache.problem}" if cache.problem else known
    return CacheState(
        title=cache.resource.title,
        fresh=cache.fresh(now),
        detail=detail,
        objects=len(cache.objects),
        heard_seconds=cache.heard(now) if cache.synced else None,
        causes={cause: cache.causes[cause] for cause in Cause},
        unreadable=cache.unreadable,
    )


class Caches(dict[StrEnum, ListWatch]):
    """The cache of each kind that is watched.

    Attributes:
        lookups: the counts of lookups in them, and of live reads, by kind.
        counted: the pods on their nodes, with those that this replica assumes.
    """

    def __init__(
        self, resources: Iterable[Resource], *, in_pod: bool, jitter: Callable[[], float] = random.random
    ) -> None:
        super().__init__(
            (resource.kind, ListWatch(self._linked(resource), random=jitter))
            for resource in resources
            if resource.watched
        )
        self.lookups: Mapping[Kind, LookupCounts] = {kind: LookupCounts() for kind in Kind}
        self.counted = CachedSnapshot(self, in_pod=in_pod)
        if Kind.VIRTUAL_MACHINE_INSTANCE in self:
            vmis = self[Kind.VIRTUAL_MACHINE_INSTANCE]
            vmis.on_add, vmis.on_delete = self.counted.vmi_added, self.counted.vmi_gone
            vmis.on_list = self.counted.vmis_listed
        self._has_had_longhorn_nodes = False

    def _linked(self, resource: Resource) -> Resource:
        """Return the resource; the index of pods asks the cache of VirtualMachineInstances."""
        if resource.kind is not Kind.VIRT_LAUNCHER_POD or resource.index is None:
            return resource
        return replace(resource, index=partial(resource.index, nodes_max=self._nodes_max))

    def _nodes_max(self, vmi: str, uid: str | None) -> int:
        """Return on how many nodes an unbound pod of this VirtualMachineInstance may count; 0 if there is none.

        Each claim leads to one node at most. KubeVirt adds one claim, for the VM's state. A pod of a VM that may exist
        counts on any number.
        """
        cache = self.get(Kind.VIRTUAL_MACHINE_INSTANCE)
        if cache is None or not (cache.synced and cache.installed):
            return ANY_NUMBER
        stored = cache.objects.get(vmi)
        return 1 + len(stored.claims) if stored is not None and stored.metadata.uid == uid else 0

    def keys_of(self, kind: Kind, value: str) -> Collection[str]:
        """Return the cache keys of the objects that the index of this kind has under `value`."""
        keys: Collection[str] = self[kind].index.index_keys(value)
        return keys

    @property
    def nodes(self) -> NodeIndex:
        """The index over the nodes."""
        index: NodeIndex = self[Kind.NODE].index
        return index

    @property
    def pods(self) -> PodIndex:
        """The index over the pods."""
        index: PodIndex = self[Kind.VIRT_LAUNCHER_POD].index
        return index

    def snapshot(self, now: float) -> AnySnapshot:
        """Return the snapshot of pods and nodes; SnapshotUnavailable if the caches are not up to date."""
        problem = self.counted.problem(now)
        return SnapshotUnavailable(problem) if problem else self.counted

    def may_have_longhorn_nodes(self, now: float) -> bool:
        """Return False if a fresh cache has no nodes.longhorn.io and none was ever seen, readable or not."""
        cache = self[Kind.LONGHORN_NODE]
        self._has_had_longhorn_nodes |= bool(cache.objects or cache.unreadable)
        return self._has_had_longhorn_nodes or not cache.fresh(now)
