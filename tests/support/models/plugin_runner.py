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
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.plugins import inter_pod_affinity
from webhook.core.scheduler.state.cache import SchedulerCache
from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.scheduler.state.pod_info import PodHandle, PodInfo, PodNode
from webhook.core.scheduler.state.pod_requests import Usage
from webhook.core.scheduler.status import Status, merge

_NONE: Final[Object] = {}


class PluginRunner:
    """Asks the plugin that looks at other pods about one situation."""

    def __init__(self, situation: Situation, *, expected: Iterable[Object] = ()) -> None:
        self.nodes = {node["metadata"]["name"]: convert(node, Node) for node in situation.nodes}
        self.candidate = situation.candidate
        self.incoming = incoming_pod(situation.incoming_pod)
        self.scheduler_cache = SchedulerCache()
        for pod in situation.pods:
            add(self.scheduler_cache, pod)
        for pod in expected:
            add(self.scheduler_cache, pod, bound=False)

    def inter_pod_affinity(self) -> Status:
        """Return the status of InterPodAffinity: what rejects the node, else what can't be known of it."""
        nodes = snapshot(self.nodes, self.scheduler_cache)
        status = inter_pod_affinity.filter_node(CycleState(self.incoming, nodes), nodes.node_info(self.candidate))
        return merge((status, self.pre_filter()))

    def pre_filter(self) -> Status:
        """Return the status of InterPodAffinity for the pod, whatever the node."""
        return inter_pod_affinity.pre_filter(CycleState(self.incoming, snapshot(self.nodes, self.scheduler_cache)))


def snapshot(nodes: Mapping[str, Node], scheduler_cache: SchedulerCache) -> OneNodeSnapshot:
    """Return a Snapshot of these nodes and pods."""
    return OneNodeSnapshot(scheduler_cache=scheduler_cache, nodes=nodes)


def incoming_pod(pod: Object) -> IncomingPod:
    """Return a pod that is to be scheduled, as plugins read it."""
    return IncomingPod.of(convert(pod, Pod), pod["metadata"]["namespace"])


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
