"""A situation as the program sees it: the JSON is decoded, the pods are counted, and InterPodAffinity is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import convert
from support.models.one_node import OneNodeSnapshot
from support.models.scheduler_model import REQUIRED, Object, Situation

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.plugins import inter_pod_affinity
from webhook.core.scheduler.state.cache import SchedulerCache
from webhook.core.scheduler.state.pod_info import PodHandle, PodInfo, PodNode
from webhook.core.scheduler.state.pod_requests import Usage

UNKNOWN: Final = {
    Reason.INTER_POD_AFFINITY,
    Reason.MAY_BE_EXCLUDED_BY_POD,
    Reason.POD_AFFINITY_UNMET,  # the pod can be the first of its kind
    Reason.HOSTNAME_NOT_UNIQUE,
    Reason.NAMESPACES_UNKNOWN,
    Reason.MATCH_LABEL_KEYS,
}
"""With these kube-scheduler may accept the node. With any other reason it rejects the node."""
_NONE: Final[Object] = {}


class PluginRunner:
    """Asks the plugin that looks at other pods about one situation."""

    def __init__(self, situation: Situation, *, expected: Iterable[Object] = ()) -> None:
        self.nodes = {node["metadata"]["name"]: convert(node, Node) for node in situation.nodes}
        self.candidate = situation.candidate
        self.incoming_pod = situation.incoming_pod
        self.scheduler_cache = SchedulerCache()
        for pod in situation.pods:
            add(self.scheduler_cache, pod)
        for pod in expected:
            add(self.scheduler_cache, pod, bound=False)

    def inter_pod_affinity(self) -> Why | None:
        """Return what InterPodAffinity has against the node, or against any node."""
        nodes = snapshot(self.nodes, self.scheduler_cache)
        why = inter_pod_affinity.filter_node(cycle_of(self.incoming_pod, nodes), nodes.node_info(self.candidate))
        return why or self.pre_filter()

    def pre_filter(self) -> Why | None:
        """Return what InterPodAffinity has against any node."""
        return inter_pod_affinity.pre_filter(cycle_of(self.incoming_pod, snapshot(self.nodes, self.scheduler_cache)))


def snapshot(nodes: Mapping[str, Node], scheduler_cache: SchedulerCache) -> OneNodeSnapshot:
    """Return a Snapshot of these nodes and pods."""
    return OneNodeSnapshot(scheduler_cache=scheduler_cache, nodes=nodes)


def cycle_of(pod: Object, nodes: OneNodeSnapshot) -> CycleState:
    """Return what plugins are asked about a pod that is to be scheduled."""
    return CycleState(convert(pod, Pod), pod["metadata"]["namespace"], nodes)


def terms(pod: Object, kind: str) -> list[PodAffinityTerm]:
    """Return a pod's required terms of a kind."""
    affinity: Any = pod["spec"].get("affinity") or _NONE
    return convert((affinity.get(kind) or _NONE).get(REQUIRED) or [], list[PodAffinityTerm])


def add(scheduler_cache: SchedulerCache, pod: Object, *, bound: bool = True) -> PodHandle:
    """Count a pod on its node; what it requests is not counted."""
    metadata = pod["metadata"]
    on = PodNode(node=pod["spec"]["nodeName"], bound=bound)
    return scheduler_cache.add(
        PodInfo(metadata["namespace"], Usage(), metadata.get("labels"), terms(pod, "podAntiAffinity"), on)
    )
