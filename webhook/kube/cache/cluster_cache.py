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
from enum import StrEnum
from typing import Any, Final

import msgspec

from webhook.component_base.client.api import Api
from webhook.component_base.client.transport import ApiError
from webhook.core.api.affinity import is_node_name
from webhook.core.api.pod import Pod
from webhook.core.decision import Pin
from webhook.core.view import Kind, NoObject, Ref
from webhook.kube.cache.caches import Caches, CacheState, cache_state
from webhook.kube.cache.view import CallView, LiveRead
from webhook.kube.informer.reflector import Reflector, loop_time
from webhook.kube.informer.store import Resource
from webhook.kube.kinds import resources
from webhook.kube.wire import Decoders, NotJSON
from webhook.objects.kinds import VIRT_LAUNCHER_POD

_GET_SECONDS: Final = 5.0  # longer than the deadline of a call should be; then it fails for all calls that wait
_GETS_AT_ONCE: Final = 64
_LISTS_AT_ONCE: Final = 4  # 20 KB a pod, and a node may have 100 pods; calls that wait for the same list share it
_OK: Final = 200


class ClusterCache:
    """The caches of one cluster. `run` keeps them up to date; without `run` every view reads what it needs.

    Two calls that need the same object at the same time share one live read. Their limits hold for the whole process,
    so that a storm of VM starts can't flood the API server. `kinds` are by default all that core reads.

    Attributes:
        under_way: the task of each live read that has not ended.
    """

    def __init__(
        self,
        api: Api,
        *,
        longhorn_namespace: str,
        kinds: Iterable[Resource] | None = None,
    ) -> None:
        by_kind: Mapping[StrEnum, Resource] = {
            resource.kind: resource for resource in kinds or resources(longhorn_namespace)
        }
        self._api = api
        self.caches = Caches(by_kind.values(), in_pod=api.in_pod)
        self.lookups = self.caches.lookups
        self.under_way: dict[Ref, asyncio.Task[LiveRead]] = {}
        self._resources = by_kind
        self._decoders = {kind: Decoders(resource.wire, resource.large) for kind, resource in by_kind.items()}
        self._slots = asyncio.Semaphore(_GETS_AT_ONCE)
        self._list_slots = asyncio.Semaphore(_LISTS_AT_ONCE)

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
        tasks = {ref: self._shared(ref) for ref in refs[:most]}
        seconds = max(0.0, deadline - loop_time())
        if tasks:
            await asyncio.wait(tasks.values(), timeout=seconds)
        late = ApiError(f"no answer in {seconds:.2f} s")
        for ref, task in tasks.items():
            self.caches.lookups[ref.kind].late += not task.done()
        reads = {ref: task.result() if task.done() else self._unread(ref, late) for ref, task in tasks.items()}
        many = ApiError("this pod needs more objects to be read than one admission may read")
        rest = {ref: self._unread(ref, many) for ref in refs if ref not in tasks}
        return CallView(self.caches, loop_time(), {**view.reads, **reads, **rest})

    def states(self) -> Sequence[CacheState]:
        """Return the state of each cache, for /readyz?verbose."""
        now = loop_time()
        return [cache_state(cache, now) for cache in self.caches.values()]

    def assume(self, pod: Pod, namespace: str, pin: Pin) -> None:
        """Count a pod that is being created in `namespace` on the nodes of its pin, until a watch shows the pod."""
        self.caches.counted.assume(pod, namespace, pin)

    def forget(self, pod: Pod, namespace: str) -> None:
        """Count the assumed pod of this pod's VM no longer, because the webhook decides about it again."""
        self.caches.counted.forget(pod, namespace)

    def _shared(self, ref: Ref) -> asyncio.Task[LiveRead]:
        """Return the one read of this object that is under way. The read goes on if a call that waits for it ends."""
        task = self.under_way.get(ref)
        if task is None:
            task = self.under_way[ref] = asyncio.get_running_loop().create_task(self._read(ref))
            task.add_done_callback(lambda done: self._unshare(ref, done))
        return task

    def _unshare(self, ref: Ref, read: asyncio.Task[Any] | None) -> None:
        if self.under_way.get(ref) is read:
            del self.under_way[ref]

    async def _read(self, ref: Ref) -> LiveRead:
        """GET one object, or LIST the pods of a namespace that are on one node."""
        on_node = ref.kind is Kind.VIRT_LAUNCHERS_ON_NODE
        in_namespace = on_node or self._resources[ref.kind].namespaced
        if not all(map(is_node_name, ref.key if in_namespace else ref.key[1:])):
            return LiveRead(NoObject.NOT_FOUND)  # no object can have this name, and the path would be another one
        counts = self.caches.lookups[ref.kind]
        try:
            async with self._list_slots if on_node else self._slots:
                if ref.kind not in self.caches:  # the next call needs a newer answer than the one to this request
                    self._unshare(ref, asyncio.current_task())
                if on_node:
                    read = await self._list_on_node(ref)
                else:
                    read = await self._get(ref, self._resources[ref.kind])
        except ApiError as problem:
            counts.failed += 1
            return self._unread(ref, problem)
        counts.absent += read.value is NoObject.NOT_FOUND
        counts.found += read.value is not NoObject.NOT_FOUND
        return read

    async def _get(self, ref: Ref, resource: Resource) -> LiveRead:
        reply = await self._api.get(resource.item(ref.key), seconds=_GET_SECONDS)
        if reply.status != _OK:
            if not reply.failure.absent:
                raise ApiError(reply.failure.sentence)
            return LiveRead(NoObject.NOT_FOUND)
        wire = self._decoders[ref.kind].object(reply.body)
        if isinstance(wire, NotJSON):
            raise ApiError(f"an object that can't be read: {wire.why}")
        return LiveRead(resource.transform(wire))

    async def _list_on_node(self, ref: Ref) -> LiveRead:
        """LIST the virt-launcher pods of one namespace on one node: a small answer from the API server's own index.

        The request takes the state of the API server's cache (resourceVersion 0), which is milliseconds behind etcd.
        For the latest state the API server may wait 100 ms (apiserver storage/cacher/progress/watch_progress.go), and
        an old API server would read the whole namespace from etcd.
        """
        pods = self._resources[Kind.VIRT_LAUNCHER_POD]
        on_node = f"spec.nodeName={ref.name}"
        query = [("labelSelector", VIRT_LAUNCHER_POD.selector), ("fieldSelector", on_node), ("resourceVersion", "0")]
        path = msgspec.structs.replace(pods, namespace=ref.key.namespace).collection
        reply = await self._api.get(path, query, seconds=_GET_SECONDS)
        if reply.status != _OK:
            raise ApiError(reply.failure.sentence)
        page = self._decoders[Kind.VIRT_LAUNCHER_POD].page(reply.body)
        if isinstance(page, NotJSON):
            raise ApiError(f"a list that can't be read: {page.why}")
        return LiveRead([pods.transform(wire).virt_launcher for wire in page.items])

    def _unread(self, ref: Ref, problem: ApiError) -> LiveRead:
        """Return what the cache last knew, with a staleness; UNAVAILABLE if the cache has no such object."""
        cache = self.caches.get(ref.kind)
        stored = cache.get(ref.key) if cache else None
        if cache is None or stored is None:
            return LiveRead(NoObject.UNAVAILABLE, problem=str(problem))
        staleness = f"{ref.kind} {ref.name} was last confirmed {cache.age(loop_time()):.0f} s ago ({problem})"
        return LiveRead(stored, staleness=staleness)
