"""The caches of a process that watches all pods, filled with objects at once; and the candidates in them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from support.fakes.live import LONGHORN_NAMESPACE, PATHS, path_of
from support.models.model_api import bookmark, event

from webhook.core.opt_in import Policy
from webhook.core.scheduler.state.node_info import NO_HEADROOM
from webhook.files.documents import Document
from webhook.files.manifests import Manifests
from webhook.kube.cache.caches import Caches
from webhook.kube.candidates import CandidateTracker
from webhook.kube.kinds import WatchedPods, resources

Object = dict[str, Any]


def filled(
    objects: Iterable[Object], pods: WatchedPods = WatchedPods.ALL, *, lost_seconds: float | None = None
) -> Caches:
    """The caches after a watch has shown these objects now; or before it was lost so many seconds ago."""
    now = asyncio.get_running_loop().time() - (lost_seconds or 0.0)
    caches = Caches(resources(LONGHORN_NAMESPACE, pods), streams=True, headroom=NO_HEADROOM, in_pod=False)
    kinds = {path: kind for kind, path in PATHS.items()}
    stored: dict[str, list[Object]] = {}
    for number, each in enumerate(objects, 1):
        each["metadata"]["resourceVersion"] = str(number)
        stored.setdefault(kinds[path_of(each)], []).append(each)
    for kind, cache in caches.items():
        cache.next(now)
        cache.opened(200, None, now)
        cache.feed(b"".join(event("ADDED", each) for each in stored.get(kind, ())) + bookmark(99, end=True), now)
        cache.ended(now)
        cache.next(now)
        cache.opened(200, None, now)
        assert cache.fresh(now)
        if lost_seconds is not None:
            cache.ended(now, "the connection broke")
    return caches


def tracker(objects: Iterable[Object], policy: Policy | None = None) -> CandidateTracker:
    """The candidates of a live cluster with these objects."""
    return CandidateTracker(filled(objects), policy or Policy())


def files(objects: Iterable[Object]) -> Manifests:
    """The cluster of files with these objects."""
    return Manifests([Document("a test", each) for each in objects], longhorn_namespace=LONGHORN_NAMESPACE)
