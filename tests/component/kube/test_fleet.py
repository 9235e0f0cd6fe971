"""The rows of all VMs, kept up with the caches of a live store: what is made anew, since when, and who waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from support.fakes.api_server import ApiServer, Cluster, refusing, until
from support.fakes.live import PATHS, cluster_of, running
from support.objects import builders
from support.objects.fleets import LATER, LATEST, Clock, disk, served
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


@pytest.fixture
def cluster() -> Cluster:
    """Two VMs: `db` is with its share-manager, `web` is not."""
    return cluster_of(
        *disk("root"),
        *served("root", "node-a", LATER),
        *disk("page"),
        *served("page", "node-b", LATER),
        launcher("db", "root"),
        launcher("web", "page"),
    )


@pytest.fixture
def clock() -> Clock:
    """Noon."""
    return Clock()


@pytest.fixture
def rows(store: ClusterCache, clock: Clock) -> VMStatusTracker:
    """The rows of the store's caches."""
    return VMStatusTracker(store, Policy(), wall=clock)


def of(found: VMStatusTracker) -> dict[NamespacedName, VMStatus]:
    """VM -> row."""
    return {NamespacedName(row.namespace, row.name): row for row in found.snapshot.rows}


def states(found: VMStatusTracker) -> dict[str, State]:
    """VM -> state."""
    return {row.name: row.state for row in found.snapshot.rows}


async def put(store: ClusterCache, cluster: Cluster, kind: Kind, *objects: Object) -> None:
    """Have these objects, and the cache know of them."""
    collection, cache = cluster.collections[PATHS[kind]], store.caches[kind]
    for each in objects:
        collection.put(each)
    await until(lambda: cache._version == str(collection.revision))


async def test_each_vm_has_a_row_and_nothing_is_asked_for(
    store: ClusterCache, server: ApiServer, rows: VMStatusTracker
) -> None:
    """What the caches have is enough; states are counted, in all and by namespace."""
    async with running(store):
        asked = len(server.asked)
        found = await rows.refresh()
        assert states(rows) == {"db": State.TOGETHER, "web": State.APART}
        assert found.counts == dict.fromkeys(State, 0) | {State.TOGETHER: 1, State.APART: 1}
        assert found.by_namespace == {"vms": {State.TOGETHER: 1, State.APART: 1}}
        assert (found.version, found.at, found.late) == (1, NOON, ())
        assert len(server.asked) == asked


async def test_what_did_not_change_is_not_news(store: ClusterCache, cluster: Cluster, rows: VMStatusTracker) -> None:
    """A pass without a change has the version of the one before; with one, only its row is told."""
    async with running(store):
        await rows.refresh()
        assert (await rows.refresh()).version == 1
        assert rows.changes(1).rows == ()
        await put(store, cluster, Kind.SHARE_MANAGER_POD, served("page", "node-a", LATEST)[1])
        await rows.refresh()
        told = rows.changes(1)
        assert (told.version, told.gone, told.whole) == (2, (), False)
        assert [(row.name, row.state, row.since) for row in told.rows] == [("web", State.TOGETHER, LATEST)]


async def test_a_state_lasts_while_it_stays(store: ClusterCache, cluster: Cluster, rows: VMStatusTracker) -> None:
    """Still apart, from another share-manager now: it has been apart since the first."""
    async with running(store):
        await rows.refresh()
        await put(store, cluster, Kind.SHARE_MANAGER_POD, served("page", "node-c", LATEST)[1])
        await rows.refresh()
        assert (of(rows)[WEB].nodes_apart, of(rows)[WEB].since) == (("node-c",), LATER)


async def test_what_no_object_tells_is_known_from_when_it_was_seen(
    store: ClusterCache, cluster: Cluster, rows: VMStatusTracker, clock: Clock
) -> None:
    """A share-manager that is gone leaves no time behind; later passes keep it."""
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


async def test_a_vm_that_started_anew_is_together_from_then_on(
    store: ClusterCache, cluster: Cluster, rows: VMStatusTracker, clock: Clock
) -> None:
    """The same state of another pod began with that pod; one that tells no time, when it was seen."""
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
    """It is told as gone; nor has one that does not ask any more."""
    async with running(store):
        await rows.refresh()
        cluster.collections[PATHS[Kind.VIRT_LAUNCHER_POD]].remove("virt-launcher-db-aaaaa", "vms")
        finished = launcher("web", "page")
        finished["status"]["phase"] = "Succeeded"
        await put(store, cluster, Kind.VIRT_LAUNCHER_POD, finished)
        found = await rows.refresh()
        assert (found.rows, found.by_namespace) == ((), {})
        assert sorted(rows.changes(1).gone) == [DB, WEB]
        assert not any((rows._rows, rows._by_namespace)), "something of them is kept"


