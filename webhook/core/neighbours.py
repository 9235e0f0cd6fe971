"""The pods that are on nodes, as rules between pods see them: which labels are where, and who wants to be kept apart.

Pods come and go one by one, in a time that depends on none of the others. What is asked is answered by walking over
what differs: label sets of the namespaces in question, each with its nodes; never over all pods.
Invariant: after any run of `add` and `remove` it answers as if it had been made of the pods that are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from sys import intern
from typing import Final, NamedTuple

from msgspec import Struct, field

from webhook.core.pod_rules import PodAffinityTerm
from webhook.core.reasons import Reason
from webhook.core.repulsions import Repulsion, Repulsions
from webhook.core.rulings import Undecided
from webhook.core.selectors import Scope, Selector, parse_terms
from webhook.core.tally import Tally, each, entries, with_one_less, with_one_more

LOOKED_AT_MAX: Final = 10_000
"""Label sets and nodes that one question may go through: some 3 ms, in which nothing else is answered. Enough for a
namespace of as many VMs, each with labels of its own, and for every node of the largest clusters."""

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


class Neighbour(Struct, frozen=True, gc=False):
    """One pod in the index: what `add` returns, and `remove` takes."""

    labelled: _Labelled
    node: str
    repulsions: tuple[Repulsion, ...]


class Found(Struct, gc=False):
    """Node -> how many of the pods that were asked for are on it."""

    there: dict[str, int] = field(default_factory=dict)
    expected: dict[str, int] = field(default_factory=dict)
    unsure: dict[str, int] = field(default_factory=dict)  # there or expected, if their namespaces' labels match


class _Home(NamedTuple):
    """What the pods of a group have in common: namespace, presence and the keys of their labels."""

    namespace: str
    presence: Presence
    keys: tuple[str, ...]


class _Labelled(Struct, eq=False, gc=False):
    """The pods of a group that have the same labels: the values of the group's keys, and their nodes."""

    home: _Home
    values: tuple[str, ...]
    tally: Tally


_Group = dict[tuple[str, ...], _Labelled]


class Neighbours:
    """Every pod that is on a node, or expected there."""

    def __init__(self) -> None:
        self.repulsions = Repulsions()
        self._namespaces: dict[str, dict[_Home, _Group]] = {}
        self._homes: dict[_Home, _Home] = {}  # each to the one that stands for its equals

    def add(
        self,
        namespace: str,
        node: str,
        labels: Mapping[str, str] | None,
        anti_affinity: Sequence[PodAffinityTerm] | None = None,
        presence: Presence = Presence.BOUND,
    ) -> Neighbour:
        """A pod is on a node, or will be; it has these required anti-affinity terms."""
        kept = sorted((key, value) for key, value in (labels or {}).items() if key not in UNKEPT_LABELS)
        home = _Home(intern(namespace), presence, tuple(intern(key) for key, _ in kept))
        home = self._homes.setdefault(home, home)
        group = self._namespaces.setdefault(home.namespace, {}).setdefault(home, {})
        values, node = tuple(intern(value) for _, value in kept), intern(node)
        labelled = group.get(values)
        if labelled is None:
            labelled = group[values] = _Labelled(home, values, node)
        else:
            labelled.tally = with_one_more(labelled.tally, node)
        terms = parse_terms(anti_affinity, namespace) if anti_affinity else None
        expected = presence is Presence.EXPECTED
        held = tuple(self.repulsions.add(term, node, expected=expected) for term in terms or ())
        return Neighbour(labelled, node, held)

    def remove(self, neighbour: Neighbour) -> None:
        """The pod is gone, or is not what it was when it was added."""
        labelled = neighbour.labelled
        left = with_one_less(labelled.tally, neighbour.node)
        if left is not None:
            labelled.tally = left
        else:
            self._forget(labelled)
        for repulsion in neighbour.repulsions:
            self.repulsions.remove(repulsion, neighbour.node)

    def _forget(self, labelled: _Labelled) -> None:
        """Nothing has these labels any more."""
        home = labelled.home
        homes = self._namespaces[home.namespace]
        del homes[home][labelled.values]
        if not homes[home]:
            del homes[home], self._homes[home]
            if not homes:
                del self._namespaces[home.namespace]

    def find(
        self, scopes: Sequence[Scope], selector: Selector, *, rule: str, terminating: bool = True
    ) -> Found | Undecided:
        """Where the pods are that `selector` matches, in the namespaces that all `scopes` cover.

        Args:
            rule: whose question it is, for the reason why it can't be answered.
            terminating: whether pods that are being deleted count.
        """
        found = Found()
        if selector.nothing:
            return found
        for requirement in selector.requirements:
            if requirement.key in UNKEPT_LABELS:
                return Undecided(Reason.LABEL_NOT_KEPT, {"rule": rule, "key": requirement.key})
        parts: list[tuple[_Group, list[_Test], dict[str, int]]] = []
        for home, group, certain in self._groups_in(scopes):
            tests = _tests(selector, home.keys)
            if tests is not None and (terminating or home.presence is not Presence.TERMINATING):
                parts.append((group, tests, _part(found, home.presence, certain=certain)))
        looked_at = sum(len(group) for group, _, _ in parts)
        for group, tests, into in parts:
            if looked_at <= LOOKED_AT_MAX:
                looked_at += _count(group, tests, into)
        if looked_at > LOOKED_AT_MAX:
            return Undecided(Reason.TOO_MANY_NEIGHBOURS, {"rule": rule, "most": LOOKED_AT_MAX})
        return found

    def _groups_in(self, scopes: Iterable[Scope]) -> Iterator[tuple[_Home, _Group, bool]]:
        """The groups of the namespaces that every scope covers, or may; False for those that may."""
        named = [set(scope.names) for scope in scopes if scope.selector.nothing]
        for namespace in set.intersection(*named) if named else self._namespaces:
            covered = [scope.covers(namespace) for scope in scopes]
            if False not in covered:
                for home, group in self._namespaces.get(namespace, {}).items():
                    yield home, group, None not in covered


_Test = tuple[int, tuple[str, ...], bool]


def _tests(selector: Selector, keys: tuple[str, ...]) -> list[_Test] | None:
    """What is left to ask of the values of these keys: place, values, whether it must be one of them. None: no use."""
    tests = []
    for requirement in selector.requirements:
        there = requirement.key in keys
        if there and requirement.values:
            tests.append((keys.index(requirement.key), requirement.values, requirement.wanted))
        elif there != requirement.wanted:
            return None
    return tests


def _count(group: _Group, tests: Sequence[_Test], into: dict[str, int]) -> int:
    """Count those that pass every test, each on its nodes. Returns how many nodes were looked at beside."""
    beside = 0
    for values, labelled in group.items():
        for place, wanted, is_in in tests:
            if (values[place] in wanted) != is_in:
                break
        else:
            beside += entries(labelled.tally) - 1
            for node, count in each(labelled.tally):
                into[node] = into.get(node, 0) + count
    return beside


def _part(found: Found, presence: Presence, *, certain: bool) -> dict[str, int]:
    if not certain:
        return found.unsure
    return found.expected if presence is Presence.EXPECTED else found.there
