"""A pod is assumed, told and shown only while the cluster has its VirtualMachineInstance: anybody may send a pod."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
from support.fakes.api_server import ApiServer, Cluster, saying, until
from support.fakes.live import LONGHORN_NAMESPACE, PATHS, cluster_of, connected, gets, listed, now, running
from support.objects import builders
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance

from webhook.app.handler import admit_function
from webhook.core.admit import Answer, Entry
from webhook.core.opt_in import Policy
from webhook.core.view import Kind
from webhook.kube.cache.caches import Caches
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.page.feed import Decisions
from webhook.telemetry.record import AdmissionRecord

Object = dict[str, Any]
HOME: Final = "node-a"
VMIS: Final = PATHS[Kind.VIRTUAL_MACHINE_INSTANCE]


def vm(name: str, **described: Any) -> Object:
    """The pod of a VM with a disk of its own name."""
    return builders.vm_pod(name, claims=[name], opt_in="required", **described)


def disk(name: str) -> list[Object]:
    """A claim with its volume, and its share-manager on HOME."""
    volume = f"pvc-{name}"
    return [
        builders.persistent_volume_claim(name, volume_name=volume),
        builders.persistent_volume(volume, claim=name),
        builders.share_manager(volume, state="running", ownerID=HOME),
        builders.share_manager_pod(volume, nodeName=HOME),
    ]


class Told:
    """A webhook's server: its cluster, and what it tells of the pods that it was asked about."""

    def __init__(self, store: ClusterCache, server: ApiServer, cluster: Cluster) -> None:
        self.store, self.server, self.cluster = store, server, cluster
        self.answers: list[Answer] = []
        self.records: list[AdmissionRecord] = []
        self._admit = admit_function(store, Policy(), self.records.append, on_answer=self._answered)

    def _answered(self, answer: Answer, _: Entry) -> None:
        self.answers.append(answer)

    async def ask(self, pod: Object) -> str:
        """Ask about this pod. Return the decision."""
        answer = json.loads(await self._admit(json.dumps(builders.review(pod)).encode(), now() + 5))
        decision: str = answer["response"]["auditAnnotations"]["decision"]
        return decision

    @property
    def assumed(self) -> int:
        """The number of pods that count as just placed on the node."""
        return self.store.view().snapshot().node_info(HOME).on_the_way.pods  # type: ignore[union-attr] # all pods are known

    @property
    def shown(self) -> int:
        """The number of calls that the page shows."""
        decisions = Decisions()
        for record in self.records:
            decisions.note(record)
        return decisions.total


@pytest.fixture
async def told(tmp_path: Path) -> AsyncIterator[Told]:
    """All share-managers are on a node with enough for all VMs; KubeVirt knows VM `real`."""
    owner = vm("real")["metadata"]["ownerReferences"][0]
    cluster = cluster_of(
        builders.node(HOME),
        *(each for name in ("real", "forged", "late") for each in disk(name)),
        virtual_machine("real", ["real"]),
        virtual_machine_instance("real", ["real"], uid=owner["uid"]),
    )
    async with ApiServer(cluster) as server, connected(server, tmp_path) as api:
        store = ClusterCache(api, longhorn_namespace=LONGHORN_NAMESPACE)
        async with running(store):
            yield Told(store, server, cluster)


FORGED: Final = {
    "of no VM that exists": (vm("forged"), "OwnerNotFound", 1),
    "of an earlier start of the VM": (vm("real", uid="an-earlier-start"), "OwnerNotFound", 1),
    "without an owner": (
        {**vm("forged"), "metadata": {**vm("forged")["metadata"], "ownerReferences": None}},
        "NoOwner",
        0,
    ),
    "with many claims": (
        builders.vm_pod("forged", claims=[f"random-{number}" for number in range(40)]),
        "OwnerNotFound",
        1,
    ),
}


@pytest.mark.parametrize(("pod", "reason", "requests"), FORGED.values(), ids=FORGED)
async def test_a_pod_of_no_vm_costs_one_read_and_leaves_nothing(
    pod: Object, reason: str, requests: int, told: Told
) -> None:
    """No pod is assumed, there is no Event, and the page shows nothing. Only the pod says why it stays unchanged."""
    assert await told.ask(pod) == "unchanged"
    assert [record.reason for record in told.records] == [reason]
    assert len(gets(told.server)) == requests
    assert (told.assumed, told.answers, told.shown) == (0, [], 0)
    assert await told.ask(vm("real")) == "required"


