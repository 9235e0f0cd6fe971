"""LabelSelector -> which labels it matches. PodAffinityTerm -> which pods it can be meant for. The selector of `-l`.

Upstream: k8s.io/apimachinery pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector) and pkg/labels/selector.go. The form
of keys and values is not checked in a LabelSelector, because an API server rejects a pod whose selectors are malformed.
Invariant: a term that matches a pod upstream matches it here. The labels of namespaces are not known, so that a term
that selects namespaces by them is about each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.api.meta import LabelSelector


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
    """Requirements, ANDed. Selectors that ask for the same are equal, in whatever order they were written."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet every requirement."""
        return all(requirement.holds(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        return ", ".join(map(str, self.requirements)) or "any"


class Term(Struct, frozen=True, gc=False):
    """A PodAffinityTerm (kube-scheduler framework/types.go, AffinityTerm). Without `namespaces` it is about any.

    `unread`: stands for the rules of a pod that were too long to be read.
    """

    selector: Selector
    namespaces: tuple[str, ...]
    topology_key: str
    unread: bool = False

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether the term can be meant for a pod with these labels."""
        return (not self.namespaces or namespace in self.namespaces) and self.selector.matches(labels)

    def __str__(self) -> str:
        return str(self.selector)


def parse_terms(terms: Iterable[PodAffinityTerm], namespace: str) -> tuple[Term, ...]:
    """Return the terms of a pod in `namespace`, without those that select no pod.

    A requirement that can't be read is left out: the term can then be meant for more pods.
    """
    return tuple(
        Term(
            Selector(tuple(sorted(set(_requirements(term.label_selector))))),
            () if term.namespace_selector is not None else tuple(sorted(set(term.namespaces or (namespace,)))),
            term.topology_key or "",
        )
        for term in terms
        if term.label_selector is not None
    )


def _requirements(selector: LabelSelector) -> Iterator[Requirement]:
    for key, value in (selector.match_labels or {}).items():
        yield Requirement(key, (value,), wanted=True)
    for expression in selector.match_expressions or ():
        key, values = expression.key or "", tuple(sorted(set(expression.values or ())))
        match expression.operator:
            case "In" | "NotIn" if values:
                yield Requirement(key, values, wanted=expression.operator == "In")
            case "Exists" | "DoesNotExist" if not values:
                yield Requirement(key, (), wanted=expression.operator == "Exists")


_WORD: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_KEY: Final = rf"(?:{_WORD}/)?{_WORD}"
_PARTS: Final = re.compile(r",(?![^(]*\))")  # a comma outside of parentheses
_FORMS: Final = (
    re.compile(rf"(?P<key>{_KEY})\s*(?P<operator>==?|!=)\s*(?P<value>{_WORD}|)"),
    re.compile(rf"(?P<key>{_KEY})\s+(?P<operator>in|notin)\s*\(\s*(?P<values>{_WORD}(?:\s*,\s*{_WORD})*)\s*\)"),
    re.compile(rf"(?P<operator>!|)\s*(?P<key>{_KEY})"),
)
_NEGATIVE: Final = ("!=", "notin", "!")


def parse_query(text: str) -> Selector:
    """Return the label selector of `-l` as kubectl takes it: `app=db,tier!=test,zone in (a,b),!old`.

    Upstream: pkg/labels/selector.go (Parse). The operators `>` and `<` for numbers are not taken.

    Raises:
        ValueError: says what was expected.
    """
    return Selector(tuple(_requirement(part.strip()) for part in _PARTS.split(text)))


def _requirement(part: str) -> Requirement:
    found = next(filter(None, (form.fullmatch(part) for form in _FORMS)), None)
    if found is None:
        raise ValueError("expected a label selector such as app=db, tier!=test, 'zone in (a,b)' or !old")
    groups = found.groupdict()
    listed = groups.get("values")
    values = (groups["value"],) if "value" in groups else tuple(re.split(r"\s*,\s*", listed)) if listed else ()
    return Requirement(groups["key"], values, wanted=groups["operator"] not in _NEGATIVE)
