"""A situation, as the program sees it: JSON decoded, pods in the index, both rules asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import convert
from support.models.scheduler_model import REQUIRED, Object, Situation

from webhook.core.api.affinity import PodAffinityTerm, TopologySpreadConstraint
from webhook.core.api.node import Node
from webhook.core.api.node_selector import NodeSelector
from webhook.core.api.pod import Toleration
from webhook.core.scheduler.budget import Budget
from webhook.core.scheduler.plugins import inter_pod_affinity, pod_topology_spread
from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.scheduler.state.pod_index import IndexedPod, PodIndex, Presence
from webhook.core.scheduler.status import Status
from webhook.core.scheduler.topology.node_labels import NodeLabels
from webhook.core.scheduler.topology.search import Search

_NONE: Final[Object] = {}


class Judge:
    """Asks about one situation."""

    def __init__(self, situation: Situation, *, expected: Iterable[Object] = ()) -> None:
        self.nodes = {node["metadata"]["name"]: convert(node, Node) for node in situation.nodes}
        self.node = convert(situation.node, Node)
        self.newcomer = newcomer(situation.newcomer)
        self.pod_index = PodIndex()
        for pod in situation.pods:
            add(self.pod_index, pod)
        for pod in expected:
            add(self.pod_index, pod, Presence.EXPECTED)

    def interpod(self, budget: Budget | None = None) -> Status:
        """InterPodAffinity; within the usual budget, where none is told."""
        return inter_pod_affinity.filter_node(
            inter_pod_affinity.pre_filter(self.newcomer, self._search(budget)), self.node
        )

    def spread(self, budget: Budget | None = None) -> Status:
        """PodTopologySpread; as `interpod`."""
        return pod_topology_spread.filter_node(
            pod_topology_spread.pre_filter(self.newcomer, self._search(budget)), self.node
        )

    def _search(self, budget: Budget | None) -> Search:
        return Search(self.nodes, NodeLabels(), self.pod_index, budget or Budget())


def newcomer(pod: Object) -> IncomingPod:
    """A pod that is to be scheduled."""
    spec = pod["spec"]
    node_affinity = (spec.get("affinity") or _NONE).get("nodeAffinity") or _NONE
    return IncomingPod(
        namespace=pod["metadata"]["namespace"],
        labels=pod["metadata"].get("labels") or {},
        affinity=terms(pod, "podAffinity"),
        anti_affinity=terms(pod, "podAntiAffinity"),
        spread=convert(spec.get("topologySpreadConstraints") or [], list[TopologySpreadConstraint]),
        node_selector=spec.get("nodeSelector") or {},
        node_affinity=convert(node_affinity.get(REQUIRED), NodeSelector | None),
        tolerations=convert(spec.get("tolerations") or [], list[Toleration]),
    )


def terms(pod: Object, kind: str) -> list[PodAffinityTerm]:
    """A pod's required terms of a kind."""
    affinity: Any = pod["spec"].get("affinity") or _NONE
    return convert((affinity.get(kind) or _NONE).get(REQUIRED) or [], list[PodAffinityTerm])


def add(pod_index: PodIndex, pod: Object, presence: Presence | None = None) -> IndexedPod:
    """A pod is on a node."""
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
