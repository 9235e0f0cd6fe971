"""TopologyStatuses: what required anti-affinity says of a node, by the values of the node's topology labels.

It is filled once for the incoming pod. The status of one node then takes one look-up for each label.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct, field

from webhook.core.reasons import Reason
from webhook.core.scheduler.matching.label_selector import Term
from webhook.core.scheduler.status import PASSED, Rejected, Status, StatusTemplate, Unknown
from webhook.core.scheduler.topology.topology_lookup import TopologyLookup

_LABEL_STEPS: Final = 250  # each node of a short list looks the label up, too

_Entry = tuple[bool, int, StatusTemplate]
"""Entries sort by importance: a Rejected comes before an Unknown, and what was added first before the rest."""


class TermPods(Struct, frozen=True):
    """The nodes of the pods that a term is about.

    Attributes:
        bound: of those that are bound.
        expected: of those that are not bound yet.
        unsure: of those that the term may not be about, because that depends on labels of their namespaces.
    """

    bound: Collection[str] = ()
    expected: Collection[str] = ()
    unsure: Collection[str] = ()


class _Label(Struct):
    """The statuses of nodes by their value of one label, and the status of every node that has the label."""

    rejected: dict[str, _Entry] = field(default_factory=dict)
    unknown: dict[str, _Entry] = field(default_factory=dict)
    any_value: _Entry | None = None


class TopologyStatuses:
    """The statuses of all nodes. If several apply to a node, the first Rejected counts, else the first Unknown."""

    def __init__(self, lookup: TopologyLookup) -> None:
        self._lookup = lookup
        self._labels: dict[str, _Label] = {}
        self._everywhere: _Entry | None = None
        self._count = 0

    def add_term(self, term: Term, pods: TermPods, rule: str, cause: Reason) -> None:
        """Note that the incoming pod may not be in the topology of any of these pods, which `term` is about.

        Raises:
            OutOfSteps: the pods are on too many nodes, or there are too many terms.
        """
        key = term.topology_key
        bound = self._lookup.topology(pods.bound, key)
        self._add(key, bound.values, StatusTemplate(Rejected, cause, {"key": key, "pods": term}))
        for nodes, unknown in (
            (pods.unsure, Reason.NAMESPACES_UNKNOWN),
            (pods.expected, Reason.NEIGHBOUR_EXPECTED),
        ):
            topology, template = self._lookup.topology(nodes, key), StatusTemplate(Unknown, unknown, {"rule": rule})
            self._add(key, topology.values, template)
            if topology.unlisted is not None:
                self.add_for_label(key, template)
        if bound.unlisted is not None:
            names = {"rule": rule, "other": bound.unlisted}
            self.add_for_label(key, StatusTemplate(Unknown, Reason.NEIGHBOUR_ON_UNKNOWN_NODE, names))

    def add_for_label(self, key: str, template: StatusTemplate) -> None:
        """Note a status of every node that has this label."""
        label = self._label(key)
        label.any_value = label.any_value or self._entry(template)

    def add_for_all(self, template: StatusTemplate) -> None:
        """Note a status of every node."""
        self._everywhere = self._everywhere or self._entry(template)

    def status(self, node: str, labels: Mapping[str, str]) -> Status:
        """Return whether the pod may join the pods on the node and in its topologies; `labels` are the node's."""
        entries = [self._everywhere]
        for key, label in self._labels.items():
            value = labels.get(key)
            if value is not None:
                entries += label.rejected.get(value), label.unknown.get(value), label.any_value
        first = min(filter(None, entries), default=None)
        return PASSED if first is None else first[2].for_node(node)

    def _add(self, key: str, values: Collection[str], template: StatusTemplate) -> None:
        if values:
            label, entry = self._label(key), self._entry(template)
            by_value = label.rejected if template.kind is Rejected else label.unknown
            if by_value:
                for value in values:
                    by_value.setdefault(value, entry)
            else:
                by_value.update(dict.fromkeys(values, entry))

    def _label(self, key: str) -> _Label:
        if key not in self._labels:
            self._lookup.budget.take(_LABEL_STEPS)
            self._labels[key] = _Label()
        return self._labels[key]

    def _entry(self, template: StatusTemplate) -> _Entry:
        self._count += 1
        return template.kind is Unknown, self._count, template
