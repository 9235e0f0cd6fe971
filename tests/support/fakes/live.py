"""The program's own client, caches and store at a scripted API server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from support.fakes.api_server import ApiServer, Cluster, until
from support.fakes.watching import manager
from support.models.model_api import Collection, bookmark, event
from support.objects import builders
from support.objects.owners import of_launchers
from support.waits import MAX_WAIT_SECONDS

from webhook.component_base.client.api import Api
from webhook.component_base.options import Kubeconfig
from webhook.core.admit import Answer, Entry, admit
from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.meta import NamespacedName
from webhook.core.opt_in import Policy
from webhook.core.view import Kind, ObjectRef
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.cache.view import CallView
from webhook.kube.informer.connection import Request, Wait
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.informer.reflector import Reflector
from webhook.kube.informer.store import Resource
from webhook.kube.kinds import resources

LONGHORN_NAMESPACE = "longhorn-system"
RESOURCES = {resource.kind: resource for resource in resources(LONGHORN_NAMESPACE)}
PATHS = {kind: resource.collection for kind, resource in RESOURCES.items()}
SHARE_MANAGERS = PATHS[Kind.SHARE_MANAGER]


def cluster_of(*objects: dict[str, Any], kubevirt: bool = True, **without: str) -> Cluster:
    """A cluster with a collection for each kind that core reads, and these objects in them.

    Each VM's pod among them, and that of `builders.virt_launcher_pod`, has its VirtualMachineInstance. Without
    `kubevirt` KubeVirt's kinds are not installed.
    """
    kinds = [path for path in PATHS.values() if kubevirt or "/kubevirt.io/" not in path]
    collections = {path: Collection(**without) for path in kinds}  # type: ignore[arg-type]
    for each in [*(of_launchers(objects) if kubevirt else ()), *objects]:
        collections[path_of(each)].put(each)
    return Cluster(collections)


def path_of(each: dict[str, Any]) -> str:
    """The path of the collection that this object belongs to."""
    longhorn = each["apiVersion"].startswith("longhorn.io/")
    launcher = (each["metadata"].get("labels") or {}).get(LABEL_APP) == VIRT_LAUNCHER
    kinds = {
        "Node": Kind.LONGHORN_NODE if longhorn else Kind.NODE,
        "Pod": Kind.VIRT_LAUNCHER_POD if launcher else Kind.SHARE_MANAGER_POD,
        "VolumeAttachment": Kind.VOLUME_ATTACHMENT,
        "ConfigMap": Kind.CLUSTER_AUTOSCALER_STATUS,
    }
    return PATHS[kinds.get(each["kind"]) or Kind(each["kind"])]


def write_kubeconfig(file: Path, url: str, *, authority: Path | None = None, **user: Any) -> Path:
    """A kubeconfig for the API server at `url`, with these fields of the user."""
    cluster = {"server": url, **({"certificate-authority": str(authority)} if authority else {})}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "tests",
        "contexts": [{"name": "tests", "context": {"cluster": "here", "user": "me", "namespace": "vms"}}],
        "clusters": [{"name": "here", "cluster": cluster}],
        "users": [{"name": "me", "user": user}],
    }
    file.write_text(json.dumps(content))
    return file


@asynccontextmanager
async def connected(server: ApiServer, directory: Path, **more: Any) -> AsyncIterator[Api]:
    """An Api at this server."""
    api = await Api.connect(Kubeconfig(file=write_kubeconfig(directory / "kubeconfig", server.url, **more)))
    try:
        yield api
    finally:
        await api.close()


class Impatient(ListWatch):
    """A ListWatch that gives up a silent connection after a short time."""

    silence_seconds = 0.05

    def next(self, now: float) -> Request | Wait:
        """As ListWatch."""
        step = super().next(now)
        return step if isinstance(step, Wait) else replace(step, silence_seconds=self.silence_seconds)


@asynccontextmanager
async def reflecting(
    api: Api, *, resource: Resource = RESOURCES[Kind.SHARE_MANAGER], machine: type[ListWatch] = ListWatch
) -> AsyncIterator[ListWatch]:
    """Keep a cache of this API server until the block ends, with the shortest waits between attempts."""
    cache = machine(resource, random=lambda: 0.0)
    task = asyncio.create_task(Reflector(api, cache).run())
    try:
        yield cache
    finally:
        await _cancelled(task)


@asynccontextmanager
async def running(store: ClusterCache, *, without: str | Sequence[str] = ()) -> AsyncIterator[ClusterCache]:
    """Keep the store's caches until the block ends. The block begins when all are synced, but those `without`."""
    task, late = asyncio.create_task(store.run()), {without} if isinstance(without, str) else {*without}
    try:
        await until(lambda: task.done() or all(state.fresh for state in store.states() if state.title not in late))
        yield store
    finally:
        await _cancelled(task)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def listed(cache: ListWatch, *objects: dict[str, Any], at: float) -> None:
    """Let the cache receive these objects by a list. Its watch ends without an error at the time `at`."""
    versioned = [{**each, "metadata": {**each["metadata"], "resourceVersion": "5"}} for each in objects]
    cache.next(at)
    cache.opened(200, None, at)
    cache.feed(b"".join(event("ADDED", each) for each in versioned) + bookmark(9, end=True), at)
    cache.ended(at)


async def answered(
    store: ClusterCache, pod: dict[str, Any], entry: Entry = Entry.VIRT_LAUNCHER
) -> tuple[Answer, CallView]:
    """Return the answer about a pod after all reads that it needs, and the view that led to the answer."""
    namespace = pod["metadata"].get("namespace", builders.NAMESPACE)
    view, body = store.view(), json.dumps(builders.review(pod, namespace=namespace)).encode()
    found = admit(body, view, Policy(), entry)
    while view.missing:
        view = await store.read(view, tuple(view.missing), now() + MAX_WAIT_SECONDS)
        found = admit(body, view, Policy(), entry)
    return found, view


def now() -> float:
    """Return the event loop's time, in seconds."""
    return asyncio.get_running_loop().time()


def ref(kind: Kind, name: str, namespace: str = "") -> ObjectRef:
    """The reference of an object, cluster-wide without a namespace."""
    return ObjectRef(kind, NamespacedName(namespace, name))


def owners(cache: ListWatch) -> dict[str, str | None]:
    """ShareManager -> the node that it is on."""
    return {name: record.status.owner_id for name, record in cache.objects.items()}


def gets(server: ApiServer) -> Sequence[str]:
    """The paths of single objects that were asked for."""
    return [asked.raw_path for asked in server.asked if not asked.is_list]


async def put(store: ClusterCache, cluster: Cluster, kind: Kind, *objects: dict[str, Any]) -> None:
    """Create or replace these objects, and wait until the cache has them."""
    collection, cache = cluster.collections[PATHS[kind]], store.caches[kind]
    for each in objects:
        collection.put(each)
    await until(lambda: cache._version == str(collection.revision))


def share_manager_on(name: str, node: str) -> dict[str, Any]:
    """A ShareManager on a node, as the API server stores it."""
    return {"apiVersion": "longhorn.io/v1beta2", "kind": "ShareManager", **manager(name, 0, node)}


SHARE_MANAGER = share_manager_on("a", "n1")
ITEM = f"{SHARE_MANAGERS}/a"
