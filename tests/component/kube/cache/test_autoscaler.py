"""Whether a cluster-autoscaler runs: seen by its ConfigMap, and not known without the right to list it."""

from __future__ import annotations

from typing import Any

import pytest
from support.drivers import serving
from support.fakes.api_server import ApiServer, Cluster, refusing, saying, until
from support.fakes.http_line import Asked
from support.fakes.live import LONGHORN_NAMESPACE, PATHS, RESOURCES, answered, cluster_of, listed, now, put, running
from support.objects import builders
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance

from webhook.app.live_cluster import _cache_check
from webhook.component_base.client.api import Api
from webhook.core.view import Kind
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.kinds import resources

STATUS = Kind.CLUSTER_AUTOSCALER_STATUS
TITLE = RESOURCES[STATUS].title
PATH = PATHS[STATUS]


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes, and a share-manager on node-a."""
    return cluster_of(*serving.cluster(), virtual_machine(), virtual_machine_instance())


def of_the_status(asked: Asked) -> bool:
    """Whether a request is for the ConfigMap."""
    return asked.path == PATH


async def test_it_is_seen_from_its_first_status_to_the_last(store: ClusterCache, cluster: Cluster) -> None:
    """The ConfigMap can be in any namespace, and several can be there."""
    async with running(store):
        assert not store.view().has_autoscaler()
        await put(store, cluster, STATUS, *map(builders.cluster_autoscaler_status, ("kube-system", "scaling")))
        assert store.view().has_autoscaler()
        cluster.collections[PATH].remove(TITLE, "kube-system")
        await until(lambda: len(store.caches[STATUS].objects) == 1)
        assert store.view().has_autoscaler()
        cluster.collections[PATH].remove(TITLE, "scaling")
        await until(lambda: not store.view().has_autoscaler())


async def test_only_the_one_name_is_asked_for(store: ClusterCache, server: ApiServer) -> None:
    """The webhook may list and watch no other ConfigMap: the API server compares the selector with the rule."""
    async with running(store):
        pass
    asked = [each for each in server.asked if each.path.endswith("/configmaps")]
    assert asked
    assert {(each.path, each.query["fieldSelector"]) for each in asked} == {
        ("/api/v1/configmaps", "metadata.name=cluster-autoscaler-status")
    }


@pytest.mark.parametrize(
    "refusal", [refusing(403, "Forbidden", "no right"), refusing(500, "InternalError"), saying(404, b"not found\n")]
)
async def test_what_could_not_be_listed_harms_short_lists_alone(
    refusal: Any, store: ClusterCache, cluster: Cluster
) -> None:
    """Whether it runs is not known, so it counts as seen. A pin stays a pin, and a replica is ready."""
    with cluster.fault(refusal, when=of_the_status):
        async with running(store, without=TITLE):
            await until(lambda: store.caches[STATUS].problem != "not listed yet")
            assert store.view().has_autoscaler()
            answer, view = await answered(store, builders.virt_launcher_pod(claims=["disk"]))
            assert answer.audit_annotations["decision"] == "required"
            assert view.staleness() is None
            assert view.reads == {}
            state = next(each for each in store.states() if each.title == TITLE)
            check = _cache_check(state, starting=True)
            assert (check.ok, check.gates) == (False, False)
            assert check.detail.startswith("not synced: ")
    async with running(store):
        assert not store.view().has_autoscaler()


STATUSES = [builders.cluster_autoscaler_status()]


@pytest.mark.parametrize(
    ("seconds", "there", "seen"), [(0, [], False), (60, [], True), (0, STATUSES, True), (60, STATUSES, True)]
)
async def test_an_old_list_is_not_known(
    seconds: float,
    there: list[dict[str, Any]],
    seen: bool,  # noqa: FBT001 - a row's
    store: ClusterCache,
) -> None:
    """The ConfigMap may have come since the watch was lost. One that was seen still counts."""
    listed(store.caches[STATUS], *there, at=now() - seconds)
    assert store.view().has_autoscaler() is seen


async def test_a_process_that_does_not_watch_it_does_not_know(api: Api) -> None:
    """With --shortlist=off nobody asks, and nothing is listed."""
    kinds = resources(LONGHORN_NAMESPACE, autoscaler=False)
    store = ClusterCache(api, longhorn_namespace=LONGHORN_NAMESPACE, kinds=kinds)
    assert STATUS not in store.caches
    assert store.view().has_autoscaler()
