"""The last seats of a node: many calls at once, two replicas, dry runs, and pods that nobody knows."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import builders
import jsonpatch
import pytest
from api_server import ApiServer, Cluster, until
from live import LONGHORN_NAMESPACE, PATHS, answered, cluster_of, connected, listed, now, running
from msgspec import convert

from webhook.app import admitter
from webhook.core.objects import Pod
from webhook.core.placement import Pin, Policy
from webhook.core.reasons import Reason
from webhook.core.view import Kind
from webhook.kube.crowd import WatchedCrowd
from webhook.kube.kinds import WatchedPods, resources
from webhook.kube.store import Store
from webhook.kube.watch import ListWatch
from webhook.kube.wire import Decoders

Object = dict[str, Any]
HOME: Final = "node-a"
ONE_CPU: Final = [{"name": "compute", "resources": {"requests": {"cpu": "1"}}}]
SOON: Final = 5.0
AT_ONCE: Final = 10
ITSELF_AND_ANOTHER: Final = 2
ENOUGH: Final = 20


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


async def pinned(store: Store, *bodies: bytes) -> list[bool]:
    """Ask for all of them at once: which have a hard pin."""
    admit = admitter(store, Policy(), lambda _: None)
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


async def test_of_ten_calls_at_once_one_gets_the_last_seat(store: Store) -> None:
    """A pin counts before anybody else is answered."""
    async with running(store):
        assert sum(await pinned(store, *vms())) == 1


async def test_one_after_the_other_is_no_different(store: Store) -> None:
    """Whoever comes while the first one's pod was not seen finds the seat taken."""
    async with running(store):
        assert [await pinned(store, each) for each in vms(count=3)] == [[True], [False], [False]]


async def test_a_pod_that_is_seen_has_its_seat(store: Store, cluster: Cluster) -> None:
    """Its reservation is over, and the seat is not free; when the pod goes, it is."""
    async with running(store):
        assert await pinned(store, body(vm("first"))) == [True]
        first = vm("first", pinned_to=[HOME])
        cluster.collections[PATHS[Kind.VIRT_LAUNCHER_POD]].put(first)
        await until(lambda: store.caches[Kind.VIRT_LAUNCHER_POD].objects)
        assert await pinned(store, body(vm("second"))) == [False]
        cluster.collections[PATHS[Kind.VIRT_LAUNCHER_POD]].remove(first["metadata"]["name"], "vms")
        await until(lambda: not store.caches[Kind.VIRT_LAUNCHER_POD].objects)

        async def free() -> bool:
            return (await pinned(store, body(vm("third"), dryRun=True)))[0]

        async with asyncio.timeout(SOON):
            while not await free():  # noqa: ASYNC110 - another replica may have promised it: that has no event
                await asyncio.sleep(0)


async def test_a_dry_run_takes_no_seat(store: Store) -> None:
    """It is told what would be, as often as it asks."""
    async with running(store):
        dry = [body(vm(f"dry-{index}"), dryRun=True) for index in range(3)]
        assert await pinned(store, *dry) == [True, True, True]
        assert await pinned(store, body(vm("real"))) == [True]


async def test_the_same_vm_asks_again(store: Store, cluster: Cluster) -> None:
    """A CREATE that somebody after us has refused comes again: with room for two, one VM does not take both."""
    cluster.collections[PATHS[Kind.NODE]].put(node(3))
    async with running(store):
        assert await pinned(store, body(vm("again"))) == [True]
        assert store.view().crowd() is not None
        assert _counted(store) == (1, ITSELF_AND_ANOTHER)
        await pinned(store, body(vm("again")))
        assert _counted(store) == (1, ITSELF_AND_ANOTHER)


