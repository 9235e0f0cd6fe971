"""The counts of lookups: each lookup counts once, by its place and its result."""

from __future__ import annotations

import asyncio

import pytest
from support.drivers import serving
from support.fakes.api_server import ApiServer, Cluster, refusing, until
from support.fakes.http_line import Asked, Line
from support.fakes.live import answered, cluster_of, now, ref, running
from support.objects import builders
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance

from webhook.core import refs
from webhook.core.view import Kind
from webhook.kube.cache.cluster_cache import ClusterCache

SOON = 5.0
CLAIM = ref(Kind.PERSISTENT_VOLUME_CLAIM, "disk", "vms")
NODE = ref(Kind.NODE, "node-a")
NOWHERE = ref(Kind.NODE, "nowhere")
POD = builders.virt_launcher_pod(claims=["disk"])
OUTCOMES = ("hit", "miss", "stale", "found", "absent", "failed", "late")


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes and some claims; `disk` is served on node-a."""
    return cluster_of(*serving.cluster(), virtual_machine(), virtual_machine_instance())


def counted(store: ClusterCache, kind: Kind) -> dict[str, int]:
    """What is not 0."""
    counts = store.lookups[kind]
    return {outcome: count for outcome in OUTCOMES if (count := getattr(counts, outcome))}


async def test_what_a_fresh_cache_has_is_a_hit(store: ClusterCache) -> None:
    """An object in a fresh cache is a hit. Another object is a miss, which one request settles."""
    async with running(store):
        store.view().get(CLAIM)
        assert counted(store, CLAIM.kind) == {"hit": 1}
        store.view().get(refs.node("nowhere"))
        view = await store.read(store.view(), [NOWHERE], now() + SOON)
        view.get(refs.node("nowhere"))
        assert counted(store, Kind.NODE) == {"miss": 1, "absent": 1}


async def test_an_admission_from_caches_sends_no_request(store: ClusterCache) -> None:
    """An admission from fresh caches counts hits only, of each kind that it reads."""
    async with running(store):
        await answered(store, POD)
        outcomes = {outcome for kind in Kind for outcome in counted(store, kind)}
        assert outcomes == {"hit"}
        assert counted(store, CLAIM.kind) == {"hit": 1}


async def test_calls_that_share_a_request_count_once(store: ClusterCache) -> None:
    """The counts are those of the requests to the API server."""
    await asyncio.gather(*(store.read(store.view(), [NODE], now() + SOON) for _ in range(5)))
    assert counted(store, NODE.kind) == {"found": 1}


async def test_a_request_that_is_refused_has_failed(store: ClusterCache, cluster: Cluster) -> None:
    """A request whose answer is not an object has failed, too."""
    with cluster.fault(refusing(403, "Forbidden", "no")):
        await store.read(store.view(), [NODE], now() + SOON)
    assert counted(store, NODE.kind) == {"failed": 1}


async def test_an_answer_after_the_deadline_is_late_for_that_call(
    store: ClusterCache, server: ApiServer, cluster: Cluster
) -> None:
    """The request goes on for other calls, and counts by its result."""
    gate = asyncio.Event()

    async def waiting(asked: Asked, line: Line) -> None:
        await gate.wait()
        await cluster(asked, line)

    server.handler = waiting
    await store.read(store.view(), [NODE, CLAIM], now() + 0.01)
    assert (counted(store, NODE.kind), counted(store, CLAIM.kind)) == ({"late": 1}, {"late": 1})
    gate.set()
    await until(lambda: not store.under_way)
    assert counted(store, NODE.kind) == {"late": 1, "found": 1}
