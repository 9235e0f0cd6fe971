"""A situation as the program sees it: the JSON is decoded, the pods are indexed, and both plugins are asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import convert
from support.models.one_node import OneNodeSnapshot
from support.models.scheduler_model import REQUIRED, Object, Situation

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.scheduler.budget import Budget
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.framework import Filter
from webhook.core.scheduler.plugins import inter_pod_affinity, pod_topology_spread
from webhook.core.scheduler.state.cache import SchedulerCache
from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.scheduler.state.node_labels import NodeLabels
from webhook.core.scheduler.state.pod_index import IndexedPod, PodIndex
from webhook.core.scheduler.state.pod_info import Presence
from webhook.core.scheduler.status import Status

_NONE: Final[Object] = {}


class PluginRunner:
    """Asks the two plugins that look at other pods about one situation."""

    def __init__(self, situation: Situation, *, expected: Iterable[Object] = ()) -> None:
        self.nodes = {node["metadata"]["name"]: convert(node, Node) for node in situation.nodes}
        self.node = convert(situation.node, Node)
        self.incoming = incoming_pod(situation.incoming_pod)
        self.pod_index = PodIndex()
        for pod in situation.pods:
            add(self.pod_index, pod)
        for pod in expected:
            add(self.pod_index, pod, Presence.EXPECTED)

    def inter_pod_affinity(self, budget: Budget | None = None) -> Status:
        """Return the status of InterPodAffinity, within the given budget or the usual one."""
        return self._ask(inter_pod_affinity.filter_node, budget)

    def pod_topology_spread(self, budget: Budget | None = None) -> Status:
        """Return the status of PodTopologySpread, within the given budget or the usual one."""
        return self._ask(pod_topology_spread.filter_node, budget)

    def _ask(self, filter_node: Filter, budget: Budget | None) -> Status:
        cycle = CycleState(self.incoming, snapshot(self.nodes, self.pod_index), budget)
        return filter_node(cycle, NodeInfo(self.node))


def snapshot(nodes: Mapping[str, Node], pod_index: PodIndex, node_labels: NodeLabels | None = None) -> OneNodeSnapshot:
    """Return a Snapshot of these nodes and pods; what the pods request is not counted."""
    cache = SchedulerCache()
    cache.pod_index = pod_index
    return OneNodeSnapshot(scheduler_cache=cache, nodes=nodes, node_labels=node_labels or NodeLabels())


def incoming_pod(pod: Object) -> IncomingPod:
    """Return a pod that is to be scheduled, as plugins read it."""
    return IncomingPod.of(convert(pod, Pod), pod["metadata"]["namespace"])


def terms(pod: Object, kind: str) -> list[PodAffinityTerm]:
    """Return a pod's required terms of a kind."""
    affinity: Any = pod["spec"].get("affinity") or _NONE
    return convert((affinity.get(kind) or _NONE).get(REQUIRED) or [], list[PodAffinityTerm])


def add(pod_index: PodIndex, pod: Object, presence: Presence | None = None) -> IndexedPod:
    """Add a pod to the index, on its node."""
    metadata = pod["metadata"]
    if presence is None:
        presence = Presence.TERMINATING if "deletionTimestamp" in metadata else Presence.BOUND
    return pod_index.add(
        metadata["namespace"],
        pod["spec"]["nodeName"],
        metadata.get("labels"),
        terms(pod, "podAntiAffinity"),
        presence,
    )
