"""Known: a ClusterView over a Store's caches as they are, fresh or not. It never asks the API server anything.

For what is shown and decides nothing. Invariant: nothing is NOT_CACHED. What a cache that was whole once does not
hold is ABSENT; what one holds that never was is UNAVAILABLE, with what keeps it as the trouble.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.core.api.longhorn import SHARE_MANAGER_POD_PREFIX
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.opt_in import opts_in
from webhook.core.view import Kind, NoObject, Ref
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.cache.view import CallView
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.records.virt_launchers import Launcher
from webhook.kube.scheduler_cache.assumed_pods import Pods

_ABSENT: Final = object()  # a record itself may be None
_READ: Final = (
    Kind.PERSISTENT_VOLUME_CLAIM,
    Kind.PERSISTENT_VOLUME,
    Kind.SHARE_MANAGER,
    Kind.SHARE_MANAGER_POD,
    Kind.VIRT_LAUNCHER_POD,
)


class CachedView(CallView):
    """The caches of `store`."""

    def __init__(self, store: ClusterCache) -> None:
        super().__init__(store, 0.0, {})
        self._caches = store.caches
        self._latest: dict[Kind, tuple[str, object, Any]] = {}  # key, record, object: a row asks for some twice

    def read_error(self, ref: Ref) -> str:
        """What keeps the cache."""
        cache = self._caches.get(ref.kind)
        return cache.problem if cache else "it is never listed"

    def share_manager_pod(self, volume: str) -> Pod | NoObject:
        """The pod share-manager-<volume> in Longhorn's namespace."""
        found: Pod | NoObject = self._find(
            Kind.SHARE_MANAGER_POD, NamespacedName("", SHARE_MANAGER_POD_PREFIX + volume)
        )
        return found

    def has_longhorn_nodes(self) -> bool:
        """Whether the cluster shows any nodes.longhorn.io."""
        cache = self._caches.get(Kind.LONGHORN_NODE)
        return bool(cache and cache.objects)

    def _find(self, kind: Kind, key: NamespacedName) -> Any:
        cache = self._caches.get(kind)
        if cache is None:
            return NoObject.UNAVAILABLE
        cache_key = cache.resource.key(key)
        record = cache.objects.get(cache_key, _ABSENT)
        if record is _ABSENT:
            return NoObject.NOT_FOUND if cache.synced else NoObject.UNAVAILABLE
        latest = self._latest.get(kind)
        if latest is None or latest[0] != cache_key or latest[1] is not record:
            latest = self._latest[kind] = cache_key, record, cache.resource.build(cache_key, record)
        return latest[2]

    # What is behind a VM's row.

    def condition(self) -> tuple[str, ...]:
        """What keeps each cache that a row is made of from being whole; empty for nothing."""
        return tuple("" if cache.synced else cache.problem for cache in self._read())

    def lacking(self) -> tuple[str, ...]:
        """Each cache that never was whole, and what keeps it."""
        return tuple(f"{cache.resource.title}: {cache.problem}" for cache in self._read() if not cache.synced)

    def late(self, now: float) -> tuple[str, ...]:
        """Each of these caches that is not up to date, and why."""
        late = (cache for cache in self._read() if not cache.fresh(now))
        return tuple(f"{cache.resource.title}: {cache.problem or 'the API server is not heard'}" for cache in late)

    def _read(self) -> list[ListWatch]:
        return [cache for kind in _READ if (cache := self._caches.get(kind))]

    def launchers(self) -> Iterator[tuple[str, Launcher]]:
        """The virt-launcher pods of VMs that may have asked for co-scheduling, by cache key."""
        for key, launcher in list(self._launchers().items()):
            if opts_in(launcher.state.co_schedule):
                yield key, launcher

    def launcher(self, key: str) -> Launcher | None:
        """The one of this key."""
        return self._launchers().get(key)

    def _launchers(self) -> Mapping[str, Launcher]:
        """Those among all pods, or of a cache that has no others; none where none is kept."""
        cache = self._caches.get(Kind.VIRT_LAUNCHER_POD)
        if cache is None:
            return {}
        return cache.index.launchers if isinstance(cache.index, Pods) else cache.objects

    def trace(self, launcher: Launcher) -> Iterator[object]:
        """The records that a VM's row is made of: while they are the same ones, so is the row."""
        claims, volumes = self._caches[Kind.PERSISTENT_VOLUME_CLAIM], self._caches[Kind.PERSISTENT_VOLUME]
        managers, pods = self._caches[Kind.SHARE_MANAGER], self._caches[Kind.SHARE_MANAGER_POD]
        yield launcher
        for key in launcher.claims:
            claim = claims.objects.get(key)
            yield claim
            volume = volumes.objects.get(claim.volume_name) if claim and claim.volume_name else None
            yield volume
            if volume and volume.handle:
                yield managers.objects.get(volume.handle)
                yield pods.objects.get(volume.handle)