async def test_a_vm_that_can_not_be_read_is_as_good_as_none(told: Told) -> None:
    """The API server refuses the one read. The reason says so, and nothing is kept either."""
    with told.cluster.fault(
        saying(429, b"{}"), when=lambda asked: asked.path.endswith("/virtualmachineinstances/late")
    ):
        assert await told.ask(vm("late")) == "unchanged"
    assert [record.reason for record in told.records] == ["OwnerLookupFailed"]
    assert (told.assumed, told.answers, told.shown) == (0, [], 0)


async def test_a_pod_of_a_vm_is_assumed_told_and_shown(told: Told) -> None:
    """Without a request to the API server."""
    assert await told.ask(vm("real")) == "required"
    assert (told.assumed, len(told.answers), told.shown) == (1, 1, 1)
    assert gets(told.server) == []


async def test_a_vm_that_the_watch_has_not_shown_yet_is_read(told: Told) -> None:
    """One request, and then the pod is as good as any other."""
    late = vm("late")
    vmi = virtual_machine_instance("late", ["late"], vm=None, uid=late["metadata"]["ownerReferences"][0]["uid"])
    path = f"/apis/kubevirt.io/v1/namespaces/{builders.NAMESPACE}/virtualmachineinstances/late"
    with told.cluster.fault(saying(200, json.dumps(vmi).encode()), when=lambda asked: asked.path == path):
        assert await told.ask(late) == "required"
    assert told.assumed == 1
    assert gets(told.server) == [path]


async def test_an_assumed_pod_goes_with_its_vm(told: Told) -> None:
    """The VirtualMachineInstance is deleted before a watch has shown the pod."""
    await told.ask(vm("real"))
    assert told.assumed == 1
    told.cluster.collections[VMIS].remove("real", builders.NAMESPACE)
    await until(lambda: told.assumed == 0)


async def test_an_unbound_pod_counts_while_its_vm_exists(told: Told) -> None:
    """However the pod is labelled, and whatever the record in it says: the watch of the VMs decides."""
    pods = told.cluster.collections[PATHS[Kind.VIRT_LAUNCHER_POD]]
    for name in ("real", "late"):
        pods.put(vm(name, pinned_to=[HOME], decided="required"))
    cache = told.store.caches[Kind.VIRT_LAUNCHER_POD]
    await until(lambda: len(cache.objects) == 2)
    assert told.assumed == 1
    late = vm("late")["metadata"]["ownerReferences"][0]["uid"]
    vmis = told.cluster.collections[VMIS]
    vmis.put(virtual_machine_instance("late", ["late"], uid=late))
    await until(lambda: told.assumed == 2)
    for name in ("real", "late"):
        vmis.remove(name, builders.NAMESPACE)
    await until(lambda: told.assumed == 0)
    assert len(cache.objects) == 2


async def test_pods_that_were_listed_before_their_vms_are_counted_again(told: Told) -> None:
    """Until the VMs are known, each may exist."""
    caches = told.store.caches
    resources = [caches[kind].resource for kind in caches]
    fresh = Caches(resources, in_pod=False)
    nodes, pods, vmis = (fresh[kind] for kind in (Kind.NODE, Kind.VIRT_LAUNCHER_POD, Kind.VIRTUAL_MACHINE_INSTANCE))
    listed(nodes, builders.node(HOME), at=now())
    listed(fresh[Kind.CSI_NODE], at=now())
    both = [vm(name, pinned_to=[HOME], decided="required") for name in ("real", "forged")]
    listed(pods, *both, at=now())
    assert _on_the_way(fresh) == 2
    real = vm("real")["metadata"]["ownerReferences"][0]["uid"]
    listed(vmis, virtual_machine_instance("real", ["real"], uid=real), at=now())
    assert _on_the_way(fresh) == 1


def _on_the_way(caches: Caches) -> int:
    return caches.snapshot(now()).node_info(HOME).on_the_way.pods  # type: ignore[union-attr] # all caches are listed


async def test_an_instance_of_the_same_name_that_the_cache_does_not_have_yet_is_read(told: Told) -> None:
    """The VM starts again: the cache still has the instance of the earlier start."""
    again = vm("real", uid="the-next-start")
    vmi = virtual_machine_instance("real", ["real"], uid="the-next-start")
    with told.cluster.fault(saying(200, json.dumps(vmi).encode()), when=lambda asked: asked.path.endswith("s/real")):
        assert await told.ask(again) == "required"
    assert (told.assumed, told.shown, len(gets(told.server))) == (1, 1, 1)
