"""LabelSelector -> which labels it matches. PodAffinityTerm -> which pods it matches, by labels and namespace.

Upstream: k8s.io/apimachinery pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector) and pkg/labels/selector.go. The form
of keys and values is not checked here, because an API server rejects a pod whose selectors are malformed.
Selectors that match the same by the same requirements are equal values, in whatever order they were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.api.meta import LabelSelector, LabelSelectorRequirement


class Requirement(Struct, frozen=True, order=True, gc=False):
    """One condition on a label: its value is one of `values`. Without values: the label exists.

    If `wanted` is False, the opposite must hold.
    """

    key: str
    values: tuple[str, ...]
    wanted: bool

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet the requirement. NotIn holds also if the label is absent."""
        value = labels.get(self.key)
        return (value is not None and (not self.values or value in self.values)) == self.wanted

    def __str__(self) -> str:
        if not self.values:
            return self.key if self.wanted else f"!{self.key}"
        if len(self.values) == 1:
            return f"{self.key}{'=' if self.wanted else '!='}{self.values[0]}"
        return f"{self.key} {'in' if self.wanted else 'notin'} ({','.join(self.values)})"


class Selector(Struct, frozen=True, gc=False):
    """Requirements, ANDed; `nothing` matches no labels at all."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet every requirement."""
        if self.nothing:
            return False
        for requirement in self.requirements:  # noqa: SIM110 - a generator would take twice as long
            if not requirement.holds(labels):
                return False
        return True

    def __str__(self) -> str:
        return "nothing" if self.nothing else ", ".join(map(str, self.requirements)) or "any"


NOTHING: Final = Selector(nothing=True)


def conjunction(selectors: Iterable[Selector]) -> Selector:
    """Return the selector that matches the labels that all of these selectors match."""
    requirements: set[Requirement] = set()
    for selector in selectors:
        if selector.nothing:
            return NOTHING
        requirements.update(selector.requirements)
    return Selector(tuple(sorted(requirements)))


def parse_selector(selector: LabelSelector | None) -> Selector | None:
    """Return the selector as it matches; None if it does not parse. No selector at all matches nothing."""
    if selector is None:
        return NOTHING
    requirements = {Requirement(key, (value,), wanted=True) for key, value in (selector.match_labels or {}).items()}
    for expression in selector.match_expressions or ():
        requirement = _requirement(expression)
        if requirement is None:
            return None
        requirements.add(requirement)
    return Selector(tuple(sorted(requirements)))


def _requirement(expression: LabelSelectorRequirement) -> Requirement | None:
    key, values = expression.key or "", tuple(sorted(set(expression.values or ())))
    match expression.operator:
        case "In" | "NotIn" if values:
            return Requirement(key, values, expression.operator == "In")
        case "Exists" | "DoesNotExist" if not values:
            return Requirement(key, (), expression.operator == "Exists")
    return None


class Scope(Struct, frozen=True, gc=False):
    """The namespaces that a term between pods is about. The labels of namespaces are not known.

    `others`: whether the namespaces without a name in `names` are among them; None if that depends on their labels.
    """

    names: tuple[str, ...]
    others: bool | None = False

    def covers(self, namespace: str) -> bool | None:
        """Whether a namespace is one of them; None if that depends on its labels."""
        return True if namespace in self.names else self.others


class Term(Struct, frozen=True, gc=False):
    """A PodAffinityTerm with its namespaces resolved (kube-scheduler framework/types.go, AffinityTerm)."""

    selector: Selector
    scope: Scope
    topology_key: str

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool | None:
        """Whether the term is about a pod with these labels; None if that depends on labels of the namespace."""
        return self.scope.covers(namespace) if self.selector.matches(labels) else False

    def __str__(self) -> str:
        return str(self.selector)


def parse_terms(terms: Iterable[PodAffinityTerm], namespace: str) -> Sequence[Term] | None:
    """Return the terms of a pod in `namespace`; None if one does not parse: kube-scheduler then ignores all of them."""
    parsed = []
    for term in terms:
        selector, namespaces = parse_selector(term.label_selector), parse_selector(term.namespace_selector)
        if selector is None or namespaces is None:
            return None
        names = tuple(sorted(set(term.namespaces or ())))
        if not names and term.namespace_selector is None:
            names = (namespace,)
        others = False if namespaces.nothing else None if namespaces.requirements else True
        parsed.append(Term(selector, Scope(names, others), term.topology_key or ""))
    return parsed
