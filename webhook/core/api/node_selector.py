"""Node affinity as the scheduler reads it: an OR of ANDs that we may narrow, and preferences that we may append to.

Pure set logic over NodeSelector; nothing here knows of claims, decisions or JSON Patch.
Rules: k8s.io/component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go and
k8s.io/apimachinery pkg/labels/selector.go.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

MAX_TERMS: Final = 64
"""The most nodeSelectorTerms that a pin may leave in a pod: several nodes multiply them, and up to 99 nodes that are
named by metadata.name are all scored by kube-scheduler (minFeasibleNodesToFind is 100)."""

_MAX_GROWTH_BYTES: Final = 64 * 1024  # of those copies: far from the 1.5 MiB that etcd takes


def pin(node: str) -> NodeSelectorRequirement:
    """The matchFields requirement that holds for exactly this node."""
    return NodeSelectorRequirement(key=METADATA_NAME, operator="In", values=[node])


def pinned_nodes(term: NodeSelectorTerm) -> frozenset[str]:
    """The node names that a term already names with metadata.name In; empty where it names none."""
    return frozenset(
        value
        for requirement in term.match_fields or ()
        if requirement.key == METADATA_NAME and requirement.operator == "In"
        for value in requirement.values or ()
    )


def only_node(selector: NodeSelector | None) -> str | None:
    """The one node that a selector leaves by naming it in every term; None where it leaves more, or names none."""
    terms = (selector.node_selector_terms or ()) if selector else ()
    named = [pinned_nodes(term) for term in terms if not term.is_empty]
    return min(named[0]) if named and all(each == named[0] for each in named) and len(named[0]) == 1 else None


def named_nodes(selector: NodeSelector | None) -> frozenset[str]:
    """The nodes that a selector leaves by naming one or more in every term; none where a term names none."""
    terms = (selector.node_selector_terms or ()) if selector else ()
    named = [pinned_nodes(term) for term in terms if not term.is_empty]
    return frozenset().union(*named) if named and all(named) else frozenset()


def names_some_nodes(selector: NodeSelector | None) -> bool:
    """Whether some terms of a selector name nodes, and others name none."""
    terms = (selector.node_selector_terms or ()) if selector else ()
    return len({bool(pinned_nodes(term)) for term in terms if not term.is_empty}) > 1


def most_nodes(selector: NodeSelector | None, wanted: int) -> int:
    """How many of `wanted` nodes a pin may name over this selector, so that MAX_TERMS and a bound in bytes hold.

    Only terms that name no node yet are multiplied, so a selector that is pinned already takes any number. 0 where
    even one node is too many.
    """
    terms = (selector.node_selector_terms or ()) if selector else ()
    kept = [term for term in terms if not term.is_empty]
    free = [term for term in kept if not pinned_nodes(term)]
    if not free:
        return min(wanted, MAX_TERMS)
    most = max(0, min(wanted, (MAX_TERMS - len(kept) + len(free)) // len(free)))
    return most if most <= 1 else min(most, max(1, _MAX_GROWTH_BYTES // len(msgspec.json.encode(free))))


def prefers_only(term: PreferredSchedulingTerm, node: str, weight: int) -> bool:
    """Whether a preferred term is the one we would append for this node and weight."""
    preference = term.preference
    return (
        term.weight == weight
        and preference is not None
        and not preference.match_expressions
        and preference.match_fields == [pin(node)]
    )


METADATA_NAME: Final = "metadata.name"


class NodeSelectorRequirement(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """v1.NodeSelectorRequirement: one condition on a label (or on the field metadata.name)."""

    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class NodeSelectorTerm(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """v1.NodeSelectorTerm: requirements, ANDed. With none at all it is empty, and matches no node."""

    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the scheduler skips this term (component-helpers nodeaffinity.go, isEmptyNodeSelectorTerm)."""
        return not self.match_expressions and not self.match_fields


class NodeSelector(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """v1.NodeSelector: terms, ORed. Zero terms match no node."""

    node_selector_terms: list[NodeSelectorTerm] | None = None


class PreferredSchedulingTerm(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """v1.PreferredSchedulingTerm: `weight` (1..100) is added to the score of each node that `preference` matches."""

    weight: int | None = None
    preference: NodeSelectorTerm | None = None
