"""The rows of the VMStatusTracker over the caches of a fake API server: their states, their times, and their number."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from support.fakes.api_server import ApiServer, Cluster, refusing, until
from support.fakes.live import PATHS, put, running
from support.objects import builders
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance
from support.objects.fleets import LATER, LATEST, Clock, served
from support.objects.fleets import running_pod as launcher

from webhook.core.api.meta import NamespacedName
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.opt_in import Policy
from webhook.core.view import Kind
from webhook.kube import vm_status
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.vm_status import VMStatusTracker

NOON, AN_HOUR_LATER = "2026-02-03T12:00:00Z", "2026-02-03T13:00:00Z"
DB, WEB = NamespacedName("vms", "db"), NamespacedName("vms", "web")
Object = dict[str, Any]


def of(found: VMStatusTracker) -> dict[NamespacedName, VMStatus]:
    """VM -> row."""
    return {NamespacedName(row.namespace, row.name): row for row in found.snapshot.rows}


def states(found: VMStatusTracker) -> dict[str, State]:
    """VM -> state."""
    return {row.name: row.state for row in found.snapshot.rows}


async def test_each_vm_has_a_row_and_nothing_is_asked_for(
    store: ClusterCache, server: ApiServer, rows: VMStatusTracker
) -> None:
    """A pass makes a row for each VM and sends no request."""
    async with running(store):
        asked = len(server.reads)
        found = await rows.refresh()
        assert states(rows) == {"db": State.TOGETHER, "web": State.APART}
        assert found.counts == dict.fromkeys(State, 0) | {State.TOGETHER: 1, State.APART: 1}
        assert (found.at, found.late) == (NOON, ())
        assert len(server.reads) == asked


async def test_a_share_manager_that_moves_changes_the_row(
    store: ClusterCache, cluster: Cluster, rows: VMStatusTracker
) -> None:
    """From the next pass on. A pass without changes finds the same rows."""
    async with running(store):
        before = await rows.refresh()
        assert (await rows.refresh()).rows == before.rows
        await put(store, cluster, Kind.SHARE_MANAGER_POD, served("page", "node-a", LATEST)[1])
        await rows.refresh()
        assert (of(rows)[WEB].state, of(rows)[WEB].since) == (State.TOGETHER, LATEST)


async def test_a_state_lasts_while_it_stays(store: ClusterCache, cluster: Cluster, rows: VMStatusTracker) -> None:
    """Still apart, from another share-manager now: it has been apart since the first."""
    async with running(store):
        await rows.refresh()
        await put(store, cluster, Kind.SHARE_MANAGER_POD, served("page", "node-c", LATEST)[1])
        await rows.refresh()
        assert (of(rows)[WEB].share_manager_nodes, of(rows)[WEB].since) == (("node-c",), LATER)


async def test_the_row_of_a_vm_that_is_apart_follows_its_node(
    store: ClusterCache, cluster: Cluster, rows: VMStatusTracker
) -> None:
    """While the node is lost, KubeVirt can move the VM nowhere."""
    async with running(store):
        await put(store, cluster, Kind.NODE, builders.node("node-a", ready="Unknown"))
        await rows.refresh()
        assert of(rows)[WEB].held
        await put(store, cluster, Kind.NODE, builders.node("node-a"))
        await rows.refresh()
        assert not of(rows)[WEB].held


async def test_no_migration_is_advised_that_kubevirt_can_not_make(
    store: ClusterCache, cluster: Cluster, rows: VMStatusTracker
) -> None:
    """The page says what `status` says, also of what owns the VM."""
    instance, machine = virtual_machine_instance("web", ["page"], vm="web", node="node-a"), virtual_machine("web")
    told = {"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable", "message": "not shared"}
    instance["status"]["conditions"] = [told]
    machine["metadata"]["ownerReferences"] = [{"kind": "VirtualMachinePool", "name": "pool", "uid": "p"}]
    async with running(store):
        await put(store, cluster, Kind.VIRTUAL_MACHINE, machine)
        await put(store, cluster, Kind.VIRTUAL_MACHINE_INSTANCE, instance)
        await rows.refresh()
    remedy = of(rows)[WEB].remedy
    assert remedy.startswith("KubeVirt can't live-migrate the VM (DisksNotLiveMigratable: not shared); ")
    assert remedy.endswith("; VirtualMachinePool pool owns the VirtualMachine, and can undo what you do to it")


async def test_since_is_the_time_of_the_pass_if_no_object_has_it(
    store: ClusterCache, cluster: Cluster, rows: VMStatusTracker, clock: Clock
) -> None:
    """If no object has the time of a state, `since` is the time of the pass that first saw the state."""
    async with running(store):
        await rows.refresh()
        stopped = builders.share_manager("root", state="stopped")
        cluster.collections[PATHS[Kind.SHARE_MANAGER_POD]].remove("share-manager-root", builders.LONGHORN_NAMESPACE)
        await put(store, cluster, Kind.SHARE_MANAGER, stopped)
        await put(store, cluster, Kind.SHARE_MANAGER_POD)
        await rows.refresh()
        assert (of(rows)[DB].state, of(rows)[DB].since) == (State.FREE, NOON)
        clock.seconds += 3600
        await put(store, cluster, Kind.SHARE_MANAGER, builders.share_manager("root", state="stopped", ownerID="x"))
        await rows.refresh()
        assert (of(rows)[DB].state, of(rows)[DB].since) == (State.FREE, NOON)


async def test_a_pod_that_waits_on_its_node_is_not_running_after_ten_minutes(
    store: ClusterCache, cluster: Cluster, rows: VMStatusTracker, clock: Clock
) -> None:
    """Only the time has changed. `since` is when the pod got its node."""
    async with running(store):
        waiting = launcher("db", "root", at=NOON)
        waiting["status"]["phase"] = "Pending"
        await put(store, cluster, Kind.VIRT_LAUNCHER_POD, waiting)
        await rows.refresh()
        assert of(rows)[DB].state is State.TOGETHER
        clock.seconds += 600
        found = await rows.refresh()
        assert (of(rows)[DB].state, of(rows)[DB].since) == (State.NOT_RUNNING, NOON)
        assert found.counts[State.NOT_RUNNING] == 1


async def test_since_of_a_vm_that_started_again_is_its_new_start(
    store: ClusterCache, cluster: Cluster, rows: VMStatusTracker, clock: Clock
) -> None:
    """A VM that starts again has a new pod, so `since` is the time of that start."""
    async with running(store):
        await rows.refresh()
        pods = cluster.collections[PATHS[Kind.VIRT_LAUNCHER_POD]]
        pods.remove("virt-launcher-db-aaaaa", "vms")
        await put(store, cluster, Kind.VIRT_LAUNCHER_POD, launcher("db", "root", at=LATEST, pod="bbbbb"))
        await rows.refresh()
        assert (of(rows)[DB].state, of(rows)[DB].since) == (State.TOGETHER, LATEST)
        clock.seconds += 3600
        pods.remove("virt-launcher-db-bbbbb", "vms")
        await put(store, cluster, Kind.VIRT_LAUNCHER_POD, launcher("db", "root", pod="ccccc"))
        await rows.refresh()
        assert of(rows)[DB].since == AN_HOUR_LATER


async def test_a_vm_that_stopped_has_no_row(store: ClusterCache, cluster: Cluster, rows: VMStatusTracker) -> None:
    """Nor has a VM without the annotation."""
    async with running(store):
        await rows.refresh()
        cluster.collections[PATHS[Kind.VIRT_LAUNCHER_POD]].remove("virt-launcher-db-aaaaa", "vms")
        finished = launcher("web", "page")
        finished["status"]["phase"] = "Succeeded"
        await put(store, cluster, Kind.VIRT_LAUNCHER_POD, finished)
        found = await rows.refresh()
        assert (found.rows, found.counts) == ((), dict.fromkeys(State, 0))
        assert not rows._rows, "something of them is kept"


async def test_what_may_not_be_read_is_unknown_until_it_may(
    store: ClusterCache, cluster: Cluster, rows: VMStatusTracker
) -> None:
    """The row shows the missing permission. After the permission is there, the next pass computes the row again."""
    path, volumes = PATHS[Kind.PERSISTENT_VOLUME], store.caches[Kind.PERSISTENT_VOLUME]
    others = [cache for cache in store.caches.values() if cache is not volumes]
    with cluster.fault(refusing(403, "Forbidden", "not for you"), when=lambda asked: asked.path == path):
        async with kept(store.run()):
            await until(lambda: all(cache.synced for cache in others) and volumes.problem.startswith("forbidden"))
            found = await rows.refresh()
    assert states(rows) == {"db": State.UNKNOWN, "web": State.UNKNOWN}
    assert of(rows)[DB].because.endswith("(forbidden: 403 Forbidden: not for you)")
    assert found.late[0].startswith("persistentvolumes: forbidden: 403 Forbidden: not for you")
    async with running(store):
        await rows.refresh()
        assert states(rows) == {"db": State.TOGETHER, "web": State.APART}


async def test_a_fault_of_the_program_does_not_end_the_passes(
    store: ClusterCache, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """The tracker logs the fault, and the next pass still comes."""
    failures = [ValueError("for a test")]

    def broken() -> float:
        if failures:
            raise failures.pop()
        return clock()

    async with running(store):
        rows = VMStatusTracker(store.caches, Policy(), wall=clock)
        rows._wall = broken
        async with kept(rows.run(every_seconds=0)):
            await until(lambda: rows.snapshot.counts[State.APART] == 1)
    assert "the VMs' states could not be computed" in caplog.messages


async def test_a_pass_lets_other_tasks_run(
    store: ClusterCache, rows: VMStatusTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other tasks run between two slices of a pass."""
    monkeypatch.setattr(vm_status, "_SLICE_SECONDS", 0.0)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with running(store), kept(other()):
        before = turns
        await rows.refresh()
        assert turns >= before + 2


@asynccontextmanager
async def kept(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Have this done meanwhile."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
