"""v1.Affinity and the rules between pods, as they are on the wire.

The structs alone; `webhook.core.scheduler` evaluates them. Every field can be absent or null, as in Go's JSON.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

from webhook.core.api.meta import LabelSelector
from webhook.core.api.node_selector import NodeSelector, PreferredSchedulingTerm

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class PodAffinityTerm(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """v1.PodAffinityTerm: a selection of pods, and the node label whose values are the topology domains."""

    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    topology_key: str | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class InterPodTerms(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """v1.PodAffinity or v1.PodAntiAffinity; the preferred terms are not decoded."""

    required: list[PodAffinityTerm] | None = field(name=REQUIRED, default=None)
    preferred: list[Any] | None = field(name=PREFERRED, default=None)


class TopologySpreadConstraint(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.TopologySpreadConstraint: how many more of the selected pods one domain may have than another."""

    max_skew: int | None = None
    topology_key: str | None = None
    when_unsatisfiable: str | None = None
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class NodeAffinity(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """v1.NodeAffinity: the nodes that a pod must have, and those that it prefers."""

    required: NodeSelector | None = field(name=REQUIRED, default=None)
    preferred: list[PreferredSchedulingTerm] | None = field(name=PREFERRED, default=None)


class Affinity(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """v1.Affinity: a pod's rules about nodes and about other pods."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: InterPodTerms | None = None
    pod_anti_affinity: InterPodTerms | None = None
