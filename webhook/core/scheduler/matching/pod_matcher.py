"""PodMatcher: which pods the terms of one pod are about, for many pods that have mostly the same label keys."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from webhook.core.scheduler.matching.label_selector import Term, conjunction

_Test = tuple[int, Collection[str], bool]  # index of the key, values of a requirement, whether they are wanted


class PodGroup(Struct, frozen=True, eq=False, weakref=True):
    """The pods of one namespace whose labels have the same keys. `SchedulerCache` has one object for all of them."""

    namespace: str
    keys: tuple[str, ...]


class PodMatcher:
    """Compares pods with terms, which must all be about a pod. What a group decides is found once for the group."""

    def __init__(self, terms: Iterable[Term]) -> None:
        terms = tuple(terms)
        self.selector = conjunction(term.selector for term in terms)
        self._scopes = [term.scope for term in terms]
        self._tests = [(each.key, frozenset(each.values), each.wanted) for each in self.selector.requirements]
        self._groups: dict[PodGroup, tuple[bool | None, Sequence[_Test]]] = {}

    def matches(self, group: PodGroup, values: Sequence[str]) -> bool | None:
        """Whether the terms are about a pod of the group with these values of its keys.

        None if that depends on labels of the pod's namespace.
        """
        known = self._groups.get(group)
        if known is None:
            known = self._groups[group] = self._of_group(group)
        certain, tests = known
        for place, wanted, is_wanted in tests:
            if (values[place] in wanted) is not is_wanted:
                return False
        return certain

    def _of_group(self, group: PodGroup) -> tuple[bool | None, Sequence[_Test]]:
        """Return the answer for a pod that passes the tests, and the tests."""
        covered = {scope.covers(group.namespace) for scope in self._scopes}
        if self.selector.nothing or False in covered:
            return False, ()
        tests = []
        for key, values, wanted in self._tests:
            if key in group.keys and values:
                tests.append((group.keys.index(key), values, wanted))
            elif (key in group.keys) != wanted:
                return False, ()
        return (None if None in covered else True), tests
