"""ExistingTerms: the required anti-affinity of pods on nodes over other topologies than kubernetes.io/hostname.

Such a term can reject the incoming pod on nodes where its own pod is not. Each different term is stored once, under the
namespaces that it is about.
Invariant: after any calls of `add` and `remove` there are only the terms of the pods that are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from webhook.core.scheduler.matching.label_selector import Term

_ANY: Final = ""  # stands for any namespace, because no namespace has an empty name


class ExistingTerms:
    """All different terms, each with the number of pods that have it."""

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[Term, int]] = {}

    def add(self, terms: Iterable[Term]) -> None:
        """Count one pod more that has these terms."""
        for namespace, term in _by_namespace(terms):
            counts = self._namespaces.setdefault(namespace, {})
            counts[term] = counts.get(term, 0) + 1

    def remove(self, terms: Iterable[Term]) -> None:
        """Count one pod less that has these terms."""
        for namespace, term in _by_namespace(terms):
            counts = self._namespaces[namespace]
            counts[term] -= 1
            if not counts[term]:
                del counts[term]
                if not counts:
                    del self._namespaces[namespace]

    def count(self, namespace: str) -> int:
        """Return how many terms can be about pods of this namespace."""
        return len(self._namespaces.get(namespace, ())) + len(self._namespaces.get(_ANY, ()))

    def about(self, namespace: str, labels: Mapping[str, str]) -> Iterator[Term]:
        """Return the terms that are about such a pod, or can be, by the labels of its namespace."""
        for name in (namespace, _ANY):
            for term in self._namespaces.get(name, ()):
                if term.matches(namespace, labels) is not False:
                    yield term


def _by_namespace(terms: Iterable[Term]) -> Iterator[tuple[str, Term]]:
    """Return each term with each namespace that it is about."""
    for term in terms:
        for namespace in term.scope.names if term.scope.others is False else (_ANY,):
            yield namespace, term
