"""What a plugin is asked about: one incoming pod, one node, one volume; and InterPodAffinity, about a situation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import convert
from support.models.one_node import OneNodeSnapshot
from support.models.scheduler_model import REQUIRED, Object, Situation
from support.objects import builders

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume
from webhook.core.reasons import Why
from webhook.core.scheduler.cache import NodeInfo, SchedulerCache, SnapshotUnavailable
from webhook.core.scheduler.cycle_state import CycleState, why_excluded
from webhook.core.scheduler.node_rules import ClaimVolume
from webhook.core.scheduler.pod_info import PodInfo, PodNode, anti_affinity
from webhook.core.scheduler.pod_requests import Usage


def cycle_of(*bound: ClaimVolume, **spec: Any) -> CycleState:
    """The state of a virt-launcher pod with these bound claims and these fields of its spec."""
    pod = convert(builders.virt_launcher_pod(**spec), Pod)
    return CycleState(pod, "vms", SnapshotUnavailable("for a test"), bound)


def node_of(object_: Object, **counted: Any) -> NodeInfo:
    """The node of this Node object; `counted` are other fields of NodeInfo."""
    return NodeInfo(convert(object_, Node), **counted)


def volume_of(*, of_one_pod: bool = False, **parts: Any) -> ClaimVolume:
    """The claim `disk`, bound to the PersistentVolume `pv` with these parts."""
    volume = convert(builders.persistent_volume("pv", claim="disk", **parts), PersistentVolume)
    return ClaimVolume("disk", volume, of_one_pod=of_one_pod)


NO_SPEC = ClaimVolume("disk", convert({"metadata": {"name": "pv"}}, PersistentVolume))
"""A claim whose PersistentVolume tells nothing."""

_NONE: Final[Object] = {}


class PluginRunner:
    """Asks the plugin that looks at other pods about one situation, whose pods are bound."""

    def __init__(self, situation: Situation) -> None:
        self.nodes = {node["metadata"]["name"]: convert(node, Node) for node in situation.nodes}
        self.candidate = situation.candidate
        self.incoming_pod = situation.incoming_pod
        self.scheduler_cache = SchedulerCache()
        for pod in situation.pods:
            add(self.scheduler_cache, pod)

    def inter_pod_affinity(self) -> Why | None:
        """Return what InterPodAffinity has against the candidate, or why the pods are not compared."""
        nodes = snapshot(self.nodes, self.scheduler_cache)
        return excluded(cycle_beside(self.incoming_pod, nodes), nodes, self.candidate)


def excluded(cycle: CycleState, nodes: OneNodeSnapshot, candidate: str) -> Why | None:
    """Return what the anti-affinity of bound pods has against a node, or why it is not compared."""
    found = cycle.excluding
    return found if isinstance(found, Why) else why_excluded(found, nodes.node_info(candidate))


def snapshot(nodes: Mapping[str, Node], scheduler_cache: SchedulerCache) -> OneNodeSnapshot:
    """Return a Snapshot of these nodes and pods."""
    return OneNodeSnapshot(scheduler_cache=scheduler_cache, nodes=nodes)


def cycle_beside(pod: Object, nodes: OneNodeSnapshot) -> CycleState:
    """Return what plugins are asked about a pod that is to be scheduled."""
    return CycleState(convert(pod, Pod), pod["metadata"]["namespace"], nodes)


def add(scheduler_cache: SchedulerCache, pod: Object, *, bound: bool = True) -> PodInfo:
    """Count a pod on its node; what it requests is not counted."""
    namespace = pod["metadata"]["namespace"]
    affinity: Any = pod["spec"].get("affinity") or _NONE
    terms = convert((affinity.get("podAntiAffinity") or _NONE).get(REQUIRED) or [], list[PodAffinityTerm])
    on = PodNode(node=pod["spec"]["nodeName"], bound=bound)
    found = PodInfo(namespace, Usage(), anti_affinity(terms, namespace), on)
    scheduler_cache.add(found)
    return found
