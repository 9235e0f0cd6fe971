"""Watcher: one process that follows the API server by the webhook's own caches, some milliseconds behind.

The caches, their records, their freshness and the view of a call are the real ones (webhook.kube); this class plays the
network between them and the API server. Each kind has a watch of its own, with a delay of its own that the seed draws,
and its events come in order. Events are fed when the process is asked: nothing looks at a cache in between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from simulation.api_server import ApiServer, Object
from simulation.engine import Engine

from webhook.core.api.pod import Pod
from webhook.core.decision import Pin
from webhook.core.view import Kind, NoObject, Ref
from webhook.kube import kinds
from webhook.kube.cache.caches import Caches
from webhook.kube.cache.view import CallView, LiveRead
from webhook.kube.informer.connection import Wait
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.informer.store import Resource
from webhook.kube.records.pods import PodRecord

RESOURCES: Final = {  # these clusters have too few nodes for a short list, so nobody asks for an autoscaler
    resource.kind: resource for resource in kinds.resources("longhorn-system", autoscaler=False)
}
_WATCHED: Final = [resource for resource in RESOURCES.values() if resource.watched]
_WATCH_SECONDS: Final = (0.002, 0.03)  # how late an event comes
_BOOKMARK_SECONDS: Final = 60.0  # the API server's pause between two bookmarks; they stand for each sign of life
_ENCODE: Final = msgspec.json.Encoder().encode
Drop = Callable[[Kind, bytes], bool]


class Watcher:
    """The caches of one process: a replica of the webhook.

    Attributes:
        down_until: the replica answers no call before this time.
        late: how late the watch of a kind is beside the usual delay, in seconds.
        lost: says of an event whether this process never gets it: a planted fault.
        view_type: the view of a call; another one is a planted fault.
        caches: the real caches.
    """

    def __init__(self, name: str, engine: Engine, api: ApiServer) -> None:
        self.name = name
        self.engine = engine
        self.api = api
        self.late = dict.fromkeys(Kind, 0.0)
        self.down_until = 0.0
        self.lost: Drop = lambda _kind, _event: False
        self.view_type = CallView
        self._rng = engine.rng(f"watcher {name}")
        self.caches = self._empty()
        self._queues: dict[Kind, deque[tuple[float, bytes]]] = {each.kind: deque() for each in _WATCHED}
        self._due: dict[Kind, float] = dict.fromkeys(self._queues, 0.0)
        api.watches.append(self.changed)
        self.restart()

    def restart(self) -> None:
        """Begin with empty caches, and list everything that the API server has now."""
        self.caches = self._empty()
        for kind, cache in self.caches.items():
            self._queues[kind].clear()
            self._list(kind, cache)

    def die(self, seconds: float) -> None:
        """Lose what was under way to this process, and be back with empty caches in so many seconds."""
        self.engine.trace(f"{self.name} is down for {seconds:.3f} s")
        self.down_until = self.engine.now + seconds
        for queue in self._queues.values():
            queue.clear()
        self.engine.after(seconds, self.restart)

    def changed(self, kind: Kind, event: bytes) -> None:
        """Take in one event, to be fed after its delay."""
        if kind not in self._queues or self.lost(kind, event):
            return
        due = max(self._due[kind], self.engine.now + self._rng.uniform(*_WATCH_SECONDS) + self.late[kind])
        self._due[kind] = due
        self._queues[kind].append((due, event))

    def sync(self) -> None:
        """Feed every event whose time has come, and the bookmark that a silent watch got at last."""
        now = self.engine.now
        for kind, queue in self._queues.items():
            cache = self.caches[kind]
            while queue and queue[0][0] <= now:
                due, event = queue.popleft()
                cache.feed(event, due)
            if cache.heard(now) > _BOOKMARK_SECONDS and not self.api.away:
                cache.feed(_bookmark(cache._version), now - cache.heard(now) % _BOOKMARK_SECONDS)

    def disconnect(self) -> None:
        """End every watch: the API server is away. They begin again when it is back."""
        self.sync()
        for kind, cache in self.caches.items():
            cache.ended(self.engine.now, error="connection refused")
            self._reconnect(kind, cache)

    def view(self) -> CallView:
        """Return the view of one call."""
        self.sync()
        return self.view_type(self.caches, self.engine.now, {})

    def read(self, view: CallView, refs: Iterable[Ref]) -> CallView:
        """Read these objects at the API server, as webhook.kube.cache.cluster_cache does."""
        reads = {ref: self._read(ref) for ref in refs}
        return self.view_type(self.caches, self.engine.now, {**view.reads, **reads})

    def assume(self, pod: Pod, namespace: str, pin: Pin) -> None:
        """Count a pod before its watch shows it; the cache takes it back by a timer of this clock."""
        asyncio._set_running_loop(self)
        try:
            self.caches.counted.assume(pod, namespace, pin)
        finally:
            asyncio._set_running_loop(None)

    def call_later(self, seconds: float, callback: Callable[..., object], *args: Any) -> None:
        """Stand for asyncio's loop: call back in so many simulated seconds, after the events that came before."""

        def fire() -> None:
            self.sync()
            callback(*args)

        self.engine.after(seconds, fire)

    def _read(self, ref: Ref) -> LiveRead:
        if self.api.away:
            return self._unread(ref)
        if ref.kind is Kind.VIRT_LAUNCHERS_ON_NODE:
            pods = (pod for pod in self.api.list(Kind.VIRT_LAUNCHER_POD) if pod["spec"].get("nodeName") == ref.name)
            launchers = [pod for pod in pods if pod["metadata"]["namespace"] == ref.key.namespace]
            return LiveRead([made for pod in launchers if (made := _made(RESOURCES[Kind.VIRT_LAUNCHER_POD], pod))])
        resource = RESOURCES[ref.kind]
        stored = self.api.objects[_stored(ref.kind)].get(_path(resource, ref))
        return LiveRead(NoObject.NOT_FOUND if stored is None else _made(resource, stored))

    def _unread(self, ref: Ref) -> LiveRead:
        cache = self.caches.get(ref.kind)
        stored = cache.get(ref.key) if cache else None
        if stored is None:
            return LiveRead(NoObject.UNAVAILABLE, problem="the API server is away")
        return LiveRead(stored, staleness=f"{ref.name} could not be read")

    def _empty(self) -> Caches:
        """The caches before the first list; their pauses are drawn from the seed."""
        return Caches(RESOURCES.values(), in_pod=True, jitter=self._rng.random)

    def _list(self, kind: Kind, cache: ListWatch) -> None:
        if self.caches[kind] is not cache:  # the process has died in the meantime
            return
        now = self.engine.now
        if self.api.away or isinstance(cache.next(now), Wait):
            self.engine.at(max(self.api.away_until, now + 1.0), lambda: self._list(kind, cache))
            return
        cache.opened(200, None, now)
        for value in self.api.list(kind):
            cache.feed(_ENCODE({"type": "ADDED", "object": value}) + b"\n", now)
        cache.feed(_bookmark(str(self.api.version), last=True), now)
        cache.ended(now)
        self._queues[kind].clear()
        self._reconnect(kind, cache)

    def _reconnect(self, kind: Kind, cache: ListWatch) -> None:
        if self.caches[kind] is not cache:
            return
        now = self.engine.now
        if self.api.away or isinstance(cache.next(now), Wait):
            pause = max(self.api.away_until - now, 0.0) + self._rng.uniform(0.5, 2.0)
            self.engine.after(pause, lambda: self._reconnect(kind, cache))
            return
        cache.opened(200, None, now)
        self.engine.after(1.0, lambda: cache.settle(self.engine.now))


def _made(resource: Resource, value: Object) -> Any:
    wire = msgspec.json.decode(_ENCODE(value), type=resource.wire)
    made = resource.transform(wire)
    return made.virt_launcher if isinstance(made, PodRecord) else made


def _stored(kind: Kind) -> Kind:
    return Kind.VIRT_LAUNCHER_POD if kind is Kind.SHARE_MANAGER_POD else kind


def _path(resource: Resource, ref: Ref) -> str:
    namespace = resource.namespace or ref.key.namespace
    return f"{namespace}/{ref.name}" if namespace else ref.name


def _bookmark(version: str, *, last: bool = False) -> bytes:
    annotations = {"annotations": {"k8s.io/initial-events-end": "true"}} if last else {}
    value = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version, **annotations}}}
    return _ENCODE(value) + b"\n"
