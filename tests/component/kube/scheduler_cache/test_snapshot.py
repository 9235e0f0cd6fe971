"""The last free resources of a node: many calls at once, several replicas, dry runs, and pods without an owner."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import jsonpatch
import pytest
from msgspec import convert
from support.fakes.api_server import ApiServer, Cluster, until
from support.fakes.live import LONGHORN_NAMESPACE, PATHS, answered, cluster_of, connected, listed, now, running
from support.objects import builders
from support.objects.builders_kubevirt import virtual_machine_instance

from webhook.app.handler import admit_function
from webhook.core.api.pod import Pod
from webhook.core.decision import Pin
from webhook.core.opt_in import Policy
from webhook.core.placement.replica_share import REPLICA_LABELS
from webhook.core.reasons import Reason
from webhook.core.view import Kind
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.kinds import OWN_NAMESPACE, resources
from webhook.kube.scheduler_cache.snapshot import CachedSnapshot

Object = dict[str, Any]
HOME: Final = "node-a"
ONE_CPU: Final = [{"name": "compute", "resources": {"requests": {"cpu": "1"}}}]
SOON: Final = 5.0
AT_ONCE: Final = 10
_SETS: Final = ("vm", "late", "dry", "bound", *(f"of-{number}" for number in range(AT_ONCE)))
VMS: Final = (
    *("again", "first", "gated", "other", "real", "second", "third", "vm"),
    *(f"{name}-{number}" for name in _SETS for number in range(2 * AT_ONCE)),
)


def node(seats: int) -> Object:
    """A node with room for so many VMs."""
    found = builders.node(HOME)
    found["status"]["allocatable"]["cpu"] = str(seats)
    return found


def cluster_with(seats: int) -> Cluster:
    """The share-manager of the VMs' volume is on a node with so many seats."""
    return cluster_of(
        node(seats),
        builders.persistent_volume_claim("disk", volume_name="pv"),
        builders.persistent_volume("pv", claim="disk", handle="pvc"),
        builders.share_manager("pvc", state="running", ownerID=HOME),
        builders.share_manager_pod("pvc", nodeName=HOME),
        *(virtual_machine_instance(name, [], vm=None) for name in VMS),
    )


@pytest.fixture
def cluster() -> Cluster:
    """One seat is left."""
    return cluster_with(1)


def vm(name: str, **described: Any) -> Object:
    """The pod of a VM that uses the volume."""
    return builders.vm_pod(name, claims=["disk"], opt_in="required", containers=ONE_CPU, **described)


def body(pod: Object, **request: Any) -> bytes:
    """Its review."""
    return json.dumps(builders.review(pod, **request)).encode()


async def pinned(store: ClusterCache, *bodies: bytes) -> list[bool]:
    """Ask for all of them at once: which have a hard pin."""
    admit = admit_function(store, Policy(), lambda _: None)
    return [_is_pinned(each) for each in await asyncio.gather(*(admit(each, now() + SOON) for each in bodies))]


def _is_pinned(answer: bytes) -> bool:
    response = json.loads(answer)["response"]
    told: str = response["auditAnnotations"]["decision"]
    patch = base64.b64decode(response["patch"]) if "patch" in response else b""
    assert (told == "required") is (b'"requiredDuringSchedulingIgnoredDuringExecution"' in patch)
    return told == "required"


def vms(prefix: str = "vm", count: int = AT_ONCE) -> list[bytes]:
    """Reviews of so many VMs."""
    return [body(vm(f"{prefix}-{index}")) for index in range(count)]


async def test_one_after_the_other_is_no_different(store: ClusterCache) -> None:
    """The second VM gets no pin although no watch has shown the first VM's pod yet: the replica counts it."""
    async with running(store):
        assert [await pinned(store, each) for each in vms(count=3)] == [[True], [False], [False]]


async def test_a_pod_that_is_seen_has_its_seat(store: ClusterCache, cluster: Cluster) -> None:
    """It is assumed no more, and the seat is not free; when the pod goes, it is."""
    async with running(store):
        assert await pinned(store, body(vm("first"))) == [True]
        first = vm("first", pinned_to=[HOME], decided="required")
        cluster.collections[PATHS[Kind.VIRT_LAUNCHER_POD]].put(first)
        await until(lambda: store.caches[Kind.VIRT_LAUNCHER_POD].objects)
        assert await pinned(store, body(vm("second"))) == [False]
        cluster.collections[PATHS[Kind.VIRT_LAUNCHER_POD]].remove(first["metadata"]["name"], "vms")
        await until(lambda: not store.caches[Kind.VIRT_LAUNCHER_POD].objects)
        assert await pinned(store, body(vm("third"))) == [True]


