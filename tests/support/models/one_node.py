"""The Snapshot of one node, n1, with its pods; a pod under admission, with volumes; what feasibility says of n1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, convert, field
from support.fakes.views import ViewWithGaps, cluster
from support.objects import builders

from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume
from webhook.core.decision import NodeFit
from webhook.core.placement.feasibility import evaluate
from webhook.core.scheduler.cache import (
    UNLISTED,
    AnySnapshot,
    CSIDrivers,
    NodeInfo,
    SchedulerCache,
    SnapshotUnavailable,
)
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.node_rules import ClaimVolume
from webhook.core.scheduler.pod_info import NO_TERMS, PodInfo, PodNode, pod_info
from webhook.core.scheduler.pod_requests import Usage

HAS = {"pods": 3, "cpu": 1000}


class OneNodeSnapshot(Struct):
    """A Snapshot of n1, a node with one CPU and capacity for three pods."""

    scheduler_cache: SchedulerCache = field(default_factory=SchedulerCache)
    csi_drivers: CSIDrivers | None = None
    replicas: int = 1
    has: Mapping[str, int] = field(default_factory=HAS.copy)
    nodes: Mapping[str, Node] = field(default_factory=lambda: {"n1": convert(builders.node("n1"), Node)})

    def node(self, name: str) -> Node:
        """Return the node of that name."""
        return self.nodes.get(name, UNLISTED)

    def node_info(self, name: str) -> NodeInfo:
        """Return the node; any name has the same allocatable."""
        return self.scheduler_cache.node_info(name, self.has, self.csi_drivers, self.node(name))


class ViewWithSnapshot(ViewWithGaps):
    """A healthy n1 with this snapshot."""

    def __init__(self, snapshot: AnySnapshot) -> None:
        super().__init__(cluster(builders.node("n1")), {})
        self._snapshot = snapshot

    def snapshot(self) -> AnySnapshot:
        """Return the snapshot that was given."""
        return self._snapshot


HOSTNAME = "kubernetes.io/hostname"
DB = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": HOSTNAME}


def there(*pods: PodInfo, **more: Any) -> OneNodeSnapshot:
    """Return a snapshot of n1 with these pods."""
    made = OneNodeSnapshot(**more)
    for pod in pods:
        made.scheduler_cache.add(pod)
    return made


def taking(cpu: int, *, bound: bool = True, **described: Any) -> PodInfo:
    """Return a pod that requests so many milli-CPU of n1."""
    labels, terms = described.pop("labels", None), described.pop("anti_affinity", NO_TERMS)
    return pod_info("vms", Usage((("cpu", cpu),)), terms, PodNode(node="n1", bound=bound, **described), labels)


def asking(cpu: str = "500m", **spec: Any) -> Pod:
    """Return the pod under admission."""
    container = {"name": "compute", "resources": {"requests": {"cpu": cpu}}}
    return convert(builders.virt_launcher_pod(containers=[container], **spec), Pod)


def cycle(snapshot: AnySnapshot, pod: Pod, volumes: Sequence[ClaimVolume] = ()) -> CycleState:
    """Return the state of the pod under admission."""
    return CycleState(pod, "vms", snapshot, volumes)


def verdict(snapshot: AnySnapshot, pod: Pod | None = None) -> NodeFit:
    """Return the verdict on n1."""
    view = ViewWithSnapshot(snapshot)
    found = evaluate("n1", cycle(snapshot, pod or asking()), view)
    assert isinstance(found, NodeFit)
    return found


def coming(cpu: int, **described: Any) -> PodInfo:
    """Return a pod that is on the way to n1: kube-scheduler has not tried to schedule it yet."""
    return taking(cpu, bound=False, queued=True, **described)


APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [DB]}}


def cycle_of(*bound: ClaimVolume, **spec: Any) -> CycleState:
    """Return the state of a virt-launcher pod with these bound claims and these fields of its spec."""
    return cycle(SnapshotUnavailable("for a test"), convert(builders.virt_launcher_pod(**spec), Pod), bound)


def node_of(object_: builders.Object, **counted: Any) -> NodeInfo:
    """Return the node of this Node object; `counted` are other fields of NodeInfo."""
    return NodeInfo(convert(object_, Node), **counted)


def volume_of(*, of_one_pod: bool = False, being_deleted: bool = False, **parts: Any) -> ClaimVolume:
    """Return the claim `disk`, bound to the PersistentVolume `pv` with these parts."""
    volume = convert(builders.persistent_volume("pv", claim="disk", **parts), PersistentVolume)
    return ClaimVolume("disk", volume, of_one_pod=of_one_pod, being_deleted=being_deleted)


NO_SPEC = ClaimVolume("disk", convert({"metadata": {"name": "pv"}}, PersistentVolume))
"""A claim whose PersistentVolume tells nothing."""
