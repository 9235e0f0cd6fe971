"""The pods that are on nodes, as rules between pods see them: which labels are where, and who wants to be kept apart.

Pods come and go one by one, in a time that depends on none of the others. What is asked is answered by walking over
what differs: label sets of the namespaces in question, each with its nodes; never over all pods.
Invariant: after any run of `add` and `remove` it answers as if it had been made of the pods that are left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from itertools import chain
from sys import intern
from typing import Final, NamedTuple

from msgspec import Struct, field

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.reasons import Reason
from webhook.core.scheduler.budget import Budget, OutOfSteps
from webhook.core.scheduler.state.existing_anti_affinity import ExistingAntiAffinity, ExistingTerm
from webhook.core.scheduler.state.label_selector import Scope, Selector, parse_terms
from webhook.core.scheduler.state.node_counts import NodeCounts, with_one_less, with_one_more
from webhook.core.scheduler.status import Unknown

_ANSWERS_MAX: Final = 16  # each costs half a microsecond whenever a pod comes or goes
_NAMESPACE_STEPS: Final = 10  # for `Scope.covers`
_GROUP_STEPS: Final = 12  # for one requirement, held against the keys of a group
_ENTRY_STEPS: Final = 2  # for a node of several pods with the same labels

UNKEPT_LABELS: Final = frozenset(
    {
        "kubevirt.io/created-by",
        "kubevirt.io/migrationJobUID",
        "batch.kubernetes.io/controller-uid",
        "controller-uid",
    }
)
"""UIDs: each makes a label set of its own of every pod or two, and nobody can write a selector for one in advance. One
that names such a key all the same is not decided. What pods of KubeVirt's migrations have against others is kept."""


class Presence(Enum):
    """How sure it is that a pod is on its node."""

    BOUND = "bound"
    TERMINATING = "bound, and being deleted"
    EXPECTED = "not bound: where it will probably be"


class IndexedPod(Struct, frozen=True, gc=False):
    """One pod in the index: what `add` returns, and `remove` takes."""

    labelled: _Labelled
    node: str
    existing_anti_affinity: tuple[ExistingTerm, ...]


class Found(Struct, gc=False):
    """Node -> how many of the pods that were asked for are on it.

    Attributes:
        there: bound, and not being deleted.
        terminating: bound, and being deleted.
        expected: not bound yet.
        unsure: in any of these ways, if their namespaces' labels match.
    """

    there: Counter[str] = field(default_factory=Counter)
    terminating: Counter[str] = field(default_factory=Counter)
    expected: Counter[str] = field(default_factory=Counter)
    unsure: Counter[str] = field(default_factory=Counter)

    @property
    def bound(self) -> Collection[str]:
        """The nodes of those that are bound, being deleted or not."""
        return {**self.there, **self.terminating} if self.terminating else self.there

    def part(self, presence: Presence, *, certain: bool) -> Counter[str]:
        """Where pods of this presence are counted."""
        if not certain:
            return self.unsure
        if presence is Presence.TERMINATING:
            return self.terminating
        return self.expected if presence is Presence.EXPECTED else self.there


class _Home(NamedTuple):
    """What the pods of a group have in common: namespace, presence and the keys of their labels."""

    namespace: str
    presence: Presence
    keys: tuple[str, ...]


class _Labelled(Struct, eq=False, gc=False):
    """The pods of a group that have the same labels: the values of the group's keys, and their nodes."""

    home: _Home
    values: tuple[str, ...]
    node_counts: NodeCounts


_Group = dict[tuple[str, ...], _Labelled]


