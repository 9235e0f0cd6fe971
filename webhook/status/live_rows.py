"""LiveRows: the rows of a live cluster, read once with the permissions of the user's kubeconfig.

Invariant: nothing is written to the cluster. For objects that the user may not read, `problems` has the API server's
message, which names the missing permission.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from msgspec.structs import replace

from webhook.component_base.errors import UserError
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.component_base.runner import TerminalRunner
from webhook.core.api.meta import NamespacedName
from webhook.core.observe.misplaced import misplaced_in
from webhook.core.observe.reunite_messages import with_messages
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.opt_in import Policy
from webhook.core.scheduler.matching.label_selector import Selector
from webhook.core.view import Kind
from webhook.kube import reader
from webhook.kube.cache.cached_view import CachedView
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.client.api import Api, Reply
from webhook.kube.client.errors import ApiError
from webhook.kube.informer.backoff import Cause
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.informer.reflector import loop_time
from webhook.kube.informer.requests import Wait
from webhook.kube.informer.resource import Resource
from webhook.kube.kinds import WatchedPods, resources
from webhook.kube.reader import ANSWER_SECONDS, connect_for_terminal
from webhook.kube.records import virt_launchers
from webhook.kube.reunite_events import read_messages
from webhook.kube.vm_status import VMStatuses, VMStatusTracker
from webhook.plan.planner import Planner
from webhook.plan.step import Step

_TRIES: Final = 3  # for one page of a list
_PODS_A_PAGE: Final = 200  # 20 KB a pod: 4 MB a page
_NAMESPACED: Final = (Kind.PERSISTENT_VOLUME_CLAIM, Kind.VIRTUAL_MACHINE, Kind.VIRTUAL_MACHINE_INSTANCE)
_NAMED: Final = "metadata.name="  # the field selector of one object
_PERMANENT_CAUSES: Final = (Cause.FORBIDDEN, Cause.UNAUTHORIZED)


class NotReadable(UserError):
    """The pods of the VMs can't be read, so there is nothing to show."""


@contextmanager
def connect(
    kubeconfig: Kubeconfig,
    *,
    policy: Callable[[Api], Coroutine[Any, Any, Policy]],
    namespace: str | None,
    everywhere: bool,
    selector: Selector | None = None,
) -> Iterator[LiveRows]:
    """The rows of a live cluster, until the block ends.

    Args:
        kubeconfig: the file and its context.
        policy: says which VMs are opted in, and where Longhorn's objects are.
        namespace: of the VMs; None for the namespace of the context.
        everywhere: whether to show the VMs of all namespaces instead.
        selector: of the labels of the VMs' pods; None for all VMs.

    Raises:
        UserError: as `webhook.kube.reader.connect_for_terminal`.
    """
    # A warning of a cache becomes a problem of the report.
    logging.getLogger("webhook").addHandler(logging.NullHandler())
    with connect_for_terminal(kubeconfig) as (runner, api, origin):
        within = "" if everywhere else namespace or api.namespace or "default"
        found = runner.run(policy(api))
        yield LiveRows(runner, api, origin, policy=found, namespace=within, selector=selector)


