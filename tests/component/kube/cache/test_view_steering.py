"""What a view has of the VMs that use a volume: from caches, and from live reads."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest
from support.fakes.api_server import ApiServer, Cluster, Handler, refusing, saying, until
from support.fakes.http_line import Asked, Line
from support.fakes.live import PATHS, answered, cluster_of, gets, listed, now, ref, running
from support.models.model_api import Collection
from support.objects import builders

from webhook.core.admit import Entry
from webhook.core.api.longhorn import VolumeAttachment
from webhook.core.api.meta import NamespacedName
from webhook.core.decision import Steer
from webhook.core.view import Kind, NoObject
from webhook.kube.cache.cluster_cache import ClusterCache

VOLUME: Final = "pvc-disk"
CLAIM: Final = NamespacedName("vms", "disk")
ATTACHMENT: Final = ref(Kind.VOLUME_ATTACHMENT, VOLUME)
ON_NODE: Final = ref(Kind.VIRT_LAUNCHERS_ON_NODE, "node-a", "vms")
LONG_AGO: Final = 60.0
SOON: Final = 5.0
LONGHORN: Final = "/apis/longhorn.io/v1beta2/namespaces/longhorn-system"
TICKETS: Final = f"{LONGHORN}/volumeattachments/{VOLUME}"
PODS: Final = "/api/v1/namespaces/vms/pods"


def volume(name: str = VOLUME, **described: Any) -> dict[str, Any]:
    """A PersistentVolume of Longhorn's volume."""
    return builders.persistent_volume(name, **{"claim": "disk", "handle": VOLUME, **described})


def vm(name: str = "db01", **described: Any) -> dict[str, Any]:
    """A VM's pod on node-a that uses the claim."""
    return builders.vm_pod(name, **{"claims": ["disk"], "node": "node-a", **described})


@pytest.fixture
def cluster() -> Cluster:
    """A VM on node-a, and the volume that it waits for."""
    nodes = [make(name) for make in (builders.node, builders.longhorn_node) for name in ("node-a", "node-b")]
    attachment = builders.volume_attachment(VOLUME, [("csi-attacher", "node-a")])
    return cluster_of(*nodes, volume(), vm(), builders.share_manager(VOLUME, state="stopped"), attachment)


# From its caches.

FOREIGN: Final = volume(driver="nfs.csi.example.com")
UNCLAIMED: Final = {**volume(), "spec": {**volume()["spec"], "claimRef": None}}
CLAIMS: Final[dict[str, tuple[list[dict[str, Any]], Any]]] = {
    "provisioned": ([volume()], [CLAIM]),
    "restored": ([volume("restored")], [CLAIM]),
    "both": ([volume(), volume("restored", claim="copy")], [CLAIM, NamespacedName("vms", "copy")]),
    "restored twice": ([volume("a"), volume("b", claim="copy")], [CLAIM, NamespacedName("vms", "copy")]),
    "of its name, and another's": ([volume(handle="pvc-other")], []),
    "of its name, and of no claim": ([UNCLAIMED], []),
    "of another driver": ([FOREIGN], []),
    "of another driver, and a restored one": (
        [FOREIGN, volume("restored", claim="copy")],
        [NamespacedName("vms", "copy")],
    ),
    "none": ([volume("pvc-other", handle="pvc-other")], NoObject.UNAVAILABLE),
}


@pytest.mark.parametrize(("volumes", "claims"), CLAIMS.values(), ids=CLAIMS)
async def test_the_claims_of_a_volume(volumes: list[dict[str, Any]], claims: Any, store: ClusterCache) -> None:
    """The view finds them by the CSI volume handle, whatever the PersistentVolume's name.

    If there is none, it may be new.
    """
    listed(store.caches[Kind.PERSISTENT_VOLUME], *volumes, at=now())
    view = store.view()
    assert view.volume_claims(VOLUME) == claims
    assert list(view.missing) == ([ref(Kind.PERSISTENT_VOLUME, VOLUME)] if claims is NoObject.UNAVAILABLE else [])


