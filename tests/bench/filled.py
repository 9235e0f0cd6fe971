"""A cluster cache that has every object and no API server: the caches of `serve` without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Final, cast

from support.models.model_api import bookmark

from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.client.api import Api
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.kinds import WatchedPods, resources

_LONGHORN: Final = "longhorn-system"
_LAST_VERSION: Final = 10**9
_AHEAD_SECONDS: Final = 3_600.0  # caches are fresh for as long as a measurement takes
_NO_API: Final = cast("Api", SimpleNamespace(in_pod=False))


def store_of(lists: Mapping[str, Iterable[bytes]], pods: WatchedPods = WatchedPods.ALL) -> ClusterCache:
    """A store that has listed these objects, by the path of their collection."""
    store = ClusterCache(_NO_API, longhorn_namespace=_LONGHORN, kinds=resources(_LONGHORN, pods))
    at = asyncio.get_running_loop().time() + _AHEAD_SECONDS
    for cache in store.caches.values():
        _list(cache, lists[cache.resource.collection], at)
    return store


def _list(cache: ListWatch, objects: Iterable[bytes], at: float) -> None:
    cache.next(at)
    cache.opened(200, None, at)
    for each in objects:
        cache.feed(b'{"type":"ADDED","object":' + each + b"}\n", at)
    cache.feed(bookmark(_LAST_VERSION, end=True), at)
    cache.ended(at)
