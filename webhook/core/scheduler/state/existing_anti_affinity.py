"""The required anti-affinity of pods that are on nodes already: it refuses a newcomer, as their own rules refuse them.

Each distinct term is kept once, with how many pods on which nodes have it. A newcomer is not compared with all of them:
a term is filed under namespace, label and value, and only the files of the newcomer's own are opened. (KubeVirt gives
every migration's target a term of its own, so there may be one for each VM.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from webhook.core.scheduler.state.label_selector import Term
from webhook.core.scheduler.state.node_counts import NodeCounts, with_one_less, with_one_more

_File = tuple[str, str, str]
_ANY: Final = ""  # what a term does not ask for: no namespace and no label is called so


class ExistingTerm(Struct, eq=False, gc=False):
    """A term that pods on nodes have. `expected`: those pods are not bound yet."""

    term: Term
    expected: bool
    filed: tuple[_File, ...]
    node_counts: NodeCounts | None = None


class ExistingAntiAffinity:
    """Every distinct required anti-affinity term there is."""

    def __init__(self) -> None:
        self._all: dict[tuple[Term, bool], ExistingTerm] = {}
        self._files: dict[_File, list[ExistingTerm]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, term: Term, node: str, *, expected: bool) -> ExistingTerm:
        """One more pod on this node has the term. Returns what `remove` takes."""
        held = self._all.get((term, expected))
        if held is None:
            held = self._all[term, expected] = ExistingTerm(term, expected, self._where_to_file(term))
            for file in held.filed:
                self._files.setdefault(file, []).append(held)
        held.node_counts = with_one_more(held.node_counts, node)
        return held

    def remove(self, held: ExistingTerm, node: str) -> None:
        """One pod less on this node has the term."""
        assert held.node_counts is not None  # noqa: S101 - for the type checker: whoever removes has added
        held.node_counts = with_one_less(held.node_counts, node)
        if held.node_counts is None:
            del self._all[held.term, held.expected]
            for file in held.filed:
                self._files[file].remove(held)
                if not self._files[file]:
                    del self._files[file]

    def filed(self, namespace: str, labels: Mapping[str, str]) -> int:
        """How many terms `against` holds against such a pod."""
        return self._filed_there(tuple(self._about(namespace, labels)))

    def against(self, namespace: str, labels: Mapping[str, str]) -> Iterator[tuple[ExistingTerm, bool]]:
        """The terms that are about such a pod; False for those that are only if its namespace's labels match."""
        for file in self._about(namespace, labels):
            for held in self._files.get(file, ()):
                matches = held.term.matches(namespace, labels)
                if matches is not False:
                    yield held, matches is True

    def _about(self, namespace: str, labels: Mapping[str, str]) -> Iterator[_File]:
        """Where terms about such a pod are filed."""
        for key, value in (*labels.items(), (_ANY, _ANY)):
            yield namespace, key, value
            yield _ANY, key, value

    def _where_to_file(self, term: Term) -> tuple[_File, ...]:
        """Under every value of one requirement: the one whose files have the fewest terms by now."""
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
