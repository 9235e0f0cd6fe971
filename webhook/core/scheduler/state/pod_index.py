"""PodIndex: the pods on nodes as the rules between pods see them: their labels by node, and their anti-affinity terms.

To add or remove a pod takes a time that does not depend on the other pods. A search walks over the different label sets
of the namespaces in question, each with its nodes, and never over all pods.
Invariant: after any calls of `add` and `remove` the index answers as if it had only the pods that are left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from sys import intern
from typing import Final, NamedTuple

from msgspec import Struct

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.reasons import Reason
from webhook.core.scheduler.budget import Budget, OutOfSteps
from webhook.core.scheduler.matching.label_selector import Scope, Selector, parse_terms
from webhook.core.scheduler.state.existing_anti_affinity import ExistingAntiAffinity, ExistingTerm
from webhook.core.scheduler.state.found_pods import Found
from webhook.core.scheduler.state.node_counts import NodeCounts, with_one_less, with_one_more
from webhook.core.scheduler.state.pod_info import Presence
from webhook.core.scheduler.status import Unknown

_ANSWERS_MAX: Final = 16  # each costs 0.5 us whenever a pod is added or removed
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
"""Labels whose values are UIDs: with them nearly every pod would have a label set of its own. No user can write a
selector for a UID in advance. For a selector that still names such a key the answer is Unknown. The anti-affinity terms
of KubeVirt's migration pods name such keys, and are stored."""


class IndexedPod(Struct, frozen=True, gc=False):
    """One pod in the index: `add` returns it, and `remove` takes it."""

    labelled: _Labelled
    node: str
    existing_anti_affinity: tuple[ExistingTerm, ...]


class _Home(NamedTuple):
    """What the pods of one group have in common: namespace, presence and the keys of their labels."""

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
    """Every pod that is bound to a node or expected there. `changes` counts the calls of `add` and `remove`."""

    def __init__(self) -> None:
        self.existing_anti_affinity = ExistingAntiAffinity()
        self.changes = 0
        self._namespaces: dict[str, dict[_Home, _Group]] = {}
        self._homes: dict[_Home, _Home] = {}  # equal homes -> the one object that is stored for them
        self._answers: dict[tuple[tuple[Scope, ...], Selector], Found] = {}

    def add(
        self,
        namespace: str,
        node: str,
        labels: Mapping[str, str] | None,
        anti_affinity: Sequence[PodAffinityTerm] | None = None,
        presence: Presence = Presence.BOUND,
    ) -> IndexedPod:
        """Add a pod on a node, with its required anti-affinity terms. Return what `remove` takes."""
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

    def remove(self, indexed_pod: IndexedPod) -> None:
        """Remove a pod, because it is gone or has changed."""
        self.changes += 1
        labelled = indexed_pod.labelled
        self._follow(labelled, indexed_pod.node, -1)
        left = with_one_less(labelled.node_counts, indexed_pod.node)
        if left is not None:
            labelled.node_counts = left
        else:
            self._forget(labelled)
        for existing_term in indexed_pod.existing_anti_affinity:
            self.existing_anti_affinity.remove(existing_term, indexed_pod.node)

    def _forget(self, labelled: _Labelled) -> None:
        """Remove a label set that no pod has any more."""
        home = labelled.home
        homes = self._namespaces[home.namespace]
        del homes[home][labelled.values]
        if not homes[home]:
            del homes[home], self._homes[home]
            if not homes:
                del self._namespaces[home.namespace]

    def find(self, scopes: Sequence[Scope], selector: Selector, *, rule: str, budget: Budget) -> Found | Unknown:
        """Return where the pods are that `selector` matches, in the namespaces that all `scopes` cover.

        VMs of one kind have the same rules. Therefore the last answers are stored, each change of a pod changes them,
        and they cost nothing the next time.

        Args:
            scopes: the namespaces of each term.
            selector: what all terms match.
            rule: the name of the rule that asks, for the sentence of an Unknown.
            budget: pays a step for each label set that is compared, and one for each pod that matches.
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
        """Change the stored answers by one pod that was added (`more` 1) or removed (-1)."""
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
        """Count all pods that match into `found`."""
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
        """Return the namespaces that every scope can cover."""
        named = [set(scope.names) for scope in scopes if scope.selector.nothing]
        return set.intersection(*named) if named else self._namespaces


_Asked = tuple[str, frozenset[str], bool]  # a Requirement
_Test = tuple[int, frozenset[str], bool]


def _tests(asked: Iterable[_Asked], keys: tuple[str, ...]) -> list[_Test] | None:
    """Return what to compare with the values of these keys: (index of the key, values, wanted); None if none can
    match.
    """
    tests = []
    for key, values, wanted in asked:
        exists = key in keys
        if exists and values:
            tests.append((keys.index(key), values, wanted))
        elif exists != wanted:
            return None
    return tests


def _count(group: _Group, tests: Iterable[_Test], into: Counter[str], budget: Budget) -> None:
    """Count the pods that pass every test, each on its nodes."""
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
