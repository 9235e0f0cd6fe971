"""Rules between pods, as they are on the wire: label selectors, inter-pod terms, topology spread constraints.

The structs alone; `selectors`, `interpod` and `spread` say what they mean. Invariant: every field may be absent or
null, as in Go's JSON.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class LabelSelectorRequirement(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """metav1.LabelSelectorRequirement."""

    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class LabelSelector(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """metav1.LabelSelector: requirements, ANDed. An empty one matches everything, an absent one nothing."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


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
