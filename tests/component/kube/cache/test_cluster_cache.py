"""The cluster cache with a fake API server: which objects come from caches, which are read, and how often."""

from __future__ import annotations

import asyncio
import json

import pytest
from support.drivers import serving
from support.fakes.api_server import ApiServer, Cluster, Handler, until
from support.fakes.http_line import Asked, Line
from support.fakes.live import PATHS, answered, cluster_of, gets, now, ref, running
from support.objects import builders
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance

from webhook.app.handler import READS_MAX, admit_function
from webhook.core.admit import Answer
from webhook.core.decision import Pin
from webhook.core.opt_in import Policy
from webhook.core.view import Kind, NoObject, ObjectRef
from webhook.kube.cache.cluster_cache import ClusterCache

CLAIM = ref(Kind.PERSISTENT_VOLUME_CLAIM, "disk", "vms")
CLAIM_PATH = "/api/v1/namespaces/vms/persistentvolumeclaims/disk"
POD = builders.virt_launcher_pod(claims=["disk"])
SOON = 5.0


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes and some claims; `disk` is served on node-a."""
    return cluster_of(*serving.cluster(), virtual_machine(), virtual_machine_instance())


def required(answer: Answer) -> tuple[str, ...]:
    """The nodes that are required."""
    assert isinstance(answer.decision, Pin), answer.decision
    return answer.decision.required


def gone(cluster: Cluster, asked: ObjectRef) -> None:
    """Delete the object."""
    cluster.collections[PATHS[asked.kind]].remove(asked.key.name, asked.key.namespace)


def counted(store: ClusterCache, kind: Kind) -> dict[str, int]:
    """The lookups of a kind by their result, without those that are 0."""
    counts = store.lookups[kind]
    outcomes = ("hit", "miss", "stale", "found", "absent", "failed", "late")
    return {outcome: count for outcome in outcomes if (count := getattr(counts, outcome))}


# From memory.


async def test_fresh_caches_need_no_request(store: ClusterCache, server: ApiServer) -> None:
    """A pod with a claim in use, a cold claim and a hint costs no request."""
    async with running(store):
        asked = len(server.reads)
        answer, view = await answered(store, POD)
        assert required(answer) == ("node-a",)
        assert counted(store, CLAIM.kind) == {"hit": 1}
        assert {outcome for kind in Kind for outcome in counted(store, kind)} == {"hit"}
        for claim in ("data", "state", "hinted", "stopped", "cordoned", "block", "single"):
            await answered(store, builders.virt_launcher_pod(claims=[claim]))
        assert len(server.reads) == asked
        assert view.staleness() is None


async def test_without_caches_everything_is_read(store: ClusterCache, server: ApiServer) -> None:
    """Before the caches are synced the webhook GETs each object.

    Only a cache shows other pods, so the result is a preference.
    """
    answer, _ = await answered(store, POD)
    assert isinstance(answer.decision, Pin), answer.decision
    assert (answer.decision.required, answer.decision.nodes) == ((), ("node-a",))
    longhorn = "/apis/longhorn.io/v1beta2/namespaces/longhorn-system"
    vmi, *others = gets(server)
    assert vmi == "/apis/kubevirt.io/v1/namespaces/vms/virtualmachineinstances/db01"
    assert sorted(others) == [
        "/api/v1/namespaces/longhorn-system/pods/share-manager-pvc-disk",
        CLAIM_PATH,
        "/api/v1/nodes/node-a",
        "/api/v1/persistentvolumes/pv-disk",
        f"{longhorn}/nodes/node-a",
        f"{longhorn}/sharemanagers/pvc-disk",
    ]


async def test_a_claim_that_the_cache_lacks_costs_one_request(
    store: ClusterCache, server: ApiServer, cluster: Cluster
) -> None:
    """The watch may be about to show an object that a fresh cache lacks, so only a GET can tell."""
    async with running(store):
        path = PATHS[Kind.PERSISTENT_VOLUME_CLAIM]
        await until(lambda: any(each.path == path and "resourceVersion" in each.query for each in server.asked))
        claims = cluster.collections[path]
        claims.lags = True
        claims.put(builders.persistent_volume_claim("new", volume_name="pv-disk"))
        answer, _ = await answered(store, builders.virt_launcher_pod(claims=["new"]))
        assert required(answer) == ("node-a",)
        assert gets(server) == ["/api/v1/namespaces/vms/persistentvolumeclaims/new"]
        assert counted(store, CLAIM.kind) == {"miss": 1, "found": 1}


async def test_an_object_with_a_404_is_absent(store: ClusterCache, server: ApiServer) -> None:
    """A 404 is an answer: there is no staleness."""
    view = await store.read(store.view(), [ref(Kind.NODE, "nowhere")], now() + SOON)
    assert view.get(ref(Kind.NODE, "nowhere")) is NoObject.NOT_FOUND
    assert view.staleness() is None
    assert (len(server.asked), counted(store, Kind.NODE)) == (1, {"absent": 1})


async def test_what_was_read_for_a_view_stays(store: ClusterCache, cluster: Cluster) -> None:
    """An admission is decided on one state: a later read of other objects changes no earlier one."""
    view = await store.read(store.view(), [CLAIM], now() + SOON)
    gone(cluster, CLAIM)
    view = await store.read(view, [ref(Kind.NODE, "node-a")], now() + SOON)
    assert not isinstance(view.get(CLAIM), NoObject)
    view = await store.read(store.view(), [CLAIM], now() + SOON)
    assert view.get(CLAIM) is NoObject.NOT_FOUND


# Shared, and in time.


class Gate:
    """A handler that answers nobody until it is opened; `most` were waiting at the same time."""

    def __init__(self, then: Handler) -> None:
        self._then = then
        self._open = asyncio.Event()
        self._waiting = 0
        self.most = 0

    async def __call__(self, asked: Asked, line: Line) -> None:
        """Wait, then answer."""
        self._waiting += 1
        self.most = max(self.most, self._waiting)
        await self._open.wait()
        self._waiting -= 1
        await self._then(asked, line)

    def open(self) -> None:
        """Let them all go."""
        self._open.set()


async def test_calls_that_need_the_same_object_share_one_request(
    store: ClusterCache, server: ApiServer, cluster: Cluster
) -> None:
    """Twenty calls at the same time, and later ones during the request, cost one GET.

    After its end the next call sends one.
    """
    gate = Gate(cluster)
    server.handler = gate
    calls = [asyncio.ensure_future(store.read(store.view(), [CLAIM], now() + SOON)) for _ in range(20)]
    await until(lambda: gate.most)
    calls.append(asyncio.ensure_future(store.read(store.view(), [CLAIM, CLAIM], now() + SOON)))
    gate.open()
    views = await asyncio.gather(*calls)
    assert gets(server) == [CLAIM_PATH]
    assert not any(isinstance(view.get(CLAIM), NoObject) for view in views)
    await store.read(store.view(), [CLAIM], now() + SOON)
    assert (gets(server), counted(store, CLAIM.kind)) == ([CLAIM_PATH] * 2, {"found": 2})


async def test_a_call_that_is_out_of_time_leaves_the_request_to_the_others(
    store: ClusterCache, server: ApiServer, cluster: Cluster
) -> None:
    """The call is decided on what is known. A call with more time gets the object from the same request."""
    gate = Gate(cluster)
    server.handler = gate
    patient = asyncio.ensure_future(store.read(store.view(), [CLAIM], now() + SOON))
    hasty = await store.read(store.view(), [CLAIM], now() + 0.05)
    assert hasty.get(CLAIM) is NoObject.UNAVAILABLE
    assert hasty.read_error(CLAIM) == "no answer in 0.05 s"
    leaving = asyncio.ensure_future(store.read(store.view(), [CLAIM], now() + SOON))
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    gate.open()
    assert not isinstance((await patient).get(CLAIM), NoObject)
    assert (gets(server), counted(store, CLAIM.kind)) == ([CLAIM_PATH], {"late": 1, "found": 1})


@pytest.mark.parametrize("seconds", [0.0, -1.0])
async def test_a_call_without_any_time_left_is_not_held_up(
    seconds: float, store: ClusterCache, server: ApiServer, cluster: Cluster
) -> None:
    """Still no object is missing, so core does not ask for it again."""
    server.handler = gate = Gate(cluster)
    view = await store.read(store.view(), [CLAIM], now() + seconds)
    assert view.get(CLAIM) is NoObject.UNAVAILABLE
    assert not view.missing
    gate.open()
    await until(lambda: not store.under_way)


async def test_the_number_of_requests_at_the_same_time_is_limited(
    store: ClusterCache, server: ApiServer, cluster: Cluster
) -> None:
    """A pod with 100 disks does not open 100 connections."""
    server.handler = gate = Gate(cluster)
    refs = [ref(Kind.NODE, f"n{i}") for i in range(100)]
    call = asyncio.ensure_future(store.read(store.view(), refs, now() + SOON))
    await until(lambda: gate.most >= 64)
    await asyncio.sleep(0)
    gate.open()
    await call
    assert gate.most == 64
    assert len(server.asked) == 100


async def test_a_pod_with_too_many_objects_is_decided_on_the_first_of_them(
    store: ClusterCache, server: ApiServer
) -> None:
    """The problem of the others says why they were not read."""
    refs = [ref(Kind.NODE, f"n{i}") for i in range(42)]
    view = await store.read(store.view(), refs, now() + SOON, 32)
    assert len(server.asked) == 32
    assert [view.get(each) for each in refs] == [NoObject.NOT_FOUND] * 32 + [NoObject.UNAVAILABLE] * 10
    assert view.read_error(refs[-1]) == "this pod needs more objects to be read than one admission may read"


async def test_a_call_reads_32_objects_at_most(store: ClusterCache, server: ApiServer) -> None:
    """In all its rounds together: the claims of this pod exist, and lead to volumes that are then read, too."""
    claims = [f"disk-{number}" for number in range(20)]
    server.handler = cluster_of(
        *(builders.persistent_volume_claim(claim, volume_name=f"pv-{claim}") for claim in claims)
    )
    admit = admit_function(store, Policy(), lambda _: None)
    pod = builders.virt_launcher_pod(claims=claims)
    answer = json.loads(await admit(json.dumps(builders.review(pod)).encode(), now() + SOON))
    assert answer["response"]["allowed"]
    assert len(server.asked) == READS_MAX == 32
