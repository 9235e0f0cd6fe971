from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert
from support.fakes.views import LONGHORN_NAMESPACE, MISSING, ViewWithGaps, cluster
from support.objects.builders import (
    instance_manager_pod,
    longhorn_node,
    node,
    persistent_volume,
    persistent_volume_claim,
    share_manager_pod,
    vm_pod,
    volume_attachment,
)

from webhook.core import refs
from webhook.core.api.longhorn import LonghornNode
from webhook.core.api.meta import NamespacedName
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.decision import Steer
from webhook.core.opt_in import Policy
from webhook.core.placement.longhorn_node import lacks_of, why_no_data_engine
from webhook.core.placement.share_manager import steer_share_manager
from webhook.core.reasons import Reason
from webhook.core.scheduler.cache import SnapshotUnavailable
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.view import ClusterView, Kind, NoObject, ObjectRef, Ref

Object = dict[str, Any]
POD = convert(share_manager_pod("h", phase=None), Pod)
VOLUME = persistent_volume("h", claim="disk")
NAMES = [f"m{i}" for i in range(1, 111)]
TICKET = volume_attachment("h", [("csi-attacher", "m1")])


def vm(on: str | None) -> Object:
    """Return the pod of a VM that uses the volume's claim."""
    return vm_pod("a", node=on, claims=["disk"])


def steered(view: ClusterView, policy: Policy | None = None, pod: Pod = POD) -> Steer:
    """Return the decision for the volume's share-manager pod."""
    found = steer_share_manager(pod, LONGHORN_NAMESPACE, view, policy or Policy())
    assert isinstance(found, Steer)
    return found


@pytest.mark.parametrize(
    ("objects", "caches_know", "rounds"),
    [
        pytest.param([vm("m1")], True, 0, id="the VM's node is known"),
        pytest.param([vm(None), TICKET], True, 1, id="by its ticket"),
        pytest.param([TICKET], True, 2, id="the ticket is all there is"),
        pytest.param([vm(None)], True, 1, id="nothing is"),
        pytest.param([vm("m1")], False, 2, id="no cache knows anything, the VM's node is known"),
        pytest.param([TICKET], False, 3, id="no cache knows anything, and a ticket"),
        pytest.param([vm(None), TICKET], False, 3, id="no cache, by its ticket"),
    ],
)
def test_how_often_something_must_be_read(objects: list[Object], caches_know: bool, rounds: int) -> None:  # noqa: FBT001 - a column
    """With following caches at most two rounds of reads, and none in the steady state. Nothing is read twice."""
    live: list[Ref] = [ObjectRef(Kind.VOLUME_ATTACHMENT, NamespacedName("", "h")), refs.virt_launchers_on("vms", "m1")]
    cached: list[Ref] = [ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", "h"))]
    cached += [ObjectRef(kind, NamespacedName("", "m1")) for kind in (Kind.NODE, Kind.LONGHORN_NODE)]
    gaps = dict.fromkeys(live if caches_know else [*live, *cached], MISSING)
    whole = cluster(VOLUME, instance_manager_pod("m1"), *objects, node("m1"), longhorn_node("m1"))
    count = 0
    while True:
        view = ViewWithGaps(whole, gaps)
        steer_share_manager(POD, LONGHORN_NAMESPACE, view, Policy())
        if not view.missing:
            break
        count += 1
        for ref in view.missing:
            del gaps[ref]
    assert count == rounds


def test_a_node_whose_pods_are_not_known_is_only_preferred() -> None:
    """A preference for a full node does no harm."""

    class UnknownPods(ViewWithGaps):
        """A view that does not know the pods on the nodes."""

        def snapshot(self) -> SnapshotUnavailable:
            """Return why the pods are not known."""
            return SnapshotUnavailable("pods were not listed yet")

    found = steered(UnknownPods(cluster(VOLUME, vm("m1"), *map(node, NAMES)), {}))
    assert (found.nodes, found.shortlist, found.near) == (("m1",), (), found.preferred)
    assert found.node_fits[0].why.reason is Reason.FREE_RESOURCES_UNKNOWN


@pytest.mark.parametrize(("taints", "by_node"), [([], False), (["old=:PreferNoSchedule"], True)], ids=["none", "soft"])
def test_without_short_lists_a_soft_taint_gives_node_affinity_terms(taints: list[str], *, by_node: bool) -> None:
    """The operator's choice: the preference alone, and beside a taint by node affinity, too."""
    nodes = [node("m1", taints=taints), *map(node, NAMES[1:])]
    there = cluster(VOLUME, vm("m1"), *nodes, *map(instance_manager_pod, NAMES))
    found = steered(there, Policy(shortlist=False))
    assert (found.shortlist, found.near, found.by_node) == ((), found.preferred, by_node)


@pytest.mark.parametrize(
    "gap",
    [
        pytest.param(ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "disk")), id="claim"),
        pytest.param(ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", "h")), id="volume"),
    ],
)
def test_whether_a_served_volume_is_encrypted_may_be_unknown(gap: Ref) -> None:
    """Then the share-manager pod is steered as if it were not: a preference does no harm."""
    made = persistent_volume("h", claim="disk", attributes={"encrypted": "true"})
    there = cluster(made, persistent_volume_claim("disk", volume_name="h"))
    cycle = CycleState(POD, LONGHORN_NAMESPACE, SnapshotUnavailable("for a test"))
    told = {"KernelModulesLoaded": "x: Kernel modules [dm_crypt]"}
    sealed = convert(longhorn_node("n1", conditions=told), LonghornNode)
    for view, words in ((there, ["dm_crypt"]), (ViewWithGaps(there, {gap: NoObject.UNAVAILABLE}), [])):
        assert [lack.word for lack in lacks_of("n1", sealed, cycle, view)] == words


def test_only_a_share_managers_pod_is_read_for_what_it_serves() -> None:
    """Its label says so, and its container's arguments name a volume of data engine v2."""
    there = convert(node("n1", labels={"node.longhorn.io/disable-v2-data-engine": "true"}), Node)
    told = []
    for engine, component in (("v2", "share-manager"), ("v1", "share-manager"), ("v2", "x")):
        pod = share_manager_pod("h", data_engine=engine, labels={"longhorn.io/component": component})
        cycle = CycleState(convert(pod, Pod), LONGHORN_NAMESPACE, SnapshotUnavailable("for a test"))
        told.append(why_no_data_engine("n1", there, cycle) is not None)
    assert told == [True, False, False]


@pytest.mark.parametrize("source", [{"persistentVolumeClaim": {"claimName": "cache"}}, {"ephemeral": {}}], ids=str)
def test_a_share_manager_pod_with_claims_of_its_own_gets_no_short_list(source: Object) -> None:
    """Longhorn gives it none, but another webhook can. Where their volumes can be used is not evaluated."""
    there = cluster(VOLUME, vm("m1"), *map(node, NAMES), *map(instance_manager_pod, NAMES))
    described = share_manager_pod("h", phase=None)
    described["spec"]["volumes"] = [{"name": "cache", **source}]
    assert steered(there).shortlist
    assert not steered(there, pod=convert(described, Pod)).shortlist
