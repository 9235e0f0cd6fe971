"""Explanation: all that was found and decided for one object, as one value.

`webhook.explain.evaluate` makes it. `-o yaml` and `-o json` print this value as it is: its fields are the format.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from webhook.core.decision import WeightedNode
from webhook.explain.chain.claim_chain import ClaimChain
from webhook.explain.chain.evidence import NodeVerdict
from webhook.explain.chain.volume_chain import VolumeChain


class Subject(Struct, rename="camel", frozen=True, kw_only=True):
    """The object; `source` is file:line, or TYPE/NAME as it was typed. A pod without a name shows its generateName."""

    kind: str
    namespace: str
    name: str
    source: str


class RunningPod(Struct, rename="camel", frozen=True, kw_only=True):
    """A pod that the object is, or has; `decision` is what its annotation says was decided when it was created."""

    name: str
    phase: str | None
    node: str | None
    decision: str | None


class OptIn(Struct, rename="camel", frozen=True, kw_only=True):
    """`mode` is what the pod asked for, None where it is left out; `annotation` is the value that says so."""

    annotation: str | None
    cluster_mode: str
    opted_in: bool
    mode: str | None


class AffinityChange(Struct, rename="camel", frozen=True, kw_only=True):
    """The pod's spec.affinity."""

    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Explanation(Struct, rename="camel", frozen=True, kw_only=True):
    """One object explained. Every key is always there; what does not apply is null or empty.

    `cluster` says where the facts come from; `entry` is that of the webhook configuration, and says which rules are
    asked. A virt-launcher pod has `claims`, a share-manager pod a `volume`. `shortlist` are the nodes that a
    preference lets the scheduler choose from; `followers` the volumes whose share-manager pods will follow this pod.
    """

    object: Subject
    cluster: str
    entry: str
    notes: Sequence[str]
    hints: Sequence[str]
    running: Sequence[RunningPod]
    opt_in: OptIn
    claims: Sequence[ClaimChain]
    volume: VolumeChain | None
    nodes: Sequence[NodeVerdict]
    decision: str
    reason: str
    sentence: str
    required: Sequence[str]
    preferred: Sequence[WeightedNode]
    shortlist: Sequence[str]
    followers: Sequence[str]
    annotation: str | None
    patch: Sequence[Any]
    affinity: AffinityChange

    @property
    def placed(self) -> bool:
        """Whether the pod is drawn to any node."""
        return bool(self.required or self.preferred)
