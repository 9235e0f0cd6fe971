"""The page of a live cluster: a scripted API server, the caches, the tracker and a listener, in one loop."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace
from support.drivers.browser import Tab
from support.drivers.http_calls import Reply
from support.fakes.api_server import ApiServer, Cluster, until
from support.fakes.live import LONGHORN_NAMESPACE, PATHS, cluster_of, connected, path_of, running
from support.fakes.wire import Wire
from support.objects import builders
from support.objects.fleets import disk, running_pod, served, unschedulable

from webhook.component_base.health import health_application
from webhook.component_base.options import Address
from webhook.component_base.server.listener import Listener
from webhook.core.opt_in import Policy
from webhook.invocation import Invocation
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.kinds import resources
from webhook.kube.vm_status import VMStatusTracker
from webhook.page.feed import About, Decisions, Feed
from webhook.page.routes import page_routes
from webhook.telemetry.record import AdmissionRecord

REPLICA: Final = "kubevirt-coschedule-abcde"
DOCUMENTS: Final = "https://documents.example/"
Object = dict[str, Any]


def vm(name: str, node: str | None, share_manager: str | None, **running: Any) -> list[Object]:
    """A VM on one node, and its claim with the share-manager on another."""
    return [
        *disk(f"{name}-root"),
        *served(f"{name}-root", share_manager),
        running_pod(name, f"{name}-root", node, **running),
    ]


def stuck(name: str) -> list[Object]:
    """A VM that is pinned to node-b, and does not fit there."""
    objects = vm(name, None, "node-b")
    objects[-1]["metadata"]["annotations"] |= builders.recorded("required", "node-b")
    objects[-1]["status"]["conditions"] = [unschedulable("2026-01-02T03:04:05Z")]
    return objects


def record(number: int, **fields: Any) -> AdmissionRecord:
    """The record of a decision on the VM db<number>."""
    told = {
        "time": datetime.now(UTC), "level": "info", "message": "admission", "entry": "virt-launcher",
        "uid": f"uid-{number}", "decision": "required", "reason": "ShareManagerPod",
        "because": f"claim db{number:02}-root: pod share-manager-db{number:02}-root is on node node-a",
        "duration_us": 85, "namespace": "vms", "vmi": f"db{number:02}", "nodes": ("node-a",),
    }  # fmt: skip
    return AdmissionRecord(**(told | fields))


async def vms(tab: Tab) -> list[str]:
    """The names in the page's table, in its order, with those of rows that are not on the screen."""
    found: list[str] = await tab.value("[...document.querySelectorAll('#rows th')].map((each) => each.textContent)")
    return found


class Paged:
    """A running page, its tracker and its decisions."""

    def __init__(
        self, server: ApiServer, cluster: Cluster, store: ClusterCache, fleet: VMStatusTracker, *, files: bool
    ) -> None:
        self.server, self.cluster, self.store = server, cluster, store
        self.decisions = Decisions()
        self.fleet = fleet
        self.words: dict[tuple[str, str], str] = {}
        about = About(
            REPLICA,
            "https://api.example",
            Invocation(options=("--manifests 'my cluster'",) if files else ()),
            files,
            lambda: self.words,
            DOCUMENTS,
            fleet.has_vm,
        )
        self.feed = Feed(lambda: fleet.snapshot, self.decisions, about)
        self.listener: Listener
        self.port = 0

    @property
    def url(self) -> str:
        """The URL of the page."""
        return f"http://127.0.0.1:{self.port}/"

    async def listen(self) -> None:
        """Start to listen, on the previous port if there was one."""
        app = health_application(list)
        app.add_routes(page_routes(self.feed))
        self.listener = Listener(app)
        self.port = (await self.listener.start(Address("127.0.0.1", self.port))).port

    async def put(self, *objects: Object) -> None:
        """Add these objects to the cluster, and refresh the rows."""
        for each in objects:
            self.cluster.collections[path_of(each)].put(each)
        await self._caught_up()

    async def remove(self, each: Object) -> None:
        """Delete this object."""
        meta = each["metadata"]
        self.cluster.collections[path_of(each)].remove(meta["name"], meta.get("namespace", ""))
        await self._caught_up()

    async def _caught_up(self) -> None:
        revisions = {
            kind: str(self.cluster.collections[path].revision)
            for kind, path in PATHS.items()
            if path in self.cluster.collections
        }
        caches = self.store.caches
        await until(
            lambda: all(caches[kind]._version == version for kind, version in revisions.items() if kind in caches)
        )
        await self.fleet.refresh()


@asynccontextmanager
async def paged(
    directory: Path,
    objects: Iterable[Object] = (),
    *,
    files: bool = False,
    away: bool = False,
) -> AsyncIterator[Paged]:
    """The page of a cluster with these objects, after the first pass over them.

    Args:
        directory: for the kubeconfig.
        objects: of the cluster.
        files: whether the page says that its rows are from files.
        away: whether the caches were never filled, as if the API server did not answer.
    """
    cluster = cluster_of(*objects)
    async with ApiServer(cluster) as server, connected(server, directory) as api:
        kinds = [replace(each, fields="") for each in resources(LONGHORN_NAMESPACE)]
        store = ClusterCache(api, longhorn_namespace=LONGHORN_NAMESPACE, kinds=kinds)
        fleet = VMStatusTracker(store.caches, Policy())
        async with nullcontext() if away else running(store):
            await fleet.refresh()
            page = Paged(server, cluster, store, fleet, files=files)
            await page.listen()
            try:
                yield page
            finally:
                await page.listener.stop(0)
                await asyncio.sleep(0)


def asking(path: str, method: str = "GET", host: str = "localhost:8080", **headers: str) -> bytes:
    """A request without a body, as bytes on the wire."""
    named = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{named}\r\n".encode()


async def answer(page: Paged, request: bytes) -> Reply:
    """The answer to a request on a connection of its own."""
    async with await Wire.open(page.port) as wire:
        return await wire.ask(request)


async def state(page: Paged) -> dict[str, Any]:
    """The answer of /api/state."""
    reply = await answer(page, asking("/api/state"))
    assert reply.status == 200, reply
    told: dict[str, Any] = json.loads(gzip.decompress(reply.body))
    return told
