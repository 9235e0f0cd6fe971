"""v1.NodeSelector, v1.Affinity and the rules between pods, as they are on the wire.

A node selector is an OR of terms that the webhook can narrow, and preferences to which it can append: pure set logic.
`webhook.core.scheduler` evaluates the rest. Every field can be absent or null, as in Go's JSON. Rules:
k8s.io/component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go and k8s.io/apimachinery pkg/labels/selector.go.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import field

from webhook.core.api.meta import NAME_MAX_CHARS, ApiType, LabelSelector

MAX_TERMS: Final = 64
"""The most nodeSelectorTerms of a pod after a pin; several required nodes multiply its terms.

kube-scheduler scores all of up to 99 nodes that are named by metadata.name (minFeasibleNodesToFind is 100).
"""

_MAX_GROWTH_BYTES: Final = 64 * 1024  # of these copies; etcd accepts 1.5 MiB
METADATA_NAME: Final = "metadata.name"
# What the API server accepts as a name: apimachinery pkg/util/validation.
_DNS_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII)


def is_node_name(name: str) -> bool:
    """Whether the API server accepts this as a node's name in matchFields (validation.go, ValidateNodeName).

    The API server rejects the whole pod for a term with any other name, so the webhook must never write such a term.
    """
    return len(name) <= NAME_MAX_CHARS and _is_dns_subdomain(name)


@lru_cache(maxsize=8192)  # as many as the largest clusters have nodes
def _is_dns_subdomain(name: str) -> bool:
    return _DNS_SUBDOMAIN.fullmatch(name) is not None


class NodeSelectorRequirement(ApiType):
    """v1.NodeSelectorRequirement: one condition on a label (or on the field metadata.name)."""

    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class NodeSelectorTerm(ApiType):
    """v1.NodeSelectorTerm: requirements, ANDed. A term without requirements is empty and matches no node."""

    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the scheduler skips this term (component-helpers nodeaffinity.go, isEmptyNodeSelectorTerm)."""
        return not self.match_expressions and not self.match_fields


class NodeSelector(ApiType):
    """v1.NodeSelector: terms, ORed. Zero terms match no node."""

    node_selector_terms: list[NodeSelectorTerm] | None = None


class PreferredSchedulingTerm(ApiType):
    """v1.PreferredSchedulingTerm: `weight` (1..100) is added to the score of each node that `preference` matches."""

    weight: int | None = None
    preference: NodeSelectorTerm | None = None


def pin(node: str) -> NodeSelectorRequirement:
    """Return the matchFields requirement that only this node meets."""
    return NodeSelectorRequirement(key=METADATA_NAME, operator="In", values=[node])


def pinned_nodes(term: NodeSelectorTerm) -> frozenset[str]:
    """Return the nodes that a term names with metadata.name In; empty if it names none."""
    return frozenset(
        value
        for requirement in term.match_fields or ()
        if requirement.key == METADATA_NAME and requirement.operator == "In"
        for value in requirement.values or ()
    )


def _usable(selector: NodeSelector | None) -> list[NodeSelectorTerm]:
    """Return the terms that can match a node."""
    return [term for term in (selector.node_selector_terms or () if selector else ()) if not term.is_empty]


def named_nodes(selector: NodeSelector | None) -> frozenset[str]:
    """Return the nodes that the terms name, if every term names at least one; otherwise an empty set."""
    named = [pinned_nodes(term) for term in _usable(selector)]
    return frozenset().union(*named) if named and all(named) else frozenset()


def only_node(selector: NodeSelector | None) -> str | None:
    """Return the one node that every term of the selector names; None if the terms name none or several nodes."""
    named = named_nodes(selector)
    return next(iter(named)) if len(named) == 1 else None


def most_nodes(selector: NodeSelector | None, wanted: int) -> int:
    """Return how many of `wanted` nodes a pin can add to this selector within MAX_TERMS and a limit in bytes.

    Each term is multiplied. The result is 0 if even one node is too many.
    """
    usable = _usable(selector)
    if not usable:
        return min(wanted, MAX_TERMS)
    most = min(wanted, MAX_TERMS // len(usable))
    return most if most <= 1 else min(most, max(1, _MAX_GROWTH_BYTES // len(msgspec.json.encode(usable))))


REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class PodAffinityTerm(ApiType):
    """v1.PodAffinityTerm: a selection of pods, and the node label whose values are the topology domains."""

    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    topology_key: str | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class InterPodTerms(ApiType):
    """v1.PodAffinity or v1.PodAntiAffinity; the preferred terms are not decoded."""

    required: list[PodAffinityTerm] | None = field(name=REQUIRED, default=None)
    preferred: list[Any] | None = field(name=PREFERRED, default=None)


class TopologySpreadConstraint(ApiType):
    """v1.TopologySpreadConstraint: over which domains pods are spread, and what happens if they can't be."""

    topology_key: str | None = None
    when_unsatisfiable: str | None = None


class NodeAffinity(ApiType):
    """v1.NodeAffinity: the nodes that a pod must have, and those that it prefers."""

    required: NodeSelector | None = field(name=REQUIRED, default=None)
    preferred: list[PreferredSchedulingTerm] | None = field(name=PREFERRED, default=None)


class Affinity(ApiType):
    """v1.Affinity: a pod's rules about nodes and about other pods."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: InterPodTerms | None = None
    pod_anti_affinity: InterPodTerms | None = None
