"""PodFilters: InterPodAffinity and PodTopologySpread for one pod: they look at other pods once, at nodes one by one.

As kube-scheduler's plugins do between PreFilter and Filter. Nothing is looked for before the first node is judged.
"""

from __future__ import annotations

from webhook.core.api.node import Node
from webhook.core.scheduler.budget import Budget
from webhook.core.scheduler.plugins import inter_pod_affinity, pod_topology_spread
from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.scheduler.state.snapshot import Snapshot
from webhook.core.scheduler.status import Passed, Status
from webhook.core.scheduler.topology.search import Search


class PodFilters:
    """What is found holds for as long as pods and nodes are the same: to be used in one turn of the event loop."""

    def __init__(self, incoming: IncomingPod, budget: Budget) -> None:
        self._incoming, self._budget = incoming, budget
        self._search: Search | None = None
        self._interpod: inter_pod_affinity.PreFilterState | None = None
        self._spread: pod_topology_spread.PreFilterState | None = None

    def ruling(self, node: Node, snapshot: Snapshot) -> Status:
        """Whether both admit `node`, one of the crowd's."""
        nodes, pod_index = snapshot.nodes, snapshot.pod_index
        if self._search is None or not self._search.is_of(nodes, pod_index):
            self._search = Search(nodes, snapshot.node_labels, pod_index, self._budget)
            self._interpod = self._spread = None
        if self._interpod is None:
            self._interpod = inter_pod_affinity.pre_filter(self._incoming, self._search)
        ruling = inter_pod_affinity.filter_node(self._interpod, node)
        if not isinstance(ruling, Passed):
            return ruling
        if self._spread is None:
            self._spread = pod_topology_spread.pre_filter(self._incoming, self._search)
        return pod_topology_spread.filter_node(self._spread, node)
