"""Store: a ClusterView over the caches of a live cluster, and the reads that fill its gaps.

What a caller of `view` may assume:

- From a cache that is fresh (webhook.kube.watch) an object is taken as it is: no call to the API server.
- What such a cache has not is UNREAD, for it may have been created a moment ago: one GET tells, shared between all
  calls that ask for it at the same time. Only the absence of a share-manager pod is believed where its ShareManager,
  freshly known, is on no node either: that is every cold start.
- From a cache that is not fresh, or not synced yet, nothing is believed: everything is UNREAD, and confirmed by a GET.
- A GET that fails leaves what the cache last knew, and a `doubt`: good for a preference, not for a hard pin. Where it
  knew nothing the object is UNAVAILABLE, with the `trouble`.
- What was read for a view stays as it is for that view.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Final

from msgspec import Struct

from webhook.core.affinity import is_node_name
from webhook.core.claims import ASSIGNED_STATES
from webhook.core.objects import (
    SHARE_MANAGER_POD_PREFIX,
    LonghornNode,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ShareManager,
    ShareManagerStatus,
)
from webhook.core.view import Gap, Key, Kind, Ref
from webhook.kube.client import Api, Trouble
from webhook.kube.freshness import STALE_AFTER_SECONDS
from webhook.kube.kinds import Resource, resources
from webhook.kube.reflector import Reflector
from webhook.kube.watch import ListWatch
from webhook.kube.wire import Decoders, NotJSON

_GET_SECONDS: Final = 5.0  # longer than any call's deadline should be; then it is given up for all who wait
_GETS_AT_ONCE: Final = 64
_READS_PER_CALL_MAX: Final = 256  # of one pod: a hundred disks' worth; a pod can name 10,000 claims
_OK: Final = 200
_UNKNOWN: Final = object()


class Read(Struct, frozen=True):
    """What asking the API server for one object came to."""

    value: Any
    trouble: str = ""
    doubt: str = ""


class CacheState(Struct, frozen=True, kw_only=True):
    """How one cache is. `fresh`: calls are answered from it; `detail` says why not, or how many objects it holds."""

    title: str
    fresh: bool
    detail: str


class View:
    """One call's ClusterView (webhook.core.view): the caches as they are, and over them what was read for this call."""

    def __init__(self, store: Store, now: float, reads: Mapping[Ref, Read]) -> None:
        self._store = store
        self._now = now
        self.reads = reads

    def trouble(self, ref: Ref) -> str:
        """Why it could not be read."""
        return self.reads[ref].trouble

    def doubt(self) -> str | None:
        """The first answer that could not be confirmed."""
        return next((read.doubt for read in self.reads.values() if read.doubt), None)

    def persistent_volume_claim(self, key: Key) -> PersistentVolumeClaim | Gap:
        """The claim of that namespace and name."""
        found: PersistentVolumeClaim | Gap = self._find(Kind.PERSISTENT_VOLUME_CLAIM, key)
        return found

    def persistent_volume(self, name: str) -> PersistentVolume | Gap:
        """The volume of that name."""
        found: PersistentVolume | Gap = self._find(Kind.PERSISTENT_VOLUME, Key("", name))
        return found

    def share_manager(self, volume: str) -> ShareManager | Gap:
        """The ShareManager of a Longhorn volume."""
        found: ShareManager | Gap = self._find(Kind.SHARE_MANAGER, Key("", volume))
        return found

    def share_manager_pod(self, volume: str) -> Pod | Gap:
        """The pod share-manager-<volume> in Longhorn's namespace."""
        found: Pod | Gap = self._find(Kind.SHARE_MANAGER_POD, Key("", SHARE_MANAGER_POD_PREFIX + volume))
        return Gap.ABSENT if found is Gap.UNREAD and self._has_no_pod(volume) else found

    def node(self, name: str) -> Node | Gap:
        """The Kubernetes node of that name."""
        found: Node | Gap = self._find(Kind.NODE, Key("", name))
        return found

    def has_longhorn_nodes(self) -> bool:
        """Whether the cluster shows any nodes.longhorn.io, or ever has, or can't be said to have none."""
        return self._store.may_have_longhorn_nodes(self._now)

    def longhorn_node(self, name: str) -> LonghornNode | Gap:
        """Longhorn's object for the Kubernetes node of that name."""
        found: LonghornNode | Gap = self._find(Kind.LONGHORN_NODE, Key("", name))
        return found

    def _find(self, kind: Kind, key: Key) -> Any:
        if self.reads:
            read = self.reads.get(Ref(kind, key))
            if read is not None:
                return read.value
        cache = self._store.caches[kind]
        held = _held(cache, key) if cache.fresh(self._now) else None
        return Gap.UNREAD if held is None else held

    def _has_no_pod(self, volume: str) -> bool:
        """Whether two fresh caches agree that this share-manager has no pod."""
        pods, managers = self._store.caches[Kind.SHARE_MANAGER_POD], self._store.caches[Kind.SHARE_MANAGER]
        if not (pods.fresh(self._now) and managers.fresh(self._now)):
            return False
        status: ShareManagerStatus | None = managers.objects.get(volume)
        return status is not None and (status.state or "absent") not in ASSIGNED_STATES


