"""What the VMStatusTracker knows, and from when; and the rows of VMs that a label or the setting opts in."""

from __future__ import annotations

import asyncio

import pytest
from support.fakes.api_server import Cluster
from support.fakes.live import put, running
from support.objects import builders

from webhook.core.observe.past_decision import Decided
from webhook.core.opt_in import Policy
from webhook.core.view import Kind
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.vm_status import VMStarts, VMStatusTracker


async def test_before_the_pods_were_listed_nothing_is_known(store: ClusterCache, rows: VMStatusTracker) -> None:
    """No rows do not mean that there are no VMs."""
    before = await rows.refresh()
    assert (before.known, before.rows, len(before.late)) == (False, (), 6)
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
    assert (len(late.late), len(late.rows)) == (6, 2)
    assert late.at == "2026-02-03T12:00:00Z"
    assert "2026-02-03T11:58:5" <= late.as_of <= "2026-02-03T11:59:01Z"


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
        assert {row.name: row.asked_by for row in (await everybody.refresh()).rows}["other"] == "cluster"
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
