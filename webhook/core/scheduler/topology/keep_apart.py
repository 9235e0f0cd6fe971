"""KeepApart: the pods that one pod must not join, by the topology labels of the nodes that they are on.

What is put in is found once for a pod; what is said of a node then takes a look-up for each of these labels.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct, field

from webhook.core.reasons import Reason
from webhook.core.scheduler.state.label_selector import Term
from webhook.core.scheduler.status import PASSED, Rejected, Status, Told, Unknown
from webhook.core.scheduler.topology.search import Search

_LABEL_STEPS: Final = 250  # it is looked up for each node of a short list, too

_Entry = tuple[bool, int, Told]
"""A refusal comes before what is not certain, and what was put in first before the rest."""


class Places(Struct, frozen=True):
    """The nodes of pods: of those that are bound, those that are expected, and those that may not be meant at all."""

    bound: Collection[str] = ()
    expected: Collection[str] = ()
    unsure: Collection[str] = ()


class _Label(Struct):
    """What is to be said of nodes by their value of one label, and of every node that has it."""

    refused: dict[str, _Entry] = field(default_factory=dict)
    undecided: dict[str, _Entry] = field(default_factory=dict)
    any_value: _Entry | None = None


class KeepApart:
    """What is to be said of nodes; of several things that are true of one, the first refusal, or else the first."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._labels: dict[str, _Label] = {}
        self._everywhere: _Entry | None = None
        self._count = 0

    def put(self, term: Term, places: Places, rule: str, cause: Reason) -> None:
        """None of these pods, which the term is about, may be in the same topology.

        Raises:
            OutOfSteps: they are on too many nodes, or there are too many terms.
        """
        key = term.topology_key
        bound = self._search.topology(places.bound, key)
        self._put(key, bound.values, Told(Rejected, cause, {"key": key, "pods": term}))
        for nodes, staleness in (
            (places.unsure, Reason.NAMESPACES_UNKNOWN),
            (places.expected, Reason.NEIGHBOUR_EXPECTED),
        ):
            maybe, told = self._search.topology(nodes, key), Told(Unknown, staleness, {"rule": rule})
            self._put(key, maybe.values, told)
            if maybe.stranger is not None:
                self.put_on_all(key, told)
        if bound.stranger is not None:
            names = {"rule": rule, "other": bound.stranger}
            self.put_on_all(key, Told(Unknown, Reason.NEIGHBOUR_ON_UNKNOWN_NODE, names))

    def put_on_all(self, key: str, told: Told) -> None:
        """Of every node that has this label."""
        label = self._label(key)
        label.any_value = label.any_value or self._entry(told)

    def put_everywhere(self, told: Told) -> None:
        """Of every node."""
        self._everywhere = self._everywhere or self._entry(told)

    def ruling(self, node: str, labels: Mapping[str, str]) -> Status:
        """Whether the pod may join those that are on and around a node."""
        said = [self._everywhere]
        for key, label in self._labels.items():
            value = labels.get(key)
            if value is not None:
                said += label.refused.get(value), label.undecided.get(value), label.any_value
        first = min(filter(None, said), default=None)
        return PASSED if first is None else first[2].of(node)

    def _put(self, key: str, values: Collection[str], told: Told) -> None:
        if values:
            label, entry = self._label(key), self._entry(told)
            by_value = label.refused if told.kind is Rejected else label.undecided
            if by_value:
                for value in values:
                    by_value.setdefault(value, entry)
            else:
                by_value.update(dict.fromkeys(values, entry))

    def _label(self, key: str) -> _Label:
        if key not in self._labels:
            self._search.budget.take(_LABEL_STEPS)
            self._labels[key] = _Label()
        return self._labels[key]

    def _entry(self, told: Told) -> _Entry:
        self._count += 1
        return told.kind is Unknown, self._count, told
