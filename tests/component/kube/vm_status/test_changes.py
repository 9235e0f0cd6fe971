"""Which changes a reader of the VMStatusTracker gets since a version."""

from __future__ import annotations

import asyncio

import pytest
from support.fakes.api_server import Cluster
from support.fakes.live import put, running
from support.objects import builders
from support.objects.fleets import Clock, served

from webhook.core.observe.past_decision import Decided
from webhook.core.opt_in import OptedInBy, Policy
from webhook.core.view import Kind
from webhook.kube import vm_status
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.vm_starts import VMStarts
from webhook.kube.vm_status import VMStatusTracker


@pytest.mark.parametrize("version", [0, -1, 99], ids=["before the first", "none at all", "of another process"])
async def test_a_reader_with_an_unusable_version_gets_all_rows(
    store: ClusterCache, rows: VMStatusTracker, version: int
) -> None:
    """`whole` is then True. Version 0 had no rows, so its changes are all rows."""
    async with running(store):
        await rows.refresh()
        told = rows.changes(version)
        assert {row.name for row in told.rows} == {"db", "web"}
        assert told.whole == (version != 0)


async def test_a_reader_with_a_version_before_the_log_gets_all_rows(
    store: ClusterCache, cluster: Cluster, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader whose version the log no longer reaches gets all rows."""
    monkeypatch.setattr(vm_status, "_CHANGES_KEPT", 2)
    rows = VMStatusTracker(store.caches, Policy(), wall=clock)
    async with running(store):
        await rows.refresh()
        for node in ("node-c", "node-d"):
            await put(store, cluster, Kind.SHARE_MANAGER_POD, served("page", node)[1])
            await rows.refresh()
        assert rows.changes(0).whole
        assert [row.name for row in rows.changes(1).rows] == ["web"]
        assert not rows.changes(1).whole


async def test_after_a_pass_with_many_changes_a_reader_gets_all_rows(
    store: ClusterCache, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass with more changes than the limit clears the log. The changes of later passes are in the log again."""
    monkeypatch.setattr(vm_status, "_CHANGES_PER_PASS_MAX", 1)
    rows = VMStatusTracker(store.caches, Policy(), wall=clock)
    async with running(store):
        await rows.refresh()
        assert (rows.changes(0).whole, rows.changes(1).whole) == (True, False)


async def test_a_waiting_reader_is_woken_by_a_change(
    store: ClusterCache, cluster: Cluster, rows: VMStatusTracker
) -> None:
    """A reader that waits gets the first snapshot with a newer version."""
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


async def test_before_the_pods_were_listed_nothing_is_known(store: ClusterCache, rows: VMStatusTracker) -> None:
    """No rows do not mean that there are no VMs. Nothing is said about nodes."""
    before = await rows.refresh()
    assert (before.known, before.rows, before.nodes, len(before.late)) == (False, (), None, 6)
    async with running(store):
        after = await rows.refresh()
    assert (after.known, len(after.rows), after.late, after.as_of) == (True, 2, (), after.at)


async def test_a_pass_over_late_caches_says_until_when_they_were_up_to_date(
    store: ClusterCache, rows: VMStatusTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are of the time before the API server went away, not of the pass."""
    async with running(store):
        await rows.refresh()
    loop = asyncio.get_running_loop()
    ended = loop.time()
    monkeypatch.setattr(loop, "time", lambda: ended + 60)
    late = await rows.refresh()
    assert late.known
    assert (len(late.late), len(late.rows), late.nodes) == (6, 2, None)
    assert late.at == "2026-02-03T12:00:00Z"
    assert "2026-02-03T11:58:5" <= late.as_of <= "2026-02-03T11:59:01Z"


async def test_a_pass_names_nodes_on_which_no_vm_can_start(
    store: ClusterCache, cluster: Cluster, rows: VMStatusTracker
) -> None:
    """Only nodes of VMs and of their share-managers."""
    async with running(store):
        await put(store, cluster, Kind.NODE, builders.node("node-a"))
        await put(store, cluster, Kind.NODE, builders.node("node-b", cordoned=True))
        await put(store, cluster, Kind.NODE, builders.node("node-c", cordoned=True))
        assert (await rows.refresh()).nodes == {"node-b": "node node-b is cordoned"}


async def test_a_label_of_the_namespace_adds_and_removes_rows(
    store: ClusterCache, cluster: Cluster, rows: VMStatusTracker
) -> None:
    """The pod has no annotation and does not change. A VM with an annotation keeps its row."""
    pod = builders.vm_pod("labeled", node="node-a", opt_in=None)
    async with running(store):
        await put(store, cluster, Kind.VIRT_LAUNCHER_POD, pod)
        found = []
        for label in (None, "true", "preferred", "yes", "false", "required", None):
            await put(store, cluster, Kind.NAMESPACE, builders.labeled_namespace(builders.NAMESPACE, label))
            now = {row.name: row for row in (await rows.refresh()).rows}
            assert now.keys() >= {"db", "web"}
            found.append(now["labeled"].asked if "labeled" in now else None)
    assert found == [None, "true", "preferred", None, None, "required", None]


async def test_the_setting_adds_rows(store: ClusterCache, cluster: Cluster) -> None:
    """For VMs without an annotation, in Namespaces without the label; not before the Namespaces are known."""
    everybody = VMStatusTracker(store.caches, Policy(opt_in_all="preferred"))
    async with running(store):
        await put(store, cluster, Kind.VIRT_LAUNCHER_POD, builders.vm_pod("other", node="node-a", opt_in=None))
        assert {row.name: row.by for row in (await everybody.refresh()).rows}["other"] is OptedInBy.CLUSTER
        store.caches[Kind.NAMESPACE].synced = False
        assert "other" not in {row.name for row in (await everybody.refresh()).rows}


async def test_a_start_is_counted_for_a_vm_that_the_label_opts_in(store: ClusterCache, cluster: Cluster) -> None:
    """As for the rows. The pod carries no decision, because the API server had not seen the label."""
    async with running(store):
        starts = VMStarts(store.caches, Policy())
        await put(store, cluster, Kind.VIRT_LAUNCHER_POD, builders.vm_pod("before", opt_in=None))
        await put(store, cluster, Kind.NAMESPACE, builders.labeled_namespace())
        await put(store, cluster, Kind.VIRT_LAUNCHER_POD, builders.vm_pod("after", opt_in=None))
        assert {decided: count for decided, count in starts.by_decision.items() if count} == {Decided.NOTHING: 1}