class Store:
    """The caches of one cluster. `run` keeps them; without it every view reads what it needs."""

    def __init__(self, api: Api, *, longhorn_namespace: str) -> None:
        self._api = api
        self.caches: Mapping[Kind, ListWatch] = {
            resource.kind: ListWatch(resource, random=random.random) for resource in resources(longhorn_namespace)
        }
        self._decoders = {kind: Decoders(cache.resource.wire) for kind, cache in self.caches.items()}
        self._reading: dict[Ref, asyncio.Task[Read]] = {}
        self._slots = asyncio.Semaphore(_GETS_AT_ONCE)
        self._has_had_longhorn_nodes = False
        self._no_longhorn_nodes_at = -inf

    async def run(self) -> None:
        """List and watch everything until cancelled."""
        async with asyncio.TaskGroup() as group:
            for cache in self.caches.values():
                group.create_task(Reflector(self._api, cache).run())

    def view(self) -> View:
        """The cluster as it is known now."""
        return View(self, _now(), {})

    def states(self) -> Sequence[CacheState]:
        """How each cache is, for /readyz?verbose."""
        now = _now()
        return [_state(cache, now) for cache in self.caches.values()]

    def may_have_longhorn_nodes(self, now: float) -> bool:
        """False only where a whole list shows none, or has just now shown none, and none was ever seen."""
        cache = self.caches[Kind.LONGHORN_NODE]
        self._has_had_longhorn_nodes |= bool(cache.objects)
        known_to_have_none = cache.fresh(now) or now - self._no_longhorn_nodes_at <= STALE_AFTER_SECONDS
        return self._has_had_longhorn_nodes or not known_to_have_none

    async def read(self, view: View, refs: Sequence[Ref], deadline: float) -> View:
        """A view that also holds these; none of them is UNREAD any more. Ends by `deadline` (event-loop time)."""
        asked = refs[:_READS_PER_CALL_MAX]
        tasks = {ref: self._shared(ref) for ref in asked}
        seconds = max(0.0, deadline - _now())
        await asyncio.wait(tasks.values(), timeout=seconds)
        late = Trouble(f"no answer in {seconds:.2f} s")
        reads = {ref: task.result() if task.done() else self._unread(ref, late) for ref, task in tasks.items()}
        many = Trouble(f"this pod needs more than {_READS_PER_CALL_MAX} objects to be read")
        reads |= {ref: self._unread(ref, many) for ref in refs[_READS_PER_CALL_MAX:]}
        return View(self, _now(), {**view.reads, **reads})

    def _shared(self, ref: Ref) -> asyncio.Task[Read]:
        """The one read of this object that is under way. It goes on for the others when one of them leaves."""
        task = self._reading.get(ref)
        if task is None:
            task = self._reading[ref] = asyncio.get_running_loop().create_task(self._read(ref))
            task.add_done_callback(lambda _: self._reading.pop(ref, None))
        return task

    async def _read(self, ref: Ref) -> Read:
        """GET one object."""
        resource = self.caches[ref.kind].resource
        if not all(map(is_node_name, ref.key if ref.kind is Kind.PERSISTENT_VOLUME_CLAIM else ref.key[1:])):
            return Read(Gap.ABSENT)  # no object can be called so (and the path would lead elsewhere)
        try:
            async with self._slots:
                return await self._get(ref, resource)
        except Trouble as trouble:
            return self._unread(ref, trouble)

    async def _get(self, ref: Ref, resource: Resource) -> Read:
        reply = await self._api.get(resource.item(ref.key), seconds=_GET_SECONDS)
        decoders = self._decoders[ref.kind]
        if reply.status != _OK:
            failure = decoders.failure(reply.body, reply.status)
            if not failure.absent:
                raise Trouble(failure.sentence)
            if ref.kind is Kind.LONGHORN_NODE:
                await self._look_for_longhorn_nodes(resource)
            return Read(Gap.ABSENT)
        wire = decoders.object(reply.body)
        if isinstance(wire, NotJSON):
            raise Trouble(f"an object that can't be read: {wire.why}")
        return Read(resource.build(resource.key(ref.key), resource.keep(wire)))

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

    def _unread(self, ref: Ref, trouble: Trouble) -> Read:
        """What is left without an answer: what the cache last knew, in doubt, or nothing."""
        cache = self.caches[ref.kind]
        held = _held(cache, ref.key)
        if held is None:
            return Read(Gap.UNAVAILABLE, trouble=str(trouble))
        doubt = f"{ref.kind} {ref.key.name} was as told {cache.age(_now()):.0f} s ago ({trouble})"
        return Read(held, doubt=doubt)


def _held(cache: ListWatch, key: Key) -> Any | None:
    """Core's object as the cache has it, None where it has none. A record itself may be None: it had no status."""
    cache_key = cache.resource.key(key)
    record = cache.objects.get(cache_key, _UNKNOWN)
    return None if record is _UNKNOWN else cache.resource.build(cache_key, record)


def _state(cache: ListWatch, now: float) -> CacheState:
    known = f"{len(cache.objects)} objects"
    if cache.unreadable:
        known += f", {cache.unreadable} unreadable ones left out so far"
    if cache.synced:
        known += (
            f", known {cache.age(now):.0f} s ago" if cache.problem else f", heard from {cache.heard(now):.0f} s ago"
        )
    else:
        known = "not synced"
    detail = f"{known}: {cache.problem}" if cache.problem else known
    return CacheState(title=cache.resource.title, fresh=cache.fresh(now), detail=detail)


def _now() -> float:
    return asyncio.get_running_loop().time()