@pytest.mark.parametrize("version", [0, -1, 99], ids=["before the first", "none at all", "of another process"])
async def test_whoever_knows_nothing_of_use_is_told_all(
    store: ClusterCache, rows: VMStatusTracker, version: int
) -> None:
    """The rows are then all that there are. Version 0 had none, and its changes are all of them."""
    async with running(store):
        await rows.refresh()
        told = rows.changes(version)
        assert {row.name for row in told.rows} == {"db", "web"}
        assert told.whole == (version != 0)


async def test_what_was_forgotten_is_told_whole(
    store: ClusterCache, cluster: Cluster, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of changes is bounded: whoever comes after too long gets everything."""
    monkeypatch.setattr(vm_status, "_CHANGES_KEPT", 2)
    rows = VMStatusTracker(store, Policy(), wall=clock)
    async with running(store):
        await rows.refresh()
        for node in ("node-c", "node-d"):
            await put(store, cluster, Kind.SHARE_MANAGER_POD, served("page", node)[1])
            await rows.refresh()
        assert rows.changes(0).whole
        assert [row.name for row in rows.changes(1).rows] == ["web"]
        assert not rows.changes(1).whole


async def test_many_changes_at_once_are_told_whole(
    store: ClusterCache, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list anew after a long absence is no matter for a log."""
    monkeypatch.setattr(vm_status, "_CHANGES_TOLD", 1)
    rows = VMStatusTracker(store, Policy(), wall=clock)
    async with running(store):
        await rows.refresh()
        assert (rows.changes(0).whole, rows.changes(1).whole) == (True, False)


async def test_whoever_waits_is_woken_by_a_change(store: ClusterCache, cluster: Cluster, rows: VMStatusTracker) -> None:
    """And by nothing else."""
    async with running(store):
        await rows.refresh()
        waiting = asyncio.ensure_future(rows.after(1))
        await rows.refresh()
        await asyncio.sleep(0)
        assert not waiting.done()
        await put(store, cluster, Kind.SHARE_MANAGER_POD, served("page", "node-a")[1])
        await rows.refresh()
        assert (await waiting).version == 2
        assert (await rows.after(1)).version == 2


async def test_what_may_not_be_read_is_unknown_until_it_may(
    store: ClusterCache, cluster: Cluster, rows: VMStatusTracker
) -> None:
    """The row says which permission is missing; with it, the row is made anew."""
    path, volumes = PATHS[Kind.PERSISTENT_VOLUME], store.caches[Kind.PERSISTENT_VOLUME]
    others = [cache for cache in store.caches.values() if cache is not volumes]
    with cluster.fault(refusing(403, "Forbidden", "not for you"), when=lambda asked: asked.path == path):
        async with kept(store.run()):
            await until(lambda: all(cache.synced for cache in others) and volumes.problem.startswith("forbidden"))
            found = await rows.refresh()
    assert states(rows) == {"db": State.UNKNOWN, "web": State.UNKNOWN}
    assert of(rows)[DB].why.sentence.endswith("(forbidden: 403 Forbidden: not for you)")
    assert found.late[0].startswith("persistentvolumes: forbidden: 403 Forbidden: not for you")
    async with running(store):
        await rows.refresh()
        assert states(rows) == {"db": State.TOGETHER, "web": State.APART}


async def test_a_fault_of_ours_is_no_end(store: ClusterCache, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, and the next pass is made all the same."""
    failures = [ValueError("for a test")]

    def broken() -> float:
        if failures:
            raise failures.pop()
        return clock()

    async with running(store):
        rows = VMStatusTracker(store, Policy(), wall=clock)
        rows._wall = broken
        async with kept(rows.run(every_seconds=0)):
            assert (await rows.after(0)).counts[State.APART] == 1
    assert "the VMs' states could not be told" in caplog.messages


async def test_a_pass_lets_others_have_their_turn(
    store: ClusterCache, rows: VMStatusTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With slices that are over at once, others go on between one group of VMs and the next."""
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