class PodIndex:
    """Every pod that is on a node, or expected there."""

    def __init__(self) -> None:
        self.existing_anti_affinity = ExistingAntiAffinity()
        self.changes = 0  # so that whoever keeps an answer can tell whether it still holds
        self._namespaces: dict[str, dict[_Home, _Group]] = {}
        self._homes: dict[_Home, _Home] = {}  # each to the one that stands for its equals
        self._answers: dict[tuple[tuple[Scope, ...], Selector], Found] = {}

    def add(
        self,
        namespace: str,
        node: str,
        labels: Mapping[str, str] | None,
        anti_affinity: Sequence[PodAffinityTerm] | None = None,
        presence: Presence = Presence.BOUND,
    ) -> IndexedPod:
        """A pod is on a node, or will be; it has these required anti-affinity terms."""
        self.changes += 1
        kept = sorted((key, value) for key, value in (labels or {}).items() if key not in UNKEPT_LABELS)
        home = _Home(intern(namespace), presence, tuple(intern(key) for key, _ in kept))
        home = self._homes.setdefault(home, home)
        group = self._namespaces.setdefault(home.namespace, {}).setdefault(home, {})
        values, node = tuple(intern(value) for _, value in kept), intern(node)
        labelled = group.get(values)
        if labelled is None:
            labelled = group[values] = _Labelled(home, values, node)
        else:
            labelled.node_counts = with_one_more(labelled.node_counts, node)
        terms = parse_terms(anti_affinity, namespace) if anti_affinity else None
        self._follow(labelled, node, 1)
        expected = presence is Presence.EXPECTED
        held = tuple(self.existing_anti_affinity.add(term, node, expected=expected) for term in terms or ())
        return IndexedPod(labelled, node, held)

    def remove(self, neighbour: IndexedPod) -> None:
        """The pod is gone, or is not what it was when it was added."""
        self.changes += 1
        labelled = neighbour.labelled
        self._follow(labelled, neighbour.node, -1)
        left = with_one_less(labelled.node_counts, neighbour.node)
        if left is not None:
            labelled.node_counts = left
        else:
            self._forget(labelled)
        for repulsion in neighbour.existing_anti_affinity:
            self.existing_anti_affinity.remove(repulsion, neighbour.node)

    def _forget(self, labelled: _Labelled) -> None:
        """Nothing has these labels any more."""
        home = labelled.home
        homes = self._namespaces[home.namespace]
        del homes[home][labelled.values]
        if not homes[home]:
            del homes[home], self._homes[home]
            if not homes:
                del self._namespaces[home.namespace]

    def find(self, scopes: Sequence[Scope], selector: Selector, *, rule: str, budget: Budget) -> Found | Unknown:
        """Where the pods are that `selector` matches, in the namespaces that all `scopes` cover.

        VMs of one kind ask the same: the last answers are kept, follow the pods, and cost nothing the next time.

        Args:
            rule: whose question it is, for the reason why it can't be answered.
            budget: what it may cost: a step for each label set that is looked at, and one for each pod that matches.
        """
        if selector.nothing:
            return Found()
        asked = (tuple(scopes), selector)
        found = self._answers.pop(asked, None) or self._search(scopes, selector, rule, budget)
        if isinstance(found, Unknown):
            return found
        self._answers[asked] = found
        if len(self._answers) > _ANSWERS_MAX:
            del self._answers[next(iter(self._answers))]
        return found

    def _follow(self, labelled: _Labelled, node: str, more: int) -> None:
        """A pod has come, or is gone: so it is in the answers that are kept."""
        if not self._answers:
            return
        home = labelled.home
        labels = dict(zip(home.keys, labelled.values, strict=True))
        for (scopes, selector), found in self._answers.items():
            covered = [scope.covers(home.namespace) for scope in scopes]
            if False not in covered and selector.matches(labels):
                part = found.part(home.presence, certain=None not in covered)
                part[node] += more
                if not part[node]:
                    del part[node]

    def _search(self, scopes: Sequence[Scope], selector: Selector, rule: str, budget: Budget) -> Found | Unknown:
        for requirement in selector.requirements:
            if requirement.key in UNKEPT_LABELS:
                return Unknown(Reason.LABEL_NOT_KEPT, {"rule": rule, "key": requirement.key})
        found = Found()
        try:
            self._walk(scopes, selector, found, budget)
        except OutOfSteps:
            return Unknown(Reason.TOO_MANY_NEIGHBOURS, {"rule": rule, "most": budget.most})
        return found

    def _walk(self, scopes: Sequence[Scope], selector: Selector, found: Found, budget: Budget) -> None:
        """Count all pods that are asked for."""
        asked = [(each.key, frozenset(each.values), each.wanted) for each in selector.requirements]
        for namespace in self._namespaces_in(scopes):
            budget.take(_NAMESPACE_STEPS * len(scopes))
            covered = [scope.covers(namespace) for scope in scopes]
            if False in covered:
                continue
            for home, group in self._namespaces.get(namespace, {}).items():
                budget.take(_GROUP_STEPS * (1 + len(asked)))
                tests = _tests(asked, home.keys)
                if tests is not None:
                    _count(group, tests, found.part(home.presence, certain=None not in covered), budget)

    def _namespaces_in(self, scopes: Iterable[Scope]) -> Collection[str]:
        """No others are covered by every scope."""
        named = [set(scope.names) for scope in scopes if scope.selector.nothing]
        return set.intersection(*named) if named else self._namespaces


_Asked = tuple[str, frozenset[str], bool]  # a Requirement
_Test = tuple[int, frozenset[str], bool]


def _tests(asked: Iterable[_Asked], keys: tuple[str, ...]) -> list[_Test] | None:
    """What is left to ask of the values of these keys: place, values, whether it must be one of them. None: no use."""
    tests = []
    for key, values, wanted in asked:
        there = key in keys
        if there and values:
            tests.append((keys.index(key), values, wanted))
        elif there != wanted:
            return None
    return tests


def _count(group: _Group, tests: Iterable[_Test], into: Counter[str], budget: Budget) -> None:
    """Count those that pass every test, each on its nodes."""
    rows: Collection[_Labelled] = group.values()
    for place, values, wanted in tests:
        budget.take(len(rows))
        rows = [row for row in rows if (row.values[place] in values) is wanted]
    budget.take(len(rows))
    ones = [row.node_counts for row in rows if isinstance(row.node_counts, str)]
    into.update(ones)
    if len(ones) < len(rows):
        some = [row.node_counts for row in rows if not isinstance(row.node_counts, str)]
        budget.take(_ENTRY_STEPS * sum(map(len, some)))
        into.update(chain.from_iterable(node_counts for node_counts in some if isinstance(node_counts, tuple)))
        for node_counts in some:
            if isinstance(node_counts, dict):
                into.update(node_counts)
