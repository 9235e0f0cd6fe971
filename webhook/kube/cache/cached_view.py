"""CachedView: a ClusterView over the caches as they are, fresh or not. It never sends a request to the API server.

The status page and `status` show it; no admission uses it. Invariant: no object is missing. An object that is not in
a cache is NOT_FOUND if the cache was synced once. Otherwise it is UNAVAILABLE, and the cache's problem says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from webhook.core import refs
from webhook.core.api.pod import Pod
from webhook.core.opt_in import Policy, asked_value, label_of, opts_in
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE
from webhook.core.view import KINDS_OF_VMS, Kind, NoObject, Ref
from webhook.kube.cache.caches import Caches
from webhook.kube.cache.view import CallView
from webhook.kube.informer.list_watch import ListWatch

_KINDS_OF_ROWS: Final = (
    Kind.PERSISTENT_VOLUME_CLAIM,
    Kind.PERSISTENT_VOLUME,
    Kind.SHARE_MANAGER,
    Kind.SHARE_MANAGER_POD,
    Kind.NAMESPACE,
    Kind.VIRT_LAUNCHER_POD,
)


class CachedView(CallView):
    """A view over `caches` that follows them."""

    def __init__(self, caches: Caches) -> None:
        super().__init__(caches, 0.0, {})

    def has_longhorn_nodes(self) -> bool:
        """Return whether the cache has any nodes.longhorn.io."""
        return bool(self._caches[Kind.LONGHORN_NODE].objects)

    def _is_fresh(self, kind: Kind) -> bool:
        """Return whether the cache was synced once."""
        cache = self._caches.get(kind)
        return cache is not None and cache.synced

    def _known(self, ref: Ref) -> Any:
        kind, key = ref
        cache = self._caches.get(kind)
        if cache is None or (kind in KINDS_OF_VMS and not self._follows(kind)):
            return NoObject.UNAVAILABLE
        stored = cache.get(key)
        if stored is None:
            return NoObject.NOT_FOUND if cache.synced else NoObject.UNAVAILABLE
        return stored

    # The caches behind a VM's row.

    def late(self, now: float) -> tuple[str, ...]:
        """Return a sentence for each of these caches that is not fresh at `now`: its title and its problem."""
        late = (cache for cache in self._caches_of_rows() if not cache.fresh(now))
        return tuple(f"{cache.resource.title}: {cache.problem or 'no event from the API server'}" for cache in late)

    def age(self, now: float) -> float:
        """Return the seconds since all of these caches that were synced were certainly up to date; 0 if they are."""
        return max((cache.age(now) for cache in self._caches_of_rows() if cache.synced), default=0.0)

    def knows_pods(self) -> bool:
        """Return whether the virt-launcher pods were listed once."""
        return self._is_fresh(Kind.VIRT_LAUNCHER_POD)

    def _caches_of_rows(self) -> list[ListWatch]:
        return [self._caches[kind] for kind in _KINDS_OF_ROWS]

    def opted_in_pods(self, policy: Policy) -> Iterator[tuple[str, Pod]]:
        """Yield the cache key of each virt-launcher pod, and the pod, whose VM may be opted in."""
        for key, pod in list(self._caches.pods.virt_launchers.items()):
            value = pod.metadata.annotation(ANNOTATION_CO_SCHEDULE)
            if opts_in(self._asked(key, policy) if value is None else value):
                yield key, pod

    def _asked(self, key: str, policy: Policy) -> str | None:
        """Return the value that counts for a pod without an annotation; None if that is not known."""
        found = self.get(refs.namespace(key.partition("/")[0]))
        return None if found is NoObject.UNAVAILABLE else asked_value(None, label_of(found), policy)[0]

    def virt_launcher(self, key: str) -> Pod | None:
        """Return the virt-launcher pod of this cache key; None if there is none."""
        return self._caches.pods.virt_launchers.get(key)
