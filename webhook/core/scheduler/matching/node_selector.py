"""NodeSelector -> which nodes it matches: the terms of node affinity, of a pod and of a PersistentVolume.

Upstream: k8s.io/component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from webhook.core.api.meta import LABEL_KEY_MAX_CHARS
from webhook.core.api.node_selector import (
    METADATA_NAME,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    is_node_name,
)
from webhook.core.api.quantity import parse_int64

_LABEL_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)


def matches_node_selector(selector: NodeSelector | None, labels: Mapping[str, str] | None, name: str | None) -> bool:
    """Whether a term of required node affinity matches a node. None matches every node; zero terms match none.

    Without a name matchFields are not evaluated, as kube-scheduler does for PersistentVolumes (component-helpers
    storage/volume/helpers.go, CheckNodeAffinity).
    """
    if selector is None:
        return True
    return any(_term_matches(term, labels or {}, name) for term in selector.node_selector_terms or ())


def _term_matches(term: NodeSelectorTerm, labels: Mapping[str, str], name: str | None) -> bool:
    """Whether the term matches. An empty term matches nothing, as does one with a requirement that does not parse."""
    if term.is_empty:
        return False
    for expression in term.match_expressions or ():
        if not _expression_parses(expression) or not expression_holds(expression, labels):
            return False
    for field in term.match_fields or ():
        if not _field_parses(field) or not (name is None or field_holds(field, name)):
            return False
    return True


def _field_parses(field: NodeSelectorRequirement) -> bool:
    return field.operator in ("In", "NotIn") and len(field.values or ()) == 1


def field_holds(field: NodeSelectorRequirement, name: str) -> bool:
    """Whether the name matches. Every field except metadata.name has an empty value (apimachinery pkg/fields)."""
    value = name if field.key == METADATA_NAME else ""
    return (value in (field.values or ())) == (field.operator == "In")


def _expression_parses(expression: NodeSelectorRequirement) -> bool:
    """Whether labels.NewRequirement accepts it: key and values have the right form, and their number is right."""
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
    key = expression.key or ""
    return (
        counted and len(key) <= LABEL_KEY_MAX_CHARS and _is_label_key(key) and all(map(_LABEL_VALUE.fullmatch, values))
    )


def expression_holds(expression: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    """Whether the labels meet a requirement that parses."""
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
