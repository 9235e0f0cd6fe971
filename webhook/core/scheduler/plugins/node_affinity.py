"""kube-scheduler's NodeAffinity plugin (pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go).

Invariant: the plugin does not reject a node that passes both functions here. `addedAffinity` in kube-scheduler's own
configuration is not known. There are two functions, so that the reasons keep their order. A nodeSelector that does
not match is reported before a volume that can't be used. Required node affinity is reported last: a fault of the node
explains more than a rule that the pod's owner wrote on purpose.

The terms are matched as in component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go, also those of a
PersistentVolume.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from webhook.core.api.affinity import (
    METADATA_NAME,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    is_node_name,
)
from webhook.core.api.container import parse_int64
from webhook.core.api.meta import LABEL_KEY_MAX_CHARS
from webhook.core.api.pod import PodSpec
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.state.node_info import NodeInfo

_LABEL_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)


def why_labels_mismatch(spec: PodSpec, node: NodeInfo) -> Why | None:
    """Reject a node that lacks a label of `spec.nodeSelector`."""
    selector = spec.node_selector
    if selector:
        labels = node.labels
        for key, value in selector.items():
            if labels.get(key) != value:
                return Reason.NODE_SELECTOR_MISMATCH.why(node=node.name, label=f"{key}={value}")
    return None


def why_terms_mismatch(spec: PodSpec, node: NodeInfo) -> Why | None:
    """Reject a node that no term of the pod's required node affinity matches."""
    if matches_node_selector(spec.required_node_affinity, node.labels, node.name):
        return None
    return Reason.NODE_AFFINITY_MISMATCH.why(node=node.name)


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
