"""The pod that is to be scheduled, as far as rules between pods read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from webhook.core.api.affinity import PodAffinityTerm, TopologySpreadConstraint
from webhook.core.api.node_selector import NodeSelector
from webhook.core.api.pod import Toleration

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class Newcomer(Struct, frozen=True, kw_only=True):
    """A pod under admission: its place is still open.

    Attributes:
        namespace: the request's.
        affinity: required pod affinity; `anti_affinity` likewise.
        spread: topology spread constraints, hard and soft.
        node_affinity: required node affinity.
    """

    namespace: str
    labels: Mapping[str, str] = _NONE
    affinity: Sequence[PodAffinityTerm] = ()
    anti_affinity: Sequence[PodAffinityTerm] = ()
    spread: Sequence[TopologySpreadConstraint] = ()
    node_selector: Mapping[str, str] = _NONE
    node_affinity: NodeSelector | None = None
    tolerations: Sequence[Toleration] = ()
