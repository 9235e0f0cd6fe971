"""Search: what one pod's rules look for among the pods and nodes of a cluster, each once, within one budget."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from webhook.core.budget import Budget
from webhook.core.neighbours import Found, Neighbours
from webhook.core.node_labels import NodeLabels
from webhook.core.objects import Node
from webhook.core.reasons import Reason
from webhook.core.rulings import Undecided
from webhook.core.selectors import Scope, Selector

_NODE_STEPS: Final = 1


class Topology(Struct, frozen=True):
    """The values that nodes have of a label; `stranger` is one of the nodes that are not known, if there is any."""

    values: Collection[str] = ()
    stranger: str | None = None


class Search:
    """To be used in one turn of the event loop: pods and nodes may be others in the next."""

    def __init__(self, nodes: Mapping[str, Node], labels: NodeLabels, neighbours: Neighbours, budget: Budget) -> None:
        """Args: `nodes`: every node of the cluster by its name; `labels`: theirs."""
        self.nodes = nodes
        self.neighbours = neighbours
        self.budget = budget
        self._labels = labels
        self._changes = neighbours.changes

    def is_of(self, nodes: Mapping[str, Node], neighbours: Neighbours) -> bool:
        """Whether it has looked at these, and pods are as they were."""
        return nodes is self.nodes and neighbours is self.neighbours and neighbours.changes == self._changes

    def find(self, scopes: Sequence[Scope], selector: Selector, *, rule: str) -> Found | Undecided:
        """As `Neighbours.find`."""
        return self.neighbours.find(scopes, selector, rule=rule, budget=self.budget)

    def gave_up(self, rule: str) -> Undecided:
        """That there are more pods or nodes than may be looked at."""
        return Undecided(Reason.TOO_MANY_NEIGHBOURS, {"rule": rule, "most": self.budget.most})

    def values(self, key: str) -> Mapping[str, str]:
        """As `NodeLabels.of`."""
        return self._labels.of(key, self.nodes, self.budget)

    def combinations(self, keys: tuple[str, ...]) -> Mapping[str, object]:
        """As `NodeLabels.combinations`."""
        return self._labels.combinations(keys, self.nodes, self.budget)

    def topology(self, names: Collection[str], key: str) -> Topology:
        """What these nodes have of a label.

        Raises:
            OutOfSteps: they are too many.
        """
        if not names:
            return Topology()
        known = self.values(key)
        self.budget.take(_NODE_STEPS * len(names))
        values: set[Any] = set(map(known.get, names))
        if None not in values:
            return Topology(values)
        return Topology(values - {None}, next((name for name in names if name not in self.nodes), None))
