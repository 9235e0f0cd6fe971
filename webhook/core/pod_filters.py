"""PodFilters: InterPodAffinity and PodTopologySpread for one pod: they look at other pods once, at nodes one by one.

As kube-scheduler's plugins do between PreFilter and Filter. Nothing is looked for before the first node is judged.
"""

from __future__ import annotations

from webhook.core import interpod, spread
from webhook.core.api.node import Node
from webhook.core.budget import Budget
from webhook.core.crowd import Crowd
from webhook.core.newcomer import Newcomer
from webhook.core.rulings import Allowed, Ruling
from webhook.core.search import Search


class PodFilters:
    """What is found holds for as long as pods and nodes are the same: to be used in one turn of the event loop."""

    def __init__(self, incoming: Newcomer, budget: Budget) -> None:
        self._incoming, self._budget = incoming, budget
        self._search: Search | None = None
        self._interpod: interpod.PreFilterState | None = None
        self._spread: spread.PreFilterState | None = None

    def ruling(self, node: Node, crowd: Crowd) -> Ruling:
        """Whether both admit `node`, one of the crowd's."""
        nodes, neighbours = crowd.nodes, crowd.neighbours
        if self._search is None or not self._search.is_of(nodes, neighbours):
            self._search = Search(nodes, crowd.node_labels, neighbours, self._budget)
            self._interpod = self._spread = None
        if self._interpod is None:
            self._interpod = interpod.pre_filter(self._incoming, self._search)
        ruling = interpod.filter_node(self._interpod, node)
        if not isinstance(ruling, Allowed):
            return ruling
        if self._spread is None:
            self._spread = spread.pre_filter(self._incoming, self._search)
        return spread.filter_node(self._spread, node)
