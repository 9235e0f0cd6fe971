"""Explanation: the decision for one object with its evidence, as one value.

`webhook.explain.evaluate` makes it. `-o yaml` and `-o json` print this value as it is: its fields are the format.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from webhook.core.decision import WeightedNode
from webhook.core.observe.vm_status import State
from webhook.explain.chain.claim_chain import ClaimChain
from webhook.explain.chain.evidence import NodeEvidence
from webhook.explain.chain.volume_chain import VolumeChain


class Subject(Struct, rename="camel", frozen=True, kw_only=True):
    """The object. `source` is file:line, or TYPE/NAME as typed. `name` can be a pod's generateName."""

    kind: str
    namespace: str
    name: str
    source: str


class RunningPod(Struct, rename="camel", frozen=True, kw_only=True):
    """A pod that the object is, or has. `decision` is the annotation that the webhook wrote at the pod's creation."""

    name: str
    phase: str | None
    node: str | None
    decision: str | None


class VMNow(Struct, rename="camel", frozen=True, kw_only=True):
    """Where a VM is that runs and asks for co-scheduling, as `status` shows it.

    `remedy`: what to do, empty for nothing.
    """

    state: State
    since: str | None
    reason: str
    because: str
    remedy: str


class PodOptIn(Struct, rename="camel", frozen=True, kw_only=True):
    """The mode that the pod asks for, None if it does not opt in; and the value of the annotation.

    `namespace_label` is the value of the Namespace's label, where it counts. `by` says who opts the pod in, None if it
    does not opt in.
    """

    annotation: str | None
    namespace_label: str | None
    cluster_mode: str
    opted_in: bool
    mode: str | None
    by: str | None


class AffinityChange(Struct, rename="camel", frozen=True, kw_only=True):
    """The pod's spec.affinity before and after the patch."""

    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Explanation(Struct, rename="camel", frozen=True, kw_only=True):
    """The explanation of one object. Each key is always present; a key that does not apply is null or empty.

    Attributes:
        object: the object that is explained.
        cluster: the cluster or the files with the other objects.
        entry: the entry of the webhook configuration that selects the pod; it decides which rules apply.
        notes: what could not be read or derived.
        hints: what the user can do.
        running: the pods that the object has now.
        now: where the VM is now; None if it does not run or does not ask for co-scheduling.
        opt_in: what the pod asks for.
        claims: of a virt-launcher pod, each claim with the objects behind it.
        volume: of a share-manager pod, its volume with the objects behind it.
        nodes: whether the pod can run on each node, candidates first.
        decision: required, preferred or unchanged.
        reason: the code of the reason.
        sentence: the reason in words.
        required: the nodes of the required affinity, best first.
        preferred: the nodes of the preferred affinity, best first.
        shortlist: the nodes to which a preference in a large cluster restricts kube-scheduler.
        followers: the volumes whose share-manager pods Longhorn creates later, and the webhook steers to this pod.
        annotation: the annotation kubevirt-scheduler/decision that the webhook writes.
        patch: the JSON patch.
        affinity: the pod's affinity before and after the patch.
    """

    object: Subject
    cluster: str
    entry: str
    notes: Sequence[str]
    hints: Sequence[str]
    running: Sequence[RunningPod]
    now: VMNow | None
    opt_in: PodOptIn
    claims: Sequence[ClaimChain]
    volume: VolumeChain | None
    nodes: Sequence[NodeEvidence]
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
        """Whether the pod gets an affinity to a node."""
        return bool(self.required or self.preferred)