async def test_a_dry_run_takes_no_seat(store: ClusterCache) -> None:
    """A dry run gets the answer that a real call would get, however often it is repeated."""
    async with running(store):
        dry = [body(vm(f"dry-{index}"), dryRun=True) for index in range(3)]
        assert await pinned(store, *dry) == [True, True, True]
        assert await pinned(store, body(vm("real"))) == [True]


async def test_the_same_vm_asks_again(store: ClusterCache, cluster: Cluster) -> None:
    """A CREATE that somebody after us has refused comes again: with room for two, one VM does not take both."""
    cluster.collections[PATHS[Kind.NODE]].put(node(2))
    async with running(store):
        for _ in range(2):
            assert await pinned(store, body(vm("again"))) == [True]
            assert _counted(store) == (1, 1)


async def asked_again(store: ClusterCache, first: bytes, pod: Object, **change: Any) -> Object:
    """The response to a pod that carries what the `first` answer wrote, and that a webhook after us has changed."""
    patch = json.loads(base64.b64decode(json.loads(first)["response"]["patch"]))
    after = jsonpatch.apply_patch(pod, patch)
    admit = admit_function(store, Policy(), lambda _: None)
    found: Object = json.loads(await admit(body({**after, "spec": {**after["spec"], **change}}), now() + SOON))
    response: Object = found["response"]
    return response


async def test_a_pod_that_is_asked_about_twice_keeps_its_pin(store: ClusterCache) -> None:
    """A webhook after us has changed it, so that we are called again: the last seat is free for it."""
    async with running(store):
        first = await admit_function(store, Policy(), lambda _: None)(body(vm("vm")), now() + SOON)
        second = await asked_again(store, first, vm("vm"))
        assert second["auditAnnotations"]["again-decision"] == "required"
        assert "patch" not in second
        assert _counted(store) == (1, 1)


async def test_a_pod_that_became_too_large_loses_its_pin(store: ClusterCache, cluster: Cluster) -> None:
    """A sidecar was added by a webhook after us. The seat counts as taken until kube-scheduler has refused the pod."""
    async with running(store):
        first = await admit_function(store, Policy(), lambda _: None)(body(vm("vm")), now() + SOON)
        sidecar = {"name": "sidecar", "resources": {"requests": {"cpu": "1"}}}
        second = await asked_again(store, first, vm("vm"), containers=[*ONE_CPU, sidecar])
        told = second["auditAnnotations"]
        assert (told["again-decision"], told["again-reason"]) == ("preferred", "NoRoom")
        assert await pinned(store, body(vm("other"))) == [False]
        refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        described = builders.vm_pod("vm", decided="preferred") | {
            "status": {"phase": "Pending", "conditions": [refused]}
        }
        cluster.collections[PATHS[Kind.VIRT_LAUNCHER_POD]].put(described)
        await until(lambda: store.caches[Kind.VIRT_LAUNCHER_POD].objects)
        assert await pinned(store, body(vm("other"))) == [True]


async def test_a_gated_pod_takes_no_seat(store: ClusterCache) -> None:
    """Kube-scheduler does not look at it until the gate is lifted."""
    async with running(store):
        gated = vm("gated")
        gated["spec"]["schedulingGates"] = [{"name": "quota"}]
        assert await pinned(store, body(gated)) == [False]
        assert _counted(store) == (0, 0)
        assert await pinned(store, body(vm("other"))) == [True]


def _counted(store: ClusterCache) -> tuple[int, int]:
    """Pods on the node, and how many are on their way there."""
    snapshot = store.view().snapshot()
    assert isinstance(snapshot, CachedSnapshot)
    node = snapshot.node_info(HOME)
    return node.requested.pods, node.on_the_way.pods


