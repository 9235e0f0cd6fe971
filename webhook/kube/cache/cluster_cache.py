"""Store: a ClusterView over the caches of a live cluster, and the reads that fill its gaps.

What a caller of `view` may assume:

- From a cache that is fresh (webhook.kube.informer.list_watch) an object is taken as it is: no call to the API server.
- What such a cache has not is NOT_CACHED, for it may have been created a moment ago: one GET tells, shared between all
  calls that ask for it at the same time. Only the absence of a share-manager pod is believed where its ShareManager,
  freshly known, is on no node either: that is every cold start.
- From a cache that is not fresh, or not synced yet, nothing is believed: everything is NOT_CACHED, and confirmed by a
GET.
- What is asked for as the API server has it is read anew: no cache is taken for it, and no read that had begun before.
- A GET that fails leaves what the cache last knew, and a `staleness`: good for a preference, not for a hard pin.
Where it
  knew nothing the object is UNAVAILABLE, with the `problem`.
- What was read for a view stays as it is for that view.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from math import inf
from typing import Any, Final

import msgspec

from webhook.core.api.names import is_node_name
from webhook.core.api.pod import Pod
from webhook.core.decision import Pin
from webhook.core.scheduler.state.node_info import NO_HEADROOM
from webhook.core.scheduler.state.snapshot import Snapshot
from webhook.core.view import Kind, NoObject, ObjectRef, Ref, VirtLaunchersOnNode
from webhook.kube.cache.lookups import LookupCounts
from webhook.kube.cache.readiness import CacheState, _state
from webhook.kube.cache.view import CallView, LiveRead, _held
from webhook.kube.client.api import Api
from webhook.kube.client.errors import ApiError
from webhook.kube.client.wire import Decoders, NotJSON
from webhook.kube.informer.freshness import STALE_AFTER_SECONDS
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.informer.reflector import Reflector
from webhook.kube.informer.resource import Resource
from webhook.kube.kinds import SELECTS_VIRT_LAUNCHERS, resources
from webhook.kube.scheduler_cache.snapshot import CachedSnapshot

_GET_SECONDS: Final = 5.0  # longer than any call's deadline should be; then it is given up for all who wait
_GETS_AT_ONCE: Final = 64
_LISTS_AT_ONCE: Final = 4  # of 20 KB a pod, and a node may have a hundred; calls that wait for their turn share it
_READS_PER_CALL_MAX: Final = 256  # of one pod: a hundred disks' worth; a pod can name 10,000 claims
_OK: Final = 200


class ClusterCache:
    """The caches of one cluster. `run` keeps them; without it every view reads what it needs.

    `kinds` are all that core reads, unless told otherwise; without `streams` they are listed by pages.
    """

    def __init__(
        self,
        api: Api,
        *,
        longhorn_namespace: str,
        kinds: Iterable[Resource] | None = None,
        streams: bool = True,
        headroom: Mapping[str, int] = NO_HEADROOM,
    ) -> None:
        self._api = api
        self._resources = {resource.kind: resource for resource in kinds or resources(longhorn_namespace)}
        self.caches: Mapping[Kind, ListWatch] = {
            kind: ListWatch(resource, random=random.random, streams=streams)
            for kind, resource in self._resources.items()
            if resource.watched
        }
        self.lookups: Mapping[Kind, LookupCounts] = {kind: LookupCounts() for kind in Kind}
        self._decoders = {kind: Decoders(resource.wire) for kind, resource in self._resources.items()}
        self._reading: dict[Ref, asyncio.Task[LiveRead]] = {}
        self._slots = asyncio.Semaphore(_GETS_AT_ONCE)
        self._list_slots = asyncio.Semaphore(_LISTS_AT_ONCE)
        self._has_had_longhorn_nodes = False
        self._no_longhorn_nodes_at = -inf
        self._crowd = CachedSnapshot(self.caches, headroom, in_pod=api.in_pod) if Kind.CSI_NODE in self.caches else None

    async def run(self) -> None:
        """List and watch everything until cancelled."""
        async with asyncio.TaskGroup() as group:
            for work in self.followers().values():
                group.create_task(work)

    def followers(self) -> Mapping[str, Coroutine[Any, Any, None]]:
        """The same by cache, for a caller who wants to know of each that it goes on."""
        return {cache.resource.title: Reflector(self._api, cache).run() for cache in self.caches.values()}

    def view(self) -> CallView:
        """The cluster as it is known now."""
        return CallView(self, _now(), {})

    def states(self) -> Sequence[CacheState]:
        """How each cache is, for /readyz?verbose."""
        now = _now()
        return [_state(cache, now) for cache in self.caches.values()]

    def snapshot(self, now: float) -> Snapshot | str | None:
        """What the pods leave of the nodes; why that is not known; None where they are not all watched."""
        return None if self._crowd is None else self._crowd.problem(now) or self._crowd

    def assume(self, pod: Pod, namespace: str, drawn: Pin) -> None:
        """Count a pod that is being created in `namespace` where it was just drawn to, until a watch shows it."""
        if self._crowd is not None:
            self._crowd.assume(pod, namespace, drawn)

    def forget(self, pod: Pod, namespace: str) -> None:
        """Count a pod no more that is being created, and is decided on anew."""
        if self._crowd is not None:
            self._crowd.forget(pod, namespace)

    def may_have_longhorn_nodes(self, now: float) -> bool:
        """False only where a whole list shows none, or has just now shown none, and none was ever seen."""
        cache = self.caches[Kind.LONGHORN_NODE]
        self._has_had_longhorn_nodes |= bool(cache.objects)
        known_to_have_none = cache.fresh(now) or now - self._no_longhorn_nodes_at <= STALE_AFTER_SECONDS
        return self._has_had_longhorn_nodes or not known_to_have_none

    async def read(self, view: CallView, refs: Sequence[Ref], deadline: float) -> CallView:
        """A view that also holds these; none of them is NOT_CACHED any more. Ends by `deadline` (event-loop time)."""
        asked = refs[:_READS_PER_CALL_MAX]
        tasks = {ref: self._shared(ref) for ref in asked}
        seconds = max(0.0, deadline - _now())
        await asyncio.wait(tasks.values(), timeout=seconds)
        late = ApiError(f"no answer in {seconds:.2f} s")
        for ref, task in tasks.items():
            self.lookups[ref.kind].late += not task.done()
        reads = {ref: task.result() if task.done() else self._unread(ref, late) for ref, task in tasks.items()}
        many = ApiError(f"this pod needs more than {_READS_PER_CALL_MAX} objects to be read")
        reads |= {ref: self._unread(ref, many) for ref in refs[_READS_PER_CALL_MAX:]}
        return CallView(self, _now(), {**view.reads, **reads})

    def _shared(self, ref: Ref) -> asyncio.Task[LiveRead]:
        """The one read of this object that is under way. It goes on for the others when one of them leaves."""
        task = self._reading.get(ref)
        if task is None:
            task = self._reading[ref] = asyncio.get_running_loop().create_task(self._read(ref))
            task.add_done_callback(lambda done: self._not_shared_any_more(ref, done))
        return task

    def _not_shared_any_more(self, ref: Ref, read: asyncio.Task[Any] | None) -> None:
        if self._reading.get(ref) is read:
            del self._reading[ref]

    async def _read(self, ref: Ref) -> LiveRead:
        """GET one object, or the few pods of a namespace that are on one node."""
        on_node = isinstance(ref, VirtLaunchersOnNode)
        names = ref if isinstance(ref, VirtLaunchersOnNode) else ref.key
        in_namespace = on_node or self._resources[ref.kind].namespaced
        if not all(map(is_node_name, names if in_namespace else names[1:])):
            return LiveRead(NoObject.NOT_FOUND)  # no object can be called so (and the path would lead elsewhere)
        counts = self.lookups[ref.kind]
        try:
            async with self._list_slots if on_node else self._slots:
                if ref.kind not in self.caches:  # what is on its way may be older than what the next call knows
                    self._not_shared_any_more(ref, asyncio.current_task())
                read = await (
                    self._list_on_node(ref)
                    if isinstance(ref, VirtLaunchersOnNode)
                    else self._get(ref, self._resources[ref.kind])
                )
        except ApiError as problem:
            counts.failed += 1
            return self._unread(ref, problem)
        counts.absent += read.value is NoObject.NOT_FOUND
        counts.found += read.value is not NoObject.NOT_FOUND
        return read

    async def _get(self, ref: ObjectRef, resource: Resource) -> LiveRead:
        reply = await self._api.get(resource.item(ref.key), seconds=_GET_SECONDS)
        decoders = self._decoders[ref.kind]
        if reply.status != _OK:
            failure = decoders.failure(reply.body, reply.status)
            if not failure.absent:
                raise ApiError(failure.sentence)
            if ref.kind is Kind.LONGHORN_NODE:
                await self._look_for_longhorn_nodes(resource)
            return LiveRead(NoObject.NOT_FOUND)
        wire = decoders.object(reply.body)
        if isinstance(wire, NotJSON):
            raise ApiError(f"an object that can't be read: {wire.why}")
        return LiveRead(resource.build(resource.key(ref.key), resource.keep(wire)))

    async def _list_on_node(self, ref: VirtLaunchersOnNode) -> LiveRead:
        """The virt-launcher pods of one namespace on one node: one small answer, from the API server's own index.

        As of its cache (resourceVersion 0), milliseconds behind etcd: to be sure of the last one it may wait for 100 ms
        (apiserver storage/cacher/progress/watch_progress.go), and an old one would read the whole namespace.
        """
        pods, decoders = self._resources[Kind.VIRT_LAUNCHER_POD], self._decoders[Kind.VIRT_LAUNCHER_POD]
        on_node = f"spec.nodeName={ref.node}"
        query = [("labelSelector", SELECTS_VIRT_LAUNCHERS), ("fieldSelector", on_node), ("resourceVersion", "0")]
        path = msgspec.structs.replace(pods, namespace=ref.namespace).collection
        reply = await self._api.get(path, query, seconds=_GET_SECONDS)
        if reply.status != _OK:
            raise ApiError(decoders.failure(reply.body, reply.status).sentence)
        page = decoders.page(reply.body)
        if isinstance(page, NotJSON):
            raise ApiError(f"a list that can't be read: {page.why}")
        return LiveRead([pods.build(pods.key_of(wire.metadata), pods.keep(wire)) for wire in page.items])

    async def _look_for_longhorn_nodes(self, resource: Resource) -> None:
        """Tell "this node has none" from "this cluster has none", where no cache knows it."""
        if self.caches[resource.kind].fresh(_now()):
            return
        reply = await self._api.get(resource.collection, [("limit", "1")], seconds=_GET_SECONDS)
        decoders = self._decoders[resource.kind]
        if reply.status == _OK:
            page = decoders.page(reply.body)
            none_there = not isinstance(page, NotJSON) and not page.items
        else:
            none_there = decoders.failure(reply.body, reply.status).absent
        self._no_longhorn_nodes_at = _now() if none_there else -inf

    def _unread(self, ref: Ref, problem: ApiError) -> LiveRead:
        """What is left without an answer: what the cache last knew, in doubt, or nothing."""
        cache = self.caches.get(ref.kind)
        held = _held(cache, ref.key) if cache and isinstance(ref, ObjectRef) else None
        if cache is None or held is None:
            return LiveRead(NoObject.UNAVAILABLE, problem=str(problem))
        staleness = f"{ref.kind} {ref.name} was as told {cache.age(_now()):.0f} s ago ({problem})"
        return LiveRead(held, staleness=staleness)


def _now() -> float:
    return asyncio.get_running_loop().time()