async def test_a_pod_that_is_asked_about_twice_keeps_its_pin(store: Store) -> None:
    """A webhook after us has changed it, so that we are called again: the last seat is its own by now."""
    async with running(store):
        admit = admitter(store, Policy(), lambda _: None)
        first, pod = await admit(body(vm("vm")), now() + SOON), vm("vm")
        pod = jsonpatch.apply_patch(pod, json.loads(base64.b64decode(json.loads(first)["response"]["patch"])))
        second = json.loads(await admit(body(pod), now() + SOON))["response"]
        assert second["auditAnnotations"]["decision"] == "required"
        assert "patch" not in second
        assert _counted(store) == (1, ITSELF_AND_ANOTHER)


def _counted(store: Store) -> tuple[int, int]:
    """Pods on the node, and how many are expected there, those that another replica may have pinned among them."""
    crowd = store.view().crowd()
    assert isinstance(crowd, WatchedCrowd)
    room = crowd.room(HOME)
    return room.load.pods, room.expected


@asynccontextmanager
async def replicas(server: ApiServer, directory: Path) -> AsyncIterator[Sequence[Store]]:
    """Two of them, their caches up."""
    async with AsyncExitStack() as stack:
        stores = []
        for _ in range(2):
            api = await stack.enter_async_context(connected(server, directory))
            stores.append(Store(api, longhorn_namespace=LONGHORN_NAMESPACE))
            await stack.enter_async_context(running(stores[-1]))
        yield stores


