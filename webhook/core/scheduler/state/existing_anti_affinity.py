"""ExistingAntiAffinity: the required anti-affinity of pods on nodes. Their terms reject the incoming pod as its own do.

Each different term is stored once, with the number of pods that have it by node. The incoming pod is not compared
with all terms. A term is filed under namespace, label and value, and only the terms under the incoming pod's own
namespace and labels are compared. (KubeVirt gives each migration's target pod a term of its own, so that there can be
one for each VM.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from webhook.core.scheduler.matching.label_selector import Term
from webhook.core.scheduler.state.node_counts import NodeCounts, with_one_less, with_one_more

_File = tuple[str, str, str]
_ANY: Final = ""  # stands for any namespace, or for no label: neither has an empty name


class ExistingTerm(Struct, eq=False, gc=False):
    """A term of pods on nodes. `expected`: those pods are not bound yet. `filed`: where the term is filed."""

    term: Term
    expected: bool
    filed: tuple[_File, ...]
    node_counts: NodeCounts | None = None


class ExistingAntiAffinity:
    """All different required anti-affinity terms."""

    def __init__(self) -> None:
        self._all: dict[tuple[Term, bool], ExistingTerm] = {}
        self._files: dict[_File, list[ExistingTerm]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, term: Term, node: str, *, expected: bool) -> ExistingTerm:
        """Count one more pod on this node that has the term. Return what `remove` takes."""
        held = self._all.get((term, expected))
        if held is None:
            held = self._all[term, expected] = ExistingTerm(term, expected, self._where_to_file(term))
            for file in held.filed:
                self._files.setdefault(file, []).append(held)
        held.node_counts = with_one_more(held.node_counts, node)
        return held

    def remove(self, held: ExistingTerm, node: str) -> None:
        """Count one pod less on this node that has the term."""
        assert held.node_counts is not None  # noqa: S101 - for the type checker: the caller has added before
        held.node_counts = with_one_less(held.node_counts, node)
        if held.node_counts is None:
            del self._all[held.term, held.expected]
            for file in held.filed:
                self._files[file].remove(held)
                if not self._files[file]:
                    del self._files[file]

    def filed(self, namespace: str, labels: Mapping[str, str]) -> int:
        """Return how many terms `against` compares with a pod of this namespace and these labels."""
        return self._filed_there(tuple(self._about(namespace, labels)))

    def against(self, namespace: str, labels: Mapping[str, str]) -> Iterator[tuple[ExistingTerm, bool]]:
        """Return the terms about such a pod; with False if that depends on labels of the pod's namespace."""
        for file in self._about(namespace, labels):
            for held in self._files.get(file, ()):
                matches = held.term.matches(namespace, labels)
                if matches is not False:
                    yield held, matches is True

    def _about(self, namespace: str, labels: Mapping[str, str]) -> Iterator[_File]:
        """Return where terms about such a pod are filed."""
        for key, value in (*labels.items(), (_ANY, _ANY)):
            yield namespace, key, value
            yield _ANY, key, value

    def _where_to_file(self, term: Term) -> tuple[_File, ...]:
        """Return the places for every value of one requirement: the requirement under which the fewest terms are
        filed.
        """
        namespaces = term.scope.names if term.scope.selector.nothing else (_ANY,)
        choices = [
            tuple((namespace, requirement.key, value) for namespace in namespaces for value in requirement.values)
            for requirement in term.selector.requirements
            if requirement.wanted and requirement.values
        ]
        rest = tuple((namespace, _ANY, _ANY) for namespace in namespaces)
        return min(choices, key=self._filed_there, default=rest)

    def _filed_there(self, files: tuple[_File, ...]) -> int:
        return sum(len(self._files.get(file, ())) for file in files)
