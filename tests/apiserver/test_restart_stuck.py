"""Stuck VMs on a real control plane: each runs soon after its node is lost, and one that waits for room stays."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
import threading

import pytest
from support.control_plane.installed import Installed
from support.control_plane.kube_api import Api
from support.scenarios.admitting import until
from support.scenarios.stuck_starts import VM, Cluster, VirtController, cordon, fill, lose

from webhook.component_base.kubeconfig import Kubeconfig
from webhook.core.opt_in import Policy
from webhook.core.reunite.stuck import StuckLimits
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.client.api import Api as Client
from webhook.kube.vm_status import VMStatusTracker
from webhook.reunite.stuck_vms import StuckVMs


class Driver:
    def __init__(self, installed, limits, dry_run=False):
        self.installed, self.limits, self.dry_run = installed, limits, dry_run
        self.outcomes, self.waiting = [], {}
        self.over = threading.Event()
        self.error = None

    def __enter__(self):
        self.thread = threading.Thread(target=lambda: asyncio.run(self.main()))
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    async def main(self):
        plane = self.installed.plane
        path = plane.kubeconfig(plane.directory / "x.kubeconfig", plane.admin)
        api = await Client.connect(Kubeconfig(file=path))
        store = ClusterCache(api, longhorn_namespace="longhorn-system")
        task = asyncio.create_task(store.run())
        tracker = VMStatusTracker(store.caches, Policy(longhorn_namespace="longhorn-system"))
        stuck = StuckVMs(api, store, self.limits, dry_run=self.dry_run)
        while not self.over.is_set():
            await asyncio.sleep(0.3)
            await tracker.refresh()
            found = await stuck.round(tracker.snapshot.rows, time.time())
            self.outcomes += found
            self.waiting = dict(stuck.waiting)
            print([(o.restart.sentence, o.deleted, o.problem) for o in found], {k: str(v) for k, v in stuck.waiting.items()})
        task.cancel()
        await api.close()


def disturb(api: Api) -> None:
    lose(api, "node-a")
    cordon(api, "node-b")
    fill(api, "node-c")


def node_of(vms: VirtController, vm: VM) -> str | None:
    pod = vms.pod(vm)
    return pod["spec"].get("nodeName") if pod else None


VMS = [VM("db-a", "node-a"), VM("db-b", "node-b"), VM("db-c", "node-c")]


def test_lost(installed: Installed) -> None:
    """X."""
    with Cluster(installed, VMS, ["node-d"]) as cluster, cluster.started(disturb) as vms:
        began = time.monotonic()
        with Driver(installed, StuckLimits(stuck_seconds=2)):
            until(lambda: all(node_of(vms, vm) for vm in VMS), "nodes", seconds=60)
        print(time.monotonic() - began, vms.runs)
        assert {node_of(vms, vm) for vm in VMS} == {"node-d"}
        assert list(vms.runs.values()) == [2, 2, 2]
