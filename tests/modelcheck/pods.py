"""The pods of the model, as the API server has them, and what happens to a replica of the webhook.

The webhook's own code writes the patch and reads the pod. Invariant: two pods of one key are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import jsonpatch
import msgspec
from support.fakes.views import cluster
from support.objects import builders, patches

from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.decision import Leave, Pin
from webhook.core.patch.decision_patch import Operation
from webhook.core.placement.replica_share import REPLICA_LABELS
from webhook.kube.records import pods as pod_records
from webhook.kube.records.pods import PodRecord, WirePod
from webhook.objects.cluster import Cluster as Facts

NAMESPACE: Final = "vms"
PLACE_MILLICPU: Final = 100
UNSCHEDULABLE: Final = "unschedulable"
"""A phase of the model: kube-scheduler has found no node for the pod. Another phase is the name of the pod's node."""

Object = dict[str, Any]


class Shape(NamedTuple):
    """What a VM asks for: the nodes of its share-managers, its mode, and how many places it takes."""

    nodes: tuple[str, ...]
    mode: str = "required"
    places: int = 1


class Terms(NamedTuple):
    """What the webhook wrote into a pod."""

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    shortlist: tuple[str, ...] = ()


NO_TERMS: Final = Terms()


class Ask(NamedTuple):
    """The API server asks about the pod of a VM."""

    vm: int
    shape: Shape


class Show(NamedTuple):
    """A watch, or the list at the start, shows the pod of a VM. The phase: empty, UNSCHEDULABLE, or its node."""

    vm: int
    shape: Shape
    terms: Terms
    phase: str


class ShowOther(NamedTuple):
    """A watch shows a pod on a node that never came to the webhook."""

    name: str
    node: str


class ShowGone(NamedTuple):
    """A watch shows that the pod of a VM is no more."""

    vm: int


class Expire(NamedTuple):
    """The time of an answer for this VM's pod is over."""

    vm: int


Happening = Ask | Show | ShowOther | ShowGone | Expire


class Cluster(NamedTuple):
    """What does not change: the places of each node, the number of replicas, and of nodes on which no VM fits."""

    places: tuple[tuple[str, int], ...]
    replicas: int
    full_nodes: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the nodes with places."""
        return tuple(name for name, _ in self.places)


def renumbered(happening: Happening, to: tuple[int, ...]) -> Happening:
    """Return what happens, if VM 0 had the number to[0], and so on."""
    return happening if isinstance(happening, ShowOther) else happening._replace(vm=to[happening.vm])


def terms_of(decision: Pin | Leave) -> Terms:
    """Return what the decision writes."""
    if isinstance(decision, Leave):
        return NO_TERMS
    return Terms(decision.required, tuple(each.node for each in decision.preferred), decision.shortlist)


def pod_key(vm: int) -> str:
    """Return the cache key of the pod of this VM."""
    return f"{NAMESPACE}/virt-launcher-vm{vm}"


def vmi_key(vm: int) -> str:
    """Return the cache key of this VM's VirtualMachineInstance."""
    return f"{NAMESPACE}/vm{vm}"


@cache
def facts(nodes: tuple[str, ...], without_places: int) -> Facts:
    """Return a cluster in which each of `nodes` has the share-manager of one claim.

    `without_places` is the number of further nodes, on which no VM fits: kube-scheduler scores all nodes of a small
    cluster, so that only a large one gets short lists.
    """
    objects: list[Object] = [builders.node(name) for name in nodes]
    objects += [builders.node(f"full-{index}") for index in range(without_places)]
    for name in nodes:
        objects += [
            builders.persistent_volume_claim(f"on-{name}", namespace=NAMESPACE, volume_name=f"volume-{name}"),
            builders.persistent_volume(f"volume-{name}", claim=f"on-{name}", namespace=NAMESPACE),
            builders.share_manager(f"volume-{name}", ownerID=name, state="running"),
            builders.share_manager_pod(f"volume-{name}", nodeName=name),
            builders.longhorn_node(name),
        ]
    return cluster(*objects)


@cache
def node(name: str, places: int) -> Node:
    """Return a node with this number of places."""
    allocatable = {"cpu": f"{PLACE_MILLICPU * places}m", "pods": "110"}
    return msgspec.convert(builders.node(name, allocatable=allocatable), Node)


@cache
def asked(vm: int, shape: Shape) -> Pod:
    """Return the pod of this VM as the webhook gets it."""
    return msgspec.convert(_asked(vm, shape), Pod)


def _asked(vm: int, shape: Shape) -> Object:
    requests = {"cpu": f"{PLACE_MILLICPU * shape.places}m"}
    return builders.vm_pod(
        f"vm{vm}",
        namespace=NAMESPACE,
        opt_in={"required": "true", "preferred": "preferred"}[shape.mode],
        claims=[f"on-{name}" for name in shape.nodes],
        containers=[{"name": "compute", "resources": {"requests": requests}}],
    )


_decisions: dict[tuple[Shape, Terms], Pin | Leave] = {}


def patch(shape: Shape, decision: Pin | Leave) -> Terms:
    """Return what the patch of this decision writes, by which `shown` finds the decision again."""
    terms = terms_of(decision)
    _decisions.setdefault((shape, terms), decision)
    return terms


def _patch(vm: int, shape: Shape, terms: Terms) -> Sequence[Operation]:
    """Return the patch that writes these terms into the pod of this VM. Its record names the VM."""
    if terms == NO_TERMS:
        return ()
    return patches.for_decision(asked(vm, shape), _decisions[shape, terms])


@cache
def shown(vm: int, shape: Shape, terms: Terms, phase: str) -> PodRecord:
    """Return the record of a VM's pod as a watch shows it: pending, unschedulable, or on a node.

    The API server has applied the patch. A pod without terms is one that was left as it is, or whose answer was lost.
    """
    pod = jsonpatch.apply_patch(_asked(vm, shape), _patch(vm, shape, terms))
    if phase == UNSCHEDULABLE:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
        pod["status"] = {"phase": "Pending", "conditions": [condition]}
    elif phase:
        pod["spec"] = {**pod["spec"], "nodeName": phase}
        pod["status"] = {"phase": "Running"}
    return _decoded(pod)


@cache
def other_pod(name: str, on: str, labels: Sequence[tuple[str, str]] = ()) -> PodRecord:
    """Return the record of a pod of another kind: the pod takes one place of a node and never came to the webhook."""
    requests = {"cpu": f"{PLACE_MILLICPU}m"}
    return _decoded(
        {
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": dict(labels)},
            "spec": {"nodeName": on, "containers": [{"name": "main", "resources": {"requests": requests}}]},
        }
    )


@cache
def replica_pod(index: int) -> PodRecord:
    """Return the record of a pod of the webhook itself. It runs on a node where no VM is."""
    return other_pod(f"webhook-{index}", "full-0", tuple(REPLICA_LABELS.items()))


def _decoded(pod: Object) -> PodRecord:
    return pod_records.transform(msgspec.convert(pod, WirePod))