async def test_claims_that_are_known_from_long_ago_are_confirmed(store: ClusterCache, server: ApiServer) -> None:
    """One GET confirms the volume of the same name. A volume of another name counts as it was last known."""
    listed(store.caches[Kind.PERSISTENT_VOLUME], volume("restored", claim="copy"), at=now() - LONG_AGO)
    named = ref(Kind.PERSISTENT_VOLUME, VOLUME)
    view = store.view()
    assert view.volume_claims(VOLUME) is NoObject.UNAVAILABLE
    assert list(view.missing) == [named]
    view = await store.read(view, [named], now() + SOON)
    assert view.volume_claims(VOLUME) == [CLAIM, NamespacedName("vms", "copy")]
    assert gets(server) == [f"/api/v1/persistentvolumes/{VOLUME}"]


async def test_the_pods_of_a_claim(store: ClusterCache) -> None:
    """The view returns the pods of the claim's namespace only, each with what core reads of it."""
    pods = [vm(), vm("db02", node=None), vm("db03", claims=["other"]), vm("db04", namespace="others")]
    listed(store.caches[Kind.VIRT_LAUNCHER_POD], *pods, at=now())
    found = store.view().virt_launchers(CLAIM)
    assert not isinstance(found, NoObject)
    assert {(pod.metadata.name, pod.spec.node_name) for pod in found} == {
        ("virt-launcher-db01", "node-a"),
        ("virt-launcher-db02", None),
    }
    assert store.view().virt_launchers(NamespacedName("vms", "nobody-s")) == []


@pytest.mark.parametrize("age", [None, LONG_AGO], ids=["never listed", "long ago"])
async def test_pods_that_no_fresh_cache_knows_are_unavailable(age: float | None, store: ClusterCache) -> None:
    """The view returns none of a stale cache's pods. Core must then find out where Longhorn attaches the volume."""
    if age is not None:
        listed(store.caches[Kind.VIRT_LAUNCHER_POD], vm(), at=now() - age)
    assert store.view().virt_launchers(CLAIM) is NoObject.UNAVAILABLE


@pytest.mark.parametrize(
    ("age", "names"), [(None, []), (LONG_AGO, []), (0, ["node-a", "node-b"])], ids=["never listed", "long ago", "now"]
)
async def test_the_names_of_nodes(age: float | None, names: list[str], store: ClusterCache) -> None:
    """Core chooses from these nodes, so there are none while their cache is not fresh."""
    if age is not None:
        listed(store.caches[Kind.NODE], *map(builders.node, ("node-a", "node-b")), at=now() - age)
    assert list(store.view().node_names()) == names


# As the API server has it.


async def test_tickets_and_the_pods_of_a_node_are_never_taken_from_a_cache(
    store: ClusterCache, server: ApiServer
) -> None:
    """Each call reads them: one GET, and one list of the pods on the node."""
    async with running(store):
        before = len(server.reads)
        view = store.view()
        assert view.get(ATTACHMENT) is view.get(ON_NODE) is NoObject.UNAVAILABLE
        assert list(view.missing) == [ATTACHMENT, ON_NODE]
        for _ in range(2):
            view = await store.read(store.view(), [ATTACHMENT, ON_NODE], now() + SOON)
            assert isinstance(view.get(ATTACHMENT), VolumeAttachment)
        asked = server.reads[before:]
    of_node = {
        "labelSelector": "kubevirt.io=virt-launcher",
        "fieldSelector": "spec.nodeName=node-a",
        "resourceVersion": "0",
    }
    assert sorted(each.path for each in asked) == [PODS, PODS, TICKETS, TICKETS]
    assert {each.path: each.query for each in asked} == {TICKETS: {}, PODS: of_node}


TROUBLES: Final[dict[str, tuple[Handler, str]]] = {
    "403": (refusing(403, "Forbidden", "pods is forbidden"), "403 Forbidden: pods is forbidden"),
    "404": (saying(404, b"404 page not found\n"), "404: 404 page not found"),
    "HTML": (saying(200, b"<html>"), "a list that can't be read: JSON is malformed"),
}


