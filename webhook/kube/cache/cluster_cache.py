"""ClusterCache: the caches of a live cluster, and the live reads that fill their gaps, as core's ClusterView.

What a caller of `view` may assume:

- If a cache is fresh (webhook.kube.informer), the view takes an object from it without a call to the API server.
- If a fresh cache lacks an object, the object is `missing`, because it may be too new for the cache. One GET answers
  all calls that ask for it at the same time. Only one absence needs no GET: that of a share-manager pod whose
  ShareManager, in a fresh cache, is on no node. Every cold start is this case.
- If a cache is not fresh, or not synced yet, all its objects are `missing`, and a GET confirms each.
- Kinds that are never cached are read for each view. The read begins after the view asked for it.
- If a GET fails, the view has what the cache last knew, and a `staleness`: good for a preference, not for a hard pin.
  If the cache does not have the object, the object is UNAVAILABLE, with the `problem`.
- What was read for a view stays as it is for that view.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any

from webhook.component_base.client.api import Api
from webhook.core.api.pod import Pod
from webhook.core.decision import Pin
from webhook.core.view import Ref
from webhook.kube.cache.caches import Caches
from webhook.kube.cache.live_reads import LiveReads
from webhook.kube.cache.readiness import CacheState, cache_state
from webhook.kube.cache.view import CallView
from webhook.kube.informer.reflector import Reflector, loop_time
from webhook.kube.informer.resource import Resource
from webhook.kube.kinds import resources


class ClusterCache:
    """The caches of one cluster. `run` keeps them up to date; without `run` every view reads what it needs.

    `kinds` are by default all that core reads.
    """

    def __init__(
        self,
        api: Api,
        *,
        longhorn_namespace: str,
        kinds: Iterable[Resource] | None = None,
    ) -> None:
        by_kind = {resource.kind: resource for resource in kinds or resources(longhorn_namespace)}
        self._api = api
        self.caches = Caches(by_kind.values(), in_pod=api.in_pod)
        self.lookups = self.caches.lookups
        self.live_reads = LiveReads(api, by_kind, self.caches)

    async def run(self) -> None:
        """List and watch everything until cancelled."""
        async with asyncio.TaskGroup() as group:
            for work in self.reflectors().values():
                group.create_task(work)

    def reflectors(self) -> Mapping[str, Coroutine[Any, Any, None]]:
        """Return the work of `run` by cache, for a caller that supervises the task of each cache."""
        return {cache.resource.title: Reflector(self._api, cache).run() for cache in self.caches.values()}

    def view(self) -> CallView:
        """Return the cluster as the caches show it now."""
        return CallView(self.caches, loop_time(), {})

    async def read(self, view: CallView, refs: Sequence[Ref], deadline: float, most: int | None = None) -> CallView:
        """Return a view that also holds these objects; none of them is `missing`.

        It returns by `deadline` (event-loop time) at the latest. Only the first `most` objects are read.
        """
        reads = await self.live_reads.read(refs, deadline, most)
        return CallView(self.caches, loop_time(), {**view.reads, **reads})

    def states(self) -> Sequence[CacheState]:
        """Return the state of each cache, for /readyz?verbose."""
        now = loop_time()
        return [cache_state(cache, now) for cache in self.caches.values()]

    def assume(self, pod: Pod, namespace: str, pin: Pin) -> None:
        """Count a pod that is being created in `namespace` on the nodes of its pin, until a watch shows the pod."""
        self.caches.assume(pod, namespace, pin)

    def forget(self, pod: Pod, namespace: str) -> None:
        """Count the assumed pod of this pod's VM no longer, because the webhook decides about it again."""
        self.caches.forget(pod, namespace)
