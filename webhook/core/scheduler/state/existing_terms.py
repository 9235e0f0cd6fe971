"""ExistingTerms: the required anti-affinity of the pods that count on nodes.

Each different term is stored once for each namespace that it is about, with the nodes of the pods that have it. Most
terms ask for one value of a label. Such a term is found by that label: a lookup does not grow with the cluster's terms.
Invariant: after any calls of `count` there are only the terms of the pods that are left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from webhook.core.scheduler.matching.label_selector import Term

_Key = tuple[str, str, str]  # namespace, key and value of a label

_ANY: Final = ""  # stands for any namespace, because no namespace has an empty name
_NO_LABEL: Final = ("", "")


class ExistingTerms:
    """All different terms, each with the number of pods on each node that have it."""

    def __init__(self) -> None:
        self._terms: dict[_Key, dict[Term, dict[str, int]]] = {}

    def count(self, terms: Iterable[Term], node: str, change: int) -> None:
        """Count pods on a node that have these terms: one more (`change` 1), or one less (-1)."""
        for key, term in _by_key(terms):
            found = self._terms.setdefault(key, {})
            nodes = found.setdefault(term, {})
            nodes[node] = nodes.get(node, 0) + change
            if not nodes[node]:
                del nodes[node]
            if not nodes:
                del found[term]
            if not found:
                del self._terms[key]

    def near(self, namespace: str, labels: Mapping[str, str]) -> Iterator[tuple[Term, Collection[str]]]:
        """Yield every term that is about such a pod with its nodes, and some that are not."""
        for name in (namespace, _ANY):
            for label in (_NO_LABEL, *labels.items()):
                yield from self._terms.get((name, *label), {}).items()


def _by_key(terms: Iterable[Term]) -> Iterator[tuple[_Key, Term]]:
    for term in terms:
        asked = (each for each in term.selector.requirements if each.wanted and len(each.values) == 1)
        label = next(((each.key, each.values[0]) for each in asked), _NO_LABEL)
        for namespace in term.namespaces or (_ANY,):
            yield (namespace, *label), term
