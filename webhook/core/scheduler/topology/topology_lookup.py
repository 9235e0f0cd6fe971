"""TopologyLookup: which pods a rule of the incoming pod is about, and which topology labels their nodes have.

Each plugin asks it; all answers together cost one budget.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from webhook.core.reasons import Reason
from webhook.core.scheduler.budget import Budget
from webhook.core.scheduler.matching.label_selector import Scope, Selector
from webhook.core.scheduler.state.found_pods import Found
from webhook.core.scheduler.state.node_labels import COLUMN_STEPS
from webhook.core.scheduler.state.snapshot import Snapshot
from webhook.core.scheduler.status import Unknown

_VALUE_STEPS: Final = 1  # of a column
_FEW_OF: Final = 3  # to build a column takes longer than to read a third of the nodes, and the column stays for others


class Topology(Struct, frozen=True):
    """The values that nodes have of a label. `unlisted` is the name of one that the snapshot does not have, if any."""

    values: Collection[str] = ()
    unlisted: str | None = None


class TopologyLookup:
    """The nodes and pods of one snapshot. Use it within one turn of the event loop: later they can be others."""

    def __init__(self, snapshot: Snapshot, budget: Budget) -> None:
        self.nodes = snapshot.nodes
        self.pod_index = snapshot.pod_index
        self.budget = budget
        self._labels = snapshot.node_labels
        self._changes = self.pod_index.changes

    def is_outdated(self) -> bool:
        """Whether a pod was added or removed since this object was created."""
        return self.pod_index.changes != self._changes

    def find(self, scopes: Sequence[Scope], selector: Selector, *, rule: str) -> Found | Unknown:
        """Return where the pods are that `selector` matches (`PodIndex.find`)."""
        return self.pod_index.find(scopes, selector, rule=rule, budget=self.budget)

    def gave_up(self, rule: str) -> Unknown:
        """Return the status for a rule that would need more steps than the budget has."""
        return Unknown(Reason.TOO_MANY_NEIGHBOURS, {"rule": rule, "most": self.budget.most})

    def values(self, key: str) -> Mapping[str, str]:
        """Return the value of a label by node (`NodeLabels.of`)."""
        return self._labels.of(key, self.nodes, self.budget)

    def combinations(self, keys: tuple[str, ...]) -> Mapping[str, object]:
        """Return an object by node that is equal for nodes with equal values (`NodeLabels.combinations`)."""
        return self._labels.combinations(keys, self.nodes, self.budget)

    def _read(self, names: Collection[str], key: str) -> Iterable[str | None]:
        """Read few nodes one by one, so that the work grows with the pod's rules and not with the cluster."""
        if self._labels.has(key) or len(names) > len(self.nodes) // _FEW_OF:
            values = self.values(key)
            self.budget.take(_VALUE_STEPS * len(names))
            return map(values.get, names)
        self.budget.take(COLUMN_STEPS * len(names))
        read = (self.nodes[name].metadata.labels if name in self.nodes else None for name in names)
        return ((labels or {}).get(key) for labels in read)

    def topology(self, names: Collection[str], key: str) -> Topology:
        """Return the values that these nodes have of the label `key`.

        Raises:
            OutOfSteps: there are too many nodes.
        """
        if not names:
            return Topology()
        values: set[Any] = set(self._read(names, key))
        if None not in values:
            return Topology(values)
        return Topology(values - {None}, next((name for name in names if name not in self.nodes), None))