def replica(number: int) -> Object:
    """A pod of our own Deployment."""
    meta = {"name": f"webhook-{number}", "namespace": OWN_NAMESPACE, "labels": dict(REPLICA_LABELS)}
    spec = {"nodeName": "elsewhere", "containers": [{"name": "webhook", "image": "x"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running"}}


@asynccontextmanager
async def replicas(
    server: ApiServer, cluster: Cluster, directory: Path, count: int
) -> AsyncIterator[Sequence[ClusterCache]]:
    """Some of them, their caches up, and with a pod for each."""
    for number in range(count):
        cluster.collections[PATHS[Kind.VIRT_LAUNCHER_POD]].put(replica(number))
    async with AsyncExitStack() as stack:
        stores = []
        for _ in range(count):
            api = await stack.enter_async_context(connected(server, directory))
            stores.append(ClusterCache(api, longhorn_namespace=LONGHORN_NAMESPACE))
            await stack.enter_async_context(running(stores[-1]))
            await until(lambda: len(stores[-1].caches[Kind.VIRT_LAUNCHER_POD].objects) == count)
        yield stores


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("seats", [1, 2, 5, 8])
async def test_replicas_pin_no_more_than_there_are_seats(
    count: int, seats: int, server: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    """Ten calls each, at once, and no pod is seen before all are answered; once pods are seen nobody gets too much."""
    cluster.collections[PATHS[Kind.NODE]].put(node(seats))
    async with replicas(server, cluster, tmp_path, count) as stores:
        asked = [pinned(store, *vms(f"of-{index}")) for index, store in enumerate(stores)]
        given = [sum(each) for each in await asyncio.gather(*asked)]
        assert given == [int(seats >= count)] * count
        pods = cluster.collections[PATHS[Kind.VIRT_LAUNCHER_POD]]
        for index in range(seats):
            pods.put(vm(f"bound-{index}", node=HOME))
        for store in stores:
            await until(lambda store=store: len(store.caches[Kind.VIRT_LAUNCHER_POD].objects) == seats + count)
            assert not any(await pinned(store, *vms("late")))


async def test_in_a_pod_its_own_pod_must_be_seen(store: ClusterCache, cluster: Cluster) -> None:
    """Otherwise the replicas can't be counted, as where somebody has changed their labels: then nobody is pinned."""
    snapshot = CachedSnapshot(store.caches, in_pod=True)
    async with running(store):
        assert "no pod of this webhook is seen in its namespace" in snapshot.problem(now())
        cluster.collections[PATHS[Kind.VIRT_LAUNCHER_POD]].put(replica(1))
        await until(lambda: not snapshot.problem(now()))
        assert snapshot.replicas == 1


# Where the pods are not known.


def known(store: ClusterCache, *without: Kind) -> None:
    """Every cache has just been listed, except these."""
    there = cluster_with(1).collections
    for kind, cache in store.caches.items():
        if kind not in without and PATHS[kind] in there:
            listed(cache, *there[PATHS[kind]].objects.values(), at=now())


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        (Kind.VIRT_LAUNCHER_POD, Reason.EVIDENCE_NOT_CONFIRMED),  # a pod can use the VM's volume
        (Kind.CSI_NODE, Reason.FREE_RESOURCES_UNKNOWN),
    ],
)
async def test_pods_that_are_not_known_leave_a_preference(store: ClusterCache, missing: Kind, reason: Reason) -> None:
    """No seat is promised that nobody has counted; the reason names the cache."""
    known(store, missing)
    answer, view = await answered(store, vm("vm"))
    assert isinstance(answer.decision, Pin)
    assert (answer.decision.required, answer.decision.why.reason) == ((), reason)
    assert [wish.node for wish in answer.decision.preferred] == [HOME]
    assert store.caches[missing].resource.title in str(view.snapshot())


async def test_pods_that_are_known_are_counted(store: ClusterCache) -> None:
    """The same with all caches: so it was for the one that was missing."""
    known(store)
    answer, _ = await answered(store, vm("vm"))
    assert isinstance(answer.decision, Pin)
    assert answer.decision.required == (HOME,)


# For how long.


class Skipping(asyncio.SelectorEventLoop):
    """An event loop whose time passes only when a test lets it pass."""

    skipped = 0.0

    def time(self) -> float:
        """As any event loop, and what was skipped."""
        return super().time() + self.skipped


async def after(seconds: float) -> None:
    """Let what is due by then happen."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Skipping)
    loop.skipped += seconds
    for _ in range(3):
        await asyncio.sleep(0)


def test_an_assumed_pod_expires() -> None:
    """One that is never seen: somebody refused it later. An API server holds a CREATE for 34 s at most.

    A pod that is asked about again after 33 s is assumed for as long from then on.
    """

    async def assumed() -> list[int]:
        kinds = resources(LONGHORN_NAMESPACE)
        snapshot = CachedSnapshot({each.kind: ListWatch(each, random=lambda: 0.0) for each in kinds if each.watched})
        drawn = Pin(why=Reason.NO_CLAIMS.why(), required=(HOME,), preferred=())
        found = []
        for seconds, asked in ((0.0, True), (33.0, True), (2.0, False), (33.0, False)):
            await after(seconds)
            if asked:
                snapshot.assume(convert(builders.virt_launcher_pod(), Pod), "vms", drawn)
            found.append(snapshot.node_info(HOME).on_the_way.pods + len(snapshot._pods._assumed))
        return found

    with asyncio.Runner(loop_factory=Skipping) as runner:
        assert runner.run(assumed()) == [2, 2, 2, 0]
