"""Search: what one pod's rules look for among the pods and nodes of a cluster, each once, within one budget."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from webhook.core.api.node import Node
from webhook.core.reasons import Reason
from webhook.core.scheduler.budget import Budget
from webhook.core.scheduler.state.label_selector import Scope, Selector
from webhook.core.scheduler.state.pod_index import Found, PodIndex
from webhook.core.scheduler.status import Unknown
from webhook.core.scheduler.topology.node_labels import COLUMN_STEPS, NodeLabels

_VALUE_STEPS: Final = 1  # of a column
_FEW_OF: Final = 3  # a column takes longer than a third of the nodes, and is there for others then


class Topology(Struct, frozen=True):
    """The values that nodes have of a label; `stranger` is one of the nodes that are not known, if there is any."""

    values: Collection[str] = ()
    stranger: str | None = None


class Search:
    """To be used in one turn of the event loop: pods and nodes may be others in the next."""

    def __init__(self, nodes: Mapping[str, Node], labels: NodeLabels, pod_index: PodIndex, budget: Budget) -> None:
        """Args: `nodes`: every node of the cluster by its name; `labels`: theirs."""
        self.nodes = nodes
        self.pod_index = pod_index
        self.budget = budget
        self._labels = labels
        self._changes = pod_index.changes

    def is_of(self, nodes: Mapping[str, Node], pod_index: PodIndex) -> bool:
        """Whether it has looked at these, and pods are as they were."""
        return nodes is self.nodes and pod_index is self.pod_index and pod_index.changes == self._changes

    def find(self, scopes: Sequence[Scope], selector: Selector, *, rule: str) -> Found | Unknown:
        """As `PodIndex.find`."""
        return self.pod_index.find(scopes, selector, rule=rule, budget=self.budget)

    def gave_up(self, rule: str) -> Unknown:
        """That there are more pods or nodes than may be looked at."""
        return Unknown(Reason.TOO_MANY_NEIGHBOURS, {"rule": rule, "most": self.budget.most})

    def values(self, key: str) -> Mapping[str, str]:
        """As `NodeLabels.of`."""
        return self._labels.of(key, self.nodes, self.budget)

    def combinations(self, keys: tuple[str, ...]) -> Mapping[str, object]:
        """As `NodeLabels.combinations`."""
        return self._labels.combinations(keys, self.nodes, self.budget)

    def _read(self, names: Collection[str], key: str) -> Iterable[str | None]:
        """The values of nodes. A few are read as they are: the work is to grow with the pod, not with the cluster."""
        if self._labels.has(key) or len(names) > len(self.nodes) // _FEW_OF:
            values = self.values(key)
            self.budget.take(_VALUE_STEPS * len(names))
            return map(values.get, names)
        self.budget.take(COLUMN_STEPS * len(names))
        read = (self.nodes[name].metadata.labels if name in self.nodes else None for name in names)
        return ((labels or {}).get(key) for labels in read)

    def topology(self, names: Collection[str], key: str) -> Topology:
        """What these nodes have of a label.

        Raises:
            OutOfSteps: they are too many.
        """
        if not names:
            return Topology()
        values: set[Any] = set(self._read(names, key))
        if None not in values:
            return Topology(values)
        return Topology(values - {None}, next((name for name in names if name not in self.nodes), None))