class LiveRows:
    """The rows of a live cluster behind one API client. `namespace` is empty for all namespaces."""

    def __init__(  # noqa: PLR0913 - as `connect`
        self,
        runner: TerminalRunner,
        api: Api,
        origin: str,
        *,
        policy: Policy,
        namespace: str,
        selector: Selector | None = None,
    ) -> None:
        self.origin = origin
        self.namespace = namespace
        self._selector = selector
        self._api = api
        self._run = runner.run
        self._policy, self._longhorn_namespace = policy, policy.longhorn_namespace

    def once(self) -> tuple[VMStatuses, tuple[str, ...]]:
        """Return all current rows, and a sentence for each kind of objects that could not be read.

        Raises:
            NotReadable: the pods of the VMs can't be read.
        """
        tracker = VMStatusTracker(self._cluster_cache().caches, self._policy)
        gc.disable()  # all objects that are made here stay: a collection would find none to free
        try:
            self._run(self._read(tracker))
        finally:
            gc.enable()
        return self._run(self._with_reunite_messages(tracker.snapshot)), self._known.unsynced()

    async def _with_reunite_messages(self, snapshot: VMStatuses) -> VMStatuses:
        """Return the rows with what `reunite` last said of those that are apart."""
        if not any(row.state is State.APART for row in snapshot.rows):
            return snapshot
        said = await read_messages(self._api, self.namespace) or {}
        return replace(snapshot, rows=tuple(with_messages(snapshot.rows, said)))

    async def _read(self, tracker: VMStatusTracker) -> None:
        async with asyncio.TaskGroup() as group:
            for cache in self._caches.values():
                group.create_task(_list(self._api, cache))
        self._check()
        await tracker.refresh()

    def misplaced_opt_ins(self) -> dict[NamespacedName, list[str]]:
        """Return the hints for each VirtualMachine that has the opt-in annotation in a wrong place."""
        cache = self._caches[Kind.VIRTUAL_MACHINE]
        vms = ((key, cache.resource.to_object(key, record)) for key, record in cache.objects.items())
        return {NamespacedName(*key.split("/")): hints for key, vm in vms if (hints := misplaced_in(vm))}

    def plan(self, rows: Sequence[VMStatus]) -> tuple[list[Step], str]:
        """Return a step for each of these rows, which `once` has read; and the version of KubeVirt."""
        return self._run(Planner(self._api, self._known, self._longhorn_namespace).steps(rows))

    def _cluster_cache(self) -> ClusterCache:
        kinds = _kinds(self._longhorn_namespace, self.namespace, self._selector)
        cluster = ClusterCache(self._api, longhorn_namespace=self._longhorn_namespace, kinds=kinds, streams=False)
        self._caches, self._known = cluster.caches, CachedView(cluster.caches)
        return cluster

    def _check(self) -> None:
        pods = self._caches[Kind.VIRT_LAUNCHER_POD]
        if not pods.synced:
            hint = "your permissions, --namespace" if self.namespace else "your permissions, or choose a --namespace"
            raise NotReadable(
                f"{self.origin}: {pods.resource.title}: {pods.problem}; expected to list them: check {hint} and "
                "--context"
            )


def _kinds(longhorn_namespace: str, namespace: str, selector: Selector | None) -> Iterator[Resource]:
    """The kinds that a row needs, in one namespace or all: of pods only those of VMs; no nodes."""
    labels = selector.requirements if selector else ()
    for resource in resources(longhorn_namespace, WatchedPods.VIRT_LAUNCHER):
        if resource.kind in _NAMESPACED:
            yield replace(resource, namespace=namespace)
        elif resource.kind is Kind.NAMESPACE:
            yield replace(resource, fields=f"{_NAMED}{namespace}" if namespace else "")
        elif resource.kind in (Kind.PERSISTENT_VOLUME, Kind.SHARE_MANAGER, Kind.SHARE_MANAGER_POD):
            yield resource
        elif resource.kind is Kind.VIRT_LAUNCHER_POD:
            yield replace(
                resource,
                namespace=namespace,
                selector=",".join((resource.selector, *map(str, labels))),
                wire=virt_launchers.WireVirtLauncher,
                transform=virt_launchers.transform,
                to_object=virt_launchers.to_object,
                index=None,
                page_objects=_PODS_A_PAGE,
            )


async def _list(api: Api, cache: ListWatch) -> None:
    """List the objects of a cache once, page by page. If a page fails, the cache has a problem."""
    while not cache.synced and not _has_failed(cache):
        step = cache.next(loop_time())
        if isinstance(step, Wait):
            await asyncio.sleep(step.seconds)
            continue
        try:
            reply = await _page(api, cache.resource, step.query)
        except ApiError as problem:
            cache.ended(loop_time(), str(problem), silent=problem.silent)
            continue
        cache.opened(reply.status, None, loop_time())
        cache.feed(reply.body, loop_time())
        cache.ended(loop_time())


async def _page(api: Api, resource: Resource, query: Sequence[tuple[str, str]]) -> Reply:
    """Return one page of a list. One Namespace is read by its name: a Role in it may allow that, never a list."""
    if resource.fields.startswith(_NAMED):
        one = NamespacedName("", resource.fields.removeprefix(_NAMED))
        return await reader.get_as_page(api, resource.item(one))
    return await api.get(resource.collection, query, seconds=ANSWER_SECONDS)


def _has_failed(cache: ListWatch) -> bool:
    return cache.causes.total() >= _TRIES or any(cache.causes[cause] for cause in _PERMANENT_CAUSES)
