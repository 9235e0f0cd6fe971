"""The pod that is to be scheduled, as far as rules between pods read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from webhook.core.api.affinity import PodAffinityTerm, TopologySpreadConstraint
from webhook.core.api.node_selector import NodeSelector
from webhook.core.api.pod import Pod, Toleration
from webhook.core.api.storage import PersistentVolume

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class IncomingPod(Struct, frozen=True, kw_only=True):
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


class ClaimVolume(Struct, frozen=True):
    """A bound claim of the pod and its PersistentVolume.

    `served_from`: the node of the share-manager that serves it, empty while it is on none; None for a volume that is
    attached to the pod's own node.
    """

    claim: str
    volume: PersistentVolume
    served_from: str | None = None


def newcomer(pod: Pod, namespace: str) -> IncomingPod:
    """The pod as rules between pods see it."""
    spec, affinity = pod.spec, pod.spec.affinity
    to, away = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else (None, None)
    return IncomingPod(
        namespace=namespace,
        labels=pod.metadata.labels or {},
        affinity=(to.required if to else None) or (),
        anti_affinity=(away.required if away else None) or (),
        spread=spec.topology_spread_constraints or (),
        node_selector=spec.node_selector or {},
        node_affinity=spec.required_node_affinity,
        tolerations=spec.tolerations or (),
    )
