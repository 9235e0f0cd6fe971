"""Live: the rows of a live cluster, as whoever holds the kubeconfig may see it; read once, or followed.

Only here does status meet asyncio. Invariant: nothing is written, and what may not be read is said, in the API server's
words: they name the permission.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

from msgspec.structs import replace

from webhook.component_base.errors import UserError
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.core.observe.vm_status import VMStatus
from webhook.core.opt_in import Policy
from webhook.core.view import Kind
from webhook.kube.cache.cached_view import CachedView
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.client.api import Api
from webhook.kube.client.errors import ApiError
from webhook.kube.informer.backoff import Cause
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.informer.requests import Wait
from webhook.kube.informer.resource import Resource
from webhook.kube.kinds import WatchedPods, resources
from webhook.kube.reader import ANSWER_SECONDS, reach
from webhook.kube.records import virt_launchers
from webhook.kube.vm_status import Changes, VMStatuses, VMStatusTracker
from webhook.status.plan import Step
from webhook.status.planning import Planner

_PASS_SECONDS: Final = 1.0  # between two looks at the caches, of which a look costs 6 us a VM
_AGE_SECONDS: Final = 10.0  # after that what is shown is shown anew: the ages have gone on
_LOOK_SECONDS: Final = 0.05
_TRIES: Final = 3  # of one page
_LAUNCHERS_A_PAGE: Final = 200  # 20 KB each: 4 MB
_NOT_WORTH_WAITING: Final = (Cause.FORBIDDEN, Cause.UNAUTHORIZED)

Show = Callable[[VMStatuses, Changes], None]


class NotReadable(UserError):
    """Not even the VMs' pods can be read: there is nothing to show."""


@contextmanager
def connect(
    kubeconfig: Kubeconfig, *, longhorn_namespace: str, namespace: str | None, everywhere: bool
) -> Iterator[Live]:
    """The live cluster, for as long as the block lasts.

    Args:
        kubeconfig: which cluster, as whom.
        longhorn_namespace: of Longhorn's objects.
        namespace: of the VMs; without it the context's.
        everywhere: VMs of all namespaces instead.

    Raises:
        UserError: as webhook.explain.sources.live.reach.
    """
    logging.getLogger("webhook").addHandler(logging.NullHandler())  # what a cache warns of is shown as a problem
    with reach(kubeconfig) as (runner, api, origin):
        within = "" if everywhere else namespace or api.namespace or "default"
        yield Live(runner, api, origin, longhorn_namespace, within)


