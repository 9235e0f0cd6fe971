"""Node affinity as the scheduler reads it: an OR of ANDs that we may narrow, and preferences that we may append to.

Pure set logic over NodeSelector; nothing here knows of claims, decisions or JSON Patch.
Rules: k8s.io/component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go and
k8s.io/apimachinery pkg/labels/selector.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from webhook.core.objects import (
    METADATA_NAME,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)

MAX_TERMS: Final = 64
"""The most nodeSelectorTerms that a pin may leave in a pod: several nodes multiply them, and up to 99 nodes that are
named by metadata.name are all scored by kube-scheduler (minFeasibleNodesToFind is 100)."""

_MAX_GROWTH_BYTES: Final = 64 * 1024  # of those copies: far from the 1.5 MiB that etcd takes
_INT64_MAX: Final = 2**63 - 1
_PARSE_INT_MAX_CHARS: Final = 4300  # what int() takes; leading zeros may be many
_PARSE_INT: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_LABEL_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_DNS_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_DNS_SUBDOMAIN_MAX_CHARS: Final = 253


@lru_cache(maxsize=8192)  # as many as the largest clusters have nodes
def is_node_name(name: str) -> bool:
    """Whether the API server takes this as a node's name in matchFields (validation.go, ValidateNodeName).

    A term that names anything else makes it reject the whole pod, so we must never write one.
    """
    return len(name) <= _DNS_SUBDOMAIN_MAX_CHARS and _DNS_SUBDOMAIN.fullmatch(name) is not None


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


def shuns(preferred: Iterable[PreferredSchedulingTerm], labels: Mapping[str, str] | None, name: str) -> bool:
    """Whether one of these preferences is against a node by NotIn: as Longhorn's is against a delinquent one."""
    for term in preferred:
        preference = term.preference or NodeSelectorTerm()
        for expression in preference.match_expressions or ():
            if expression.operator == "NotIn" and not _expression_holds(expression, labels or {}):
                return True
        for field in preference.match_fields or ():
            if field.operator == "NotIn" and not _field_holds(field, name):
                return True
    return False


def prefers_only(term: PreferredSchedulingTerm, node: str, weight: int) -> bool:
    """Whether a preferred term is the one we would append for this node and weight."""
    preference = term.preference
    return (
        term.weight == weight
        and preference is not None
        and not preference.match_expressions
        and preference.match_fields == [pin(node)]
    )


def selector_admits(selector: NodeSelector | None, labels: Mapping[str, str] | None, name: str | None) -> bool:
    """Whether required node affinity admits a node.

    Args:
        selector: None where nothing is required, which admits every node; zero terms admit none.
        labels: the node's labels.
        name: the node's name; None leaves matchFields out of the question, as the scheduler does for
            PersistentVolumes (component-helpers storage/volume/helpers.go, CheckNodeAffinity).
    """
    if selector is None:
        return True
    return any(_term_admits(term, labels or {}, name) for term in selector.node_selector_terms or ())


def _term_admits(term: NodeSelectorTerm, labels: Mapping[str, str], name: str | None) -> bool:
    """An empty term matches nothing; one with a requirement that does not parse never matches either."""
    if term.is_empty:
        return False
    for expression in term.match_expressions or ():
        if not _expression_parses(expression) or not _expression_holds(expression, labels):
            return False
    for field in term.match_fields or ():
        if not _field_parses(field) or not (name is None or _field_holds(field, name)):
            return False
    return True


def _field_parses(field: NodeSelectorRequirement) -> bool:
    return field.operator in ("In", "NotIn") and len(field.values or ()) == 1


def _field_holds(field: NodeSelectorRequirement, name: str) -> bool:
    """The only field is metadata.name; any other reads as the empty string (apimachinery pkg/fields)."""
    value = name if field.key == METADATA_NAME else ""
    return (value in (field.values or ())) == (field.operator == "In")


def _expression_parses(expression: NodeSelectorRequirement) -> bool:
    """labels.NewRequirement: a key and values of the right form, and as many values as the operator takes."""
    values = expression.values or ()
    match expression.operator:
        case "In" | "NotIn":
            counted = len(values) > 0
        case "Exists" | "DoesNotExist":
            counted = not values
        case "Gt" | "Lt":
            counted = len(values) == 1 and parse_int64(values[0]) is not None
        case _:
            return False
    return counted and _is_label_key(expression.key or "") and all(map(_LABEL_VALUE.fullmatch, values))


def _expression_holds(expression: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    actual, values = labels.get(expression.key or ""), expression.values or []
    match expression.operator:
        case "In":
            return actual in values
        case "NotIn":
            return actual not in values
        case "Exists":
            return actual is not None
        case "DoesNotExist":
            return actual is None
    have, want = parse_int64(actual or ""), parse_int64(values[0])
    if have is None or want is None:
        return False
    return have > want if expression.operator == "Gt" else have < want


@lru_cache(maxsize=1024)
def _is_label_key(key: str) -> bool:
    """As apimachinery IsQualifiedName: [prefix/]name, the prefix a DNS subdomain, the name 63 characters at most."""
    prefix, slash, name = key.rpartition("/")
    return _LABEL_NAME.fullmatch(name) is not None and (not slash or is_node_name(prefix))


def parse_int64(text: str) -> int | None:
    """Go's strconv.ParseInt(text, 10, 64): None where that fails. Unlike int(), no blanks, underscores or bignums."""
    if not _PARSE_INT.fullmatch(text) or len(text) > _PARSE_INT_MAX_CHARS:
        return None
    number = int(text)
    return number if -_INT64_MAX - 1 <= number <= _INT64_MAX else None
