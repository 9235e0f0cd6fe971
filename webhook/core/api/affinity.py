"""Rules between pods, as they are on the wire: label selectors, inter-pod terms, topology spread constraints.

The structs alone; `selectors`, `interpod` and `spread` say what they mean. Invariant: every field may be absent or
null, as in Go's JSON.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

from webhook.core.api.meta import LabelSelector
from webhook.core.api.node_selector import NodeSelector, PreferredSchedulingTerm

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class PodAffinityTerm(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """v1.PodAffinityTerm: some pods, and the node label whose equal values make places one."""

    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    topology_key: str | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class InterPodTerms(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """v1.PodAffinity or v1.PodAntiAffinity; what is preferred only as it stands there."""

    required: list[PodAffinityTerm] | None = field(name=_REQUIRED, default=None)
    preferred: list[Any] | None = field(name=_PREFERRED, default=None)


class TopologySpreadConstraint(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.TopologySpreadConstraint."""

    max_skew: int | None = None
    topology_key: str | None = None
    when_unsatisfiable: str | None = None
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class NodeAffinity(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """v1.NodeAffinity."""

    required: NodeSelector | None = field(name=REQUIRED, default=None)
    preferred: list[PreferredSchedulingTerm] | None = field(name=PREFERRED, default=None)


class Affinity(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """v1.Affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: InterPodTerms | None = None
    pod_anti_affinity: InterPodTerms | None = None