class Live:
    """The rows behind one Api. `namespace` is empty for all."""

    def __init__(self, runner: asyncio.Runner, api: Api, origin: str, longhorn_namespace: str, namespace: str) -> None:
        self.origin = origin
        self.namespace = namespace
        self._api = api
        self._run = runner.run
        self._longhorn_namespace = longhorn_namespace

    def once(self) -> tuple[VMStatuses, tuple[str, ...]]:
        """All rows as they are now, and what could not be read for them.

        Raises:
            NotReadable: there is nothing to tell.
        """
        fleet = VMStatusTracker(self._store(streams=False), self._policy, once=True)
        gc.disable()  # all that is made now stays: a collection would only walk it
        try:
            self._run(self._read(fleet))
        finally:
            gc.enable()
        return fleet.snapshot, self._known.lacking()

    async def _read(self, fleet: VMStatusTracker) -> None:
        """Nothing is returned: asyncio.Runner's signal handler makes a repr of whatever is."""
        async with asyncio.TaskGroup() as group:
            for cache in self._caches.values():
                group.create_task(_list(self._api, cache))
        self._check()
        await fleet.refresh()

    def plan(self, rows: Sequence[VMStatus]) -> tuple[list[Step], str]:
        """What would bring these together, which `once` has read; and KubeVirt's version."""
        return self._run(Planner(self._api, self._known, self._longhorn_namespace).steps(rows))

    def watch(self, show: Show) -> None:
        """Show all rows, and again whenever one has changed or the ages have gone on. Ends with KeyboardInterrupt.

        Raises:
            NotReadable: there is nothing to tell.
        """
        self._run(self._watch(show))

    async def _watch(self, show: Show) -> None:
        store = self._store(streams=True)
        fleet = VMStatusTracker(store, self._policy)
        async with _meanwhile(store.run()):
            await _listed(store)
            self._check()
            async with _meanwhile(fleet.run(_PASS_SECONDS)):
                version = 0
                while True:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(fleet.after(version), _AGE_SECONDS)
                    show(fleet.snapshot, fleet.changes(version))
                    version = fleet.snapshot.version

    @property
    def _policy(self) -> Policy:
        """The cluster's own mode is not known here: what asks for it counts as asking for the default."""
        return Policy(longhorn_namespace=self._longhorn_namespace)

    def _store(self, *, streams: bool) -> ClusterCache:
        kinds = _kinds(self._longhorn_namespace, self.namespace)
        store = ClusterCache(self._api, longhorn_namespace=self._longhorn_namespace, kinds=kinds, streams=streams)
        self._caches, self._known = store.caches, CachedView(store)
        return store

    def _check(self) -> None:
        pods = self._caches[Kind.VIRT_LAUNCHER_POD]
        if not pods.synced:
            hint = "your permissions, --namespace" if self.namespace else "your permissions, or choose a --namespace"
            raise NotReadable(
                f"{self.origin}: {pods.resource.title}: {pods.problem}; expected to list them: check {hint} and "
                "--context"
            )


def _kinds(longhorn_namespace: str, namespace: str) -> Iterator[Resource]:
    """What a row is made of, of one namespace or all: no other pods than VMs', nothing of their room, and no nodes."""
    for resource in resources(longhorn_namespace, WatchedPods.VIRT_LAUNCHER):
        if resource.kind is Kind.PERSISTENT_VOLUME_CLAIM:
            yield replace(resource, namespace=namespace)
        elif resource.kind in (Kind.PERSISTENT_VOLUME, Kind.SHARE_MANAGER, Kind.SHARE_MANAGER_POD):
            yield resource
        elif resource.kind is Kind.VIRT_LAUNCHER_POD:
            yield replace(
                resource,
                namespace=namespace,
                wire=virt_launchers.WireLauncher,
                keep=virt_launchers.keep,
                build=virt_launchers.build,
                index=None,
                page_objects=_LAUNCHERS_A_PAGE,
            )


async def _list(api: Api, cache: ListWatch) -> None:
    """List it once, by pages; what keeps it from being whole stays as its problem."""
    while not cache.synced and not _is_lost(cache):
        step = cache.next(_now())
        if isinstance(step, Wait):
            await asyncio.sleep(step.seconds)
            continue
        try:
            reply = await api.get(cache.resource.collection, step.query, seconds=ANSWER_SECONDS)
        except ApiError as problem:
            cache.ended(_now(), str(problem), silent=problem.silent)
            continue
        cache.opened(reply.status, None, _now())
        cache.feed(reply.body, _now())
        cache.ended(_now())


def _is_lost(cache: ListWatch) -> bool:
    return cache.causes.total() >= _TRIES or any(cache.causes[cause] for cause in _NOT_WORTH_WAITING)


async def _listed(store: ClusterCache) -> None:
    """Wait until each cache is whole, or is not worth waiting for."""
    with suppress(TimeoutError):
        async with asyncio.timeout(ANSWER_SECONDS):
            while not all(cache.synced or _is_lost(cache) for cache in store.caches.values()):  # noqa: ASYNC110 - no event
                await asyncio.sleep(_LOOK_SECONDS)


@asynccontextmanager
async def _meanwhile(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Have this done for as long as the block lasts; what the block raises is raised as it is."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def _now() -> float:
    return asyncio.get_running_loop().time()
