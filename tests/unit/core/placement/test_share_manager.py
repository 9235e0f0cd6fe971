from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import convert
from support.fakes.views import MISSING, Gap, ViewWithGaps, cluster
from support.objects.builders import (
    instance_manager_pod,
    longhorn_node,
    node,
    persistent_volume,
    share_manager_pod,
    vm_pod,
    volume_attachment,
)

from webhook.core import refs
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.decision import Leave, Steer
from webhook.core.opt_in import Policy
from webhook.core.placement.share_manager import steer_share_manager
from webhook.core.reasons import Reason
from webhook.core.scheduler.cache import SnapshotUnavailable
from webhook.core.view import ClusterView, Kind, ObjectRef, Ref

Object = dict[str, Any]
LONGHORN = "longhorn-system"
VOLUME = [persistent_volume("h", claim="disk")]
SOFT = ["old=:PreferNoSchedule"]
MANY = [node(f"m{i}") for i in range(1, 111)]


def vm(name: str, on: str | None, **parts: Any) -> Object:
    """Return the pod of a VM that uses the volume's claim."""
    return vm_pod(name, node=on, **{"claims": ["disk"], **parts})


def decide(
    *objects: Object,
    pod: Object | None = None,
    gaps: Mapping[Ref, Gap] | None = None,
    staleness: str | None = None,
    policy: Policy = Policy(),  # noqa: B008 - frozen
    seen: bool = True,
    asked: list[Ref] | None = None,
) -> Steer | Leave:
    """Decide for the volume's share-manager pod in a cluster of these objects.

    `seen`: an instance-manager pod of Longhorn runs on each node.
    """
    nodes = [each["metadata"]["name"] for each in objects if (each["apiVersion"], each["kind"]) == ("v1", "Node")]
    managers = map(instance_manager_pod, nodes if seen else ())
    view: ClusterView = ViewWithGaps(cluster(*VOLUME, *managers, *objects), gaps or {}, staleness=staleness)
    found = steer_share_manager(convert(pod or share_manager_pod("h", phase=None), Pod), LONGHORN, view, policy)
    assert isinstance(found, Steer | Leave)
    if asked is not None:
        asked += view.missing
    return found


def read_for(*objects: Object, gaps: Mapping[Ref, Gap]) -> list[Ref]:
    """What must be read before the decision counts."""
    asked: list[Ref] = []
    decide(*objects, gaps=gaps, asked=asked)
    return asked


def steered(*objects: Object, **parts: Any) -> Steer:
    """Return the decision of `decide`, which must be Steer."""
    found = decide(*objects, **parts)
    assert isinstance(found, Steer)
    return found


def node_refs(*names: str) -> set[Ref]:
    """Return the references to these nodes."""
    return {ObjectRef(kind, NamespacedName("", name)) for name in names for kind in (Kind.NODE, Kind.LONGHORN_NODE)}


@pytest.mark.parametrize(
    ("objects", "caches_know", "rounds"),
    [
        pytest.param([vm("a", "n1")], True, 0, id="the VM's node is known"),
        pytest.param([vm("a", None), volume_attachment("h", [("csi-attacher", "n1")])], True, 1, id="by its ticket"),
        pytest.param([volume_attachment("h", [("csi-attacher", "n1")])], True, 2, id="the ticket is all there is"),
        pytest.param([vm("a", None)], True, 1, id="nothing is"),
        pytest.param([vm("a", "n1")], False, 2, id="no cache knows anything, the VM's node is known"),
        pytest.param(
            [volume_attachment("h", [("csi-attacher", "n1")])], False, 3, id="no cache knows anything, and a ticket"
        ),
        pytest.param(
            [vm("a", None), volume_attachment("h", [("csi-attacher", "n1")])], False, 3, id="no cache, by its ticket"
        ),
    ],
)
def test_how_often_something_must_be_read(objects: list[Object], caches_know: bool, rounds: int) -> None:  # noqa: FBT001 - a column
    """With following caches at most two rounds of reads, and none in the steady state. Nothing is read twice."""
    live = [
        ObjectRef(Kind.VOLUME_ATTACHMENT, NamespacedName("", "h")),
        refs.virt_launchers_on("vms", "n1"),
    ]
    cached = [ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", "h")), *node_refs("n1")]
    gaps = dict.fromkeys(live if caches_know else [*live, *cached], MISSING)
    count = 0
    while asked := read_for(*objects, node("n1"), longhorn_node("n1"), gaps=gaps):
        count += 1
        for ref in asked:
            del gaps[ref]
    assert count == rounds


def test_a_node_whose_pods_are_not_known_is_only_preferred() -> None:
    """A preference for a full node does no harm."""

    class UnknownPods(ViewWithGaps):
        """A view that does not know the pods on the nodes."""

        def snapshot(self) -> SnapshotUnavailable:
            """Return why the pods are not known."""
            return SnapshotUnavailable("pods were not listed yet")

    view = UnknownPods(cluster(*VOLUME, vm("a", "m1"), *MANY), {})
    found = steer_share_manager(convert(share_manager_pod("h", phase=None), Pod), LONGHORN, view, Policy())
    assert isinstance(found, Steer)
    assert (found.nodes, found.shortlist, found.near) == (("m1",), (), found.preferred)
    assert found.node_fits[0].why.reason is Reason.FREE_RESOURCES_UNKNOWN


def test_without_short_lists_a_soft_taint_gives_node_affinity_terms() -> None:
    """The operator's choice: the preference alone, and beside a taint by node affinity, too."""
    off = Policy(shortlist=False)
    alone = steered(vm("a", "m1"), *MANY, policy=off)
    assert (alone.shortlist, alone.near, alone.by_node) == ((), alone.preferred, False)
    tainted = [node("m1", taints=SOFT) if each["metadata"]["name"] == "m1" else each for each in MANY]
    found = steered(vm("a", "m1"), *tainted, policy=off)
    assert (found.shortlist, found.near, found.by_node) == ((), found.preferred, True)