@pytest.mark.parametrize("seats", [1, 2, 5])
async def test_two_replicas_give_one_too_many_at_most(
    seats: int, server: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    """Ten calls each, at once, and no pod is seen before all are answered: the one that loses is Pending.

    Once the pods are seen, nobody gets a seat that there is not.
    """
    cluster.collections[PATHS[Kind.NODE]].put(node(seats))
    async with replicas(server, tmp_path) as stores:
        asked = [pinned(store, *vms(f"of-{index}")) for index, store in enumerate(stores)]
        given = [sum(each) for each in await asyncio.gather(*asked)]
        assert max(1, seats // 2) <= sum(given) <= seats + 1
        pods = cluster.collections[PATHS[Kind.VIRT_LAUNCHER_POD]]
        for index in range(seats):
            pods.put(vm(f"bound-{index}", node=HOME))
        for store in stores:
            await until(lambda store=store: len(store.caches[Kind.VIRT_LAUNCHER_POD].objects) == seats)
            assert not any(await pinned(store, *vms("late")))


async def test_a_replica_that_is_about_to_end_is_not_alone(store: Store, cluster: Cluster) -> None:
    """One that sees its own pins alone keeps nothing back, until calls turn to others."""
    cluster.collections[PATHS[Kind.NODE]].put(node(1000))
    async with running(store):
        for index in range(ENOUGH):
            assert await pinned(store, body(vm(f"vm-{index}"))) == [True]
            cluster.collections[PATHS[Kind.VIRT_LAUNCHER_POD]].put(vm(f"vm-{index}", pinned_to=[HOME]))
        await until(lambda: len(store.caches[Kind.VIRT_LAUNCHER_POD].objects) == ENOUGH)
        crowd = store.view().crowd()
        assert isinstance(crowd, WatchedCrowd)
        assert not crowd.room(HOME).contested
        store.leave()
        assert crowd.room(HOME).contested


# Where the pods are not known.


def known(store: Store, *without: Kind) -> None:
    """Every cache has been listed just now, but for these."""
    there = cluster_with(1).collections
    for kind, cache in store.caches.items():
        if kind not in without:
            listed(cache, *there[PATHS[kind]].objects.values(), at=now())


@pytest.mark.parametrize("missing", [Kind.VIRT_LAUNCHER_POD, Kind.CSI_NODE])
async def test_pods_that_are_not_known_leave_a_preference(store: Store, missing: Kind) -> None:
    """No seat is promised that nobody has counted; the reason names the cache."""
    known(store, missing)
    answer, view = await answered(store, vm("vm"))
    assert isinstance(answer.decision, Pin)
    assert (answer.decision.required, answer.decision.why.reason) == ((), Reason.PODS_UNKNOWN)
    assert [wish.node for wish in answer.decision.preferred] == [HOME]
    assert store.caches[missing].resource.title in str(view.crowd())


async def test_pods_that_are_known_are_counted(store: Store) -> None:
    """The same with all caches: so it was for the one that was missing."""
    known(store)
    answer, _ = await answered(store, vm("vm"))
    assert isinstance(answer.decision, Pin)
    assert answer.decision.required == (HOME,)


@pytest.mark.parametrize("pods", [WatchedPods.VIRT_LAUNCHER, WatchedPods.NONE])
async def test_without_the_guard_all_are_pinned(
    pods: WatchedPods, server: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    """Nobody is asked for room; and a reservation is nothing."""
    assert cluster.collections
    async with connected(server, tmp_path) as api:
        store = Store(api, longhorn_namespace=LONGHORN_NAMESPACE, kinds=resources(LONGHORN_NAMESPACE, pods))
        async with running(store):
            assert store.view().crowd() is None
            store.leave()
            assert all(await pinned(store, *vms()))


# For how long.


class Skipping(asyncio.SelectorEventLoop):
    """An event loop whose time goes on when it is told to."""

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


def test_a_reservation_ends_by_itself() -> None:
    """Of a pod that is never seen: it was refused by somebody after us. And nobody else's is waited for any longer."""

    async def reserved() -> list[tuple[int, bool]]:
        kinds = resources(LONGHORN_NAMESPACE)
        crowd = WatchedCrowd({each.kind: ListWatch(each, random=lambda: 0.0) for each in kinds if each.watched}, {})
        crowd.reserve(convert(builders.virt_launcher_pod(), Pod), "vms", HOME)
        found = []
        for seconds in (0.0, 9.0, 2.0, 20.0, 20.0):
            await after(seconds)
            room = crowd.room(HOME)
            found.append((room.load.pods, bool(room.contested)))
        return found

    with asyncio.Runner(loop_factory=Skipping) as runner:
        found = runner.run(reserved())
    assert found[:2] == [(1, True), (1, True)]
    assert found[2][0] == 0
    assert found[-1] == (0, False)


def test_a_promise_is_contested_for_a_moment_after_its_pod_was_seen() -> None:
    """Long enough for others' pods of the same time to be seen; longer where our own was late."""

    async def contested(late: float) -> tuple[bool, bool]:
        kinds = resources(LONGHORN_NAMESPACE)
        caches = {each.kind: ListWatch(each, random=lambda: 0.0) for each in kinds if each.watched}
        crowd, pod = WatchedCrowd(caches, {}), vm("vm", pinned_to=[HOME])
        listed(caches[Kind.VIRT_LAUNCHER_POD], at=now())
        crowd.reserve(convert(pod, Pod), "vms", HOME)
        await after(late)
        cache = caches[Kind.VIRT_LAUNCHER_POD]
        seen = cache.resource.keep(Decoders(cache.resource.wire).object(json.dumps(pod).encode()))
        assert cache.index
        cache.index.put("vms/x", None, seen)
        await after(late / 2)
        soon = bool(crowd.room(HOME).contested)
        for _ in range(5):
            await after(late)
        return soon, bool(crowd.room(HOME).contested)

    for late in (0.1, 1.0):
        with asyncio.Runner(loop_factory=Skipping) as runner:
            assert runner.run(contested(late)) == (True, False)


async def test_a_vm_starts_alone_when_few_were_asked_about_just_before(store: Store) -> None:
    """Also where they got no place: as long as VMs keep coming, they come to other replicas, too."""
    known(store)
    crowd = store.view().crowd()
    assert isinstance(crowd, WatchedCrowd)
    assert not crowd.room(HOME).contested
    for _ in range(6):
        store.reserve(convert(builders.virt_launcher_pod(), Pod), "vms", None)
    assert crowd.room(HOME).contested