@pytest.mark.parametrize(("handler", "problem"), TROUBLES.values(), ids=TROUBLES)
async def test_a_list_that_fails_is_not_an_empty_list(
    handler: Handler, problem: str, store: ClusterCache, server: ApiServer
) -> None:
    """The pods are unavailable, and the problem says why."""
    server.handler = handler
    view = await store.read(store.view(), [ON_NODE], now() + SOON)
    assert view.get(ON_NODE) is NoObject.UNAVAILABLE
    assert view.read_error(ON_NODE).startswith(problem)


async def test_no_call_gets_an_answer_to_an_earlier_request(
    store: ClusterCache, server: ApiServer, cluster: Cluster
) -> None:
    """The answer to an earlier request may be older than the VM of the next call.

    Therefore that call sends a request of its own.
    """
    pods = cluster.collections[PATHS[Kind.VIRT_LAUNCHER_POD]]
    held: list[tuple[bytes, Line]] = []

    async def hold(asked: Asked, line: Line) -> None:
        answer = cluster._on_node(asked)
        held.append((answer.body, line))

    async def names() -> list[str | None]:
        view = await store.read(store.view(), [ON_NODE], now() + SOON)
        found = view.get(ON_NODE)
        assert not isinstance(found, NoObject)
        return [pod.metadata.name for pod in found]

    server.handler = hold
    first = asyncio.ensure_future(names())
    await until(lambda: len(held) == 1)
    pods.put(vm("db02"))
    second = asyncio.ensure_future(names())
    await until(lambda: len(held) == 2)
    for body, line in held:
        await line.answer(200, body)
    assert (await first, await second) == (["virt-launcher-db01"], ["virt-launcher-db01", "virt-launcher-db02"])


# A share-manager pod.

POD: Final = builders.share_manager_pod(VOLUME, phase=None)
KNOWN: Final[dict[str, tuple[list[dict[str, Any]] | None, list[str]]]] = {
    "on its node": ([vm()], []),
    "without a node": ([vm(node=None)], [TICKETS]),
    "not at all": ([], [TICKETS, PODS]),
    "by no cache": (None, [TICKETS, PODS]),
}


EMPTY: Final = Collection()


@pytest.mark.parametrize(("pods", "asked"), KNOWN.values(), ids=KNOWN)
async def test_a_share_manager_pod_follows_a_vm_that_is_known(
    pods: list[dict[str, Any]] | None, asked: list[str], store: ClusterCache, server: ApiServer, cluster: Cluster
) -> None:
    """The pod goes to the VM's node, however little of the VM the caches have. No request is sent in vain."""
    for kind, cache in store.caches.items():
        there = pods if kind is Kind.VIRT_LAUNCHER_POD else cluster.collections.get(PATHS[kind], EMPTY).objects.values()
        if there is not None:
            listed(cache, *there, at=now())
    answer, _ = await answered(store, POD, Entry.SHARE_MANAGER)
    assert isinstance(answer.decision, Steer), answer.decision
    assert answer.decision.nodes == ("node-a",)
    assert [each.path for each in server.asked] == asked


async def test_without_any_cache_a_share_manager_pod_follows_its_vm(store: ClusterCache, server: ApiServer) -> None:
    """This holds before the caches are synced."""
    answer, _ = await answered(store, POD, Entry.SHARE_MANAGER)
    assert isinstance(answer.decision, Steer), answer.decision
    assert answer.decision.nodes == ("node-a",)
    asked = [each.path for each in server.asked]
    owner = f"{LONGHORN}/sharemanagers/{VOLUME}"
    assert asked[:4] == [owner, f"/api/v1/persistentvolumes/{VOLUME}", TICKETS, PODS]
    assert sorted(asked[4:]) == ["/api/v1/nodes/node-a", f"{LONGHORN}/nodes/node-a"]
