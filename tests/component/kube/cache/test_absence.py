"""Which objects count as absent without a request: a share-manager's pod, and Longhorn's nodes."""

from __future__ import annotations

from typing import Any

import pytest
from support.fakes.api_server import ApiServer
from support.fakes.live import listed, now
from support.objects import builders

from webhook.core import refs
from webhook.core.api.pod import Pod
from webhook.core.view import Kind, NoObject
from webhook.kube.cache.cluster_cache import ClusterCache

LONG_AGO = 60.0


# A share-manager's pod.


def manager(**status: Any) -> dict[str, Any]:
    """ShareManager `v`."""
    return builders.share_manager("v", **status)


STOPPED = [manager(state="stopped", ownerID="n1")]
ABSENCE: dict[str, tuple[list[dict[str, Any]], tuple[float | None, float | None], bool]] = {
    "stopped": (STOPPED, (0, 0), True),
    "error": ([manager(state="error")], (0, 0), True),
    "unknown": ([manager(state="unknown")], (0, 0), True),
    "running": ([manager(state="running", ownerID="n1")], (0, 0), False),
    "starting": ([manager(state="starting", ownerID="n1")], (0, 0), False),
    "no state, as assigned": ([manager(ownerID="n1")], (0, 0), False),
    "no status": ([{**manager(), "status": None}], (0, 0), False),
    "another one's manager": ([builders.share_manager("other", state="stopped")], (0, 0), False),
    "no manager": ([], (0, 0), False),
    "managers not fresh": (STOPPED, (LONG_AGO, 0), False),
    "pods not fresh": (STOPPED, (0, LONG_AGO), False),
    "managers never listed": (STOPPED, (None, 0), False),
    "pods never listed": (STOPPED, (0, None), False),
}
"""(ShareManagers, (seconds since they were listed, and since pods were), whether the pod is absent)."""


@pytest.mark.parametrize(("managers", "ages", "absent"), ABSENCE.values(), ids=ABSENCE)
async def test_a_pod_is_absent_if_its_share_manager_agrees(
    managers: list[dict[str, Any]],
    ages: tuple[float | None, float | None],
    absent: bool,  # noqa: FBT001 - a row's
    store: ClusterCache,
    server: ApiServer,
) -> None:
    """Every cold start is this case, and costs no request. In any other case the pod may be too new for the cache."""
    for kind, objects, age in zip((Kind.SHARE_MANAGER, Kind.SHARE_MANAGER_POD), (managers, []), ages, strict=True):
        if age is not None:
            listed(store.caches[kind], *objects, at=now() - age)
    view, pod = store.view(), refs.share_manager_pod("v")
    assert view.get(pod) is (NoObject.NOT_FOUND if absent else NoObject.UNAVAILABLE)
    assert list(view.missing) == ([] if absent else [pod])
    assert server.asked == []


async def test_an_existing_pod_is_shown_in_every_state_of_its_share_manager(store: ClusterCache) -> None:
    """The state of the ShareManager may lag behind the pod."""
    listed(store.caches[Kind.SHARE_MANAGER], manager(state="stopped"), at=now())
    listed(store.caches[Kind.SHARE_MANAGER_POD], builders.share_manager_pod("v", nodeName="n1"), at=now())
    found = store.view().get(refs.share_manager_pod("v"))
    assert isinstance(found, Pod)
    assert found.spec.node_name == "n1"


# Longhorn's nodes.


def not_installed(store: ClusterCache, at: float) -> None:
    """The API server answers the cache of Longhorn's nodes that the kind does not exist."""
    cache = store.caches[Kind.LONGHORN_NODE]
    cache.next(at)
    cache.opened(404, None, at)
    cache.feed(b"404 page not found\n", at)
    cache.ended(at)


@pytest.mark.parametrize(
    ("age", "may_be"), [(None, True), (0, False), (LONG_AGO, True)], ids=["no list", "a list", "a list long ago"]
)
async def test_a_list_of_none_counts_while_it_is_fresh(
    age: float | None,
    may_be: bool,  # noqa: FBT001 - a row's
    store: ClusterCache,
) -> None:
    """Of a cluster whose Longhorn has no nodes the webhook does not ask for them. Longhorn can be installed later."""
    if age is not None:
        listed(store.caches[Kind.LONGHORN_NODE], at=now() - age)
    assert store.view().has_longhorn_nodes() is may_be


async def test_a_list_that_can_not_be_read_is_not_a_list_of_none(store: ClusterCache) -> None:
    """Less knowledge gives no stronger answer: the webhook asks for the node, and then says that it can't read it."""
    listed(store.caches[Kind.LONGHORN_NODE], builders.longhorn_node("n1") | {"status": 7}, at=now())
    assert store.caches[Kind.LONGHORN_NODE].objects == {}
    assert store.view().has_longhorn_nodes()


async def test_a_list_of_some_says_so(store: ClusterCache) -> None:
    """After a list with Longhorn nodes the cluster counts as having them.

    That stays so if they, or their kind, are deleted later.
    """
    cache = store.caches[Kind.LONGHORN_NODE]
    listed(cache, builders.longhorn_node("n1"), at=now())
    assert store.view().has_longhorn_nodes()
    not_installed(store, now() + 60)
    assert cache.objects == {}
    assert store.view().has_longhorn_nodes()


async def test_a_kind_that_is_not_installed_has_none(store: ClusterCache) -> None:
    """A test bed with ShareManagers alone is a cluster too."""
    not_installed(store, now())
    assert not store.view().has_longhorn_nodes()
