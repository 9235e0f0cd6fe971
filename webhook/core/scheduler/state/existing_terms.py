"""ExistingTerms: the required anti-affinity of pods on nodes over other topologies than kubernetes.io/hostname.

Such a term can reject the incoming pod on nodes where its own pod is not. Each different term is stored once, under the
namespaces that it is about, with the nodes of the pods that have it.
Invariant: after any calls of `add` and `remove` there are only the terms of the pods that are left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from webhook.core.scheduler.matching.label_selector import Term

Place = tuple[str, bool]
"""A node, and whether a pod is bound to it. Otherwise the pod is expected there."""

_ANY: Final = ""  # stands for any namespace, because no namespace has an empty name


class ExistingTerms:
    """All different terms, each with the number of pods at each place that have it."""

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[Term, dict[Place, int]]] = {}

    def add(self, terms: Iterable[Term], place: Place) -> None:
        """Count one pod more that has these terms."""
        for namespace, term in _by_namespace(terms):
            places = self._namespaces.setdefault(namespace, {}).setdefault(term, {})
            places[place] = places.get(place, 0) + 1

    def remove(self, terms: Iterable[Term], place: Place) -> None:
        """Count one pod less that has these terms."""
        for namespace, term in _by_namespace(terms):
            found = self._namespaces[namespace]
            places = found[term]
            places[place] -= 1
            if not places[place]:
                del places[place]
            if not places:
                del found[term]
            if not found:
                del self._namespaces[namespace]

    def count(self, namespace: str) -> int:
        """Return how many terms can be about pods of this namespace."""
        return len(self._namespaces.get(namespace, ())) + len(self._namespaces.get(_ANY, ()))

    def about(self, namespace: str, labels: Mapping[str, str]) -> Iterator[tuple[Term, Collection[Place]]]:
        """Return the terms that are about such a pod, or can be, by the labels of its namespace; and their places."""
        for name in (namespace, _ANY):
            for term, places in self._namespaces.get(name, {}).items():
                if term.matches(namespace, labels) is not False:
                    yield term, places


def _by_namespace(terms: Iterable[Term]) -> Iterator[tuple[str, Term]]:
    """Return each term with each namespace that it is about."""
    for term in terms:
        for namespace in term.scope.names if term.scope.others is False else (_ANY,):
            yield namespace, term
