"""What `-o yaml` and `-o json` print as it is: the explanation of one pod, or of one VM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from webhook.core.decision import WeightedNode
from webhook.core.observe.vm_item import VolumeItem
from webhook.core.observe.vm_status import State


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
    """Where a VM is that runs and asks for co-scheduling, as `status` shows it. `remedy`: empty for nothing to do."""

    state: State
    since: str | None
    reason: str
    because: str
    remedy: str


class AskedBy(Struct, rename="camel", frozen=True, kw_only=True):
    """Whether a VM asks for co-scheduling: the value that says so and whose it is, else `because` it does not."""

    opted_in: bool
    value: str | None
    by: str | None
    because: str


class Explanation(Struct, rename="camel", frozen=True, kw_only=True):
    """What both kinds have. Each key is always present; a key that does not apply is null or empty.

    Attributes:
        object: the object that is explained.
        cluster: the cluster or the files with the other objects.
        settings: those of the webhook, and which of them are assumed.
        notes: what could not be read.
        hints: what the user can do.
        running: the pods that the object has now.
        now: where the VM is now; None if it does not run or does not ask for co-scheduling.
        opt_in: whether it asks for co-scheduling; None for a share-manager pod, whose VMs ask.
    """

    object: Subject
    cluster: str
    settings: str
    notes: Sequence[str]
    hints: Sequence[str]
    running: Sequence[RunningPod]
    now: VMNow | None
    opt_in: AskedBy | None


class Evidence(Struct, rename="camel", frozen=True, kw_only=True):
    """What one claim of a pod led to, or one VM of a share-manager pod. `node` is None if it names no node."""

    claim: str
    volume: str | None
    node: str | None
    reason: str
    sentence: str


class NodeResult(Struct, rename="camel", frozen=True, kw_only=True):
    """What core says of a node that the evidence names."""

    name: str
    reason: str
    sentence: str


class AffinityChange(Struct, rename="camel", frozen=True, kw_only=True):
    """The pod's spec.affinity before and after the patch."""

    before: dict[str, Any] | None
    after: dict[str, Any] | None


class PodExplanation(Explanation, rename="camel", frozen=True, kw_only=True):
    """The decision of core for a pod.

    Attributes:
        entry: the entry of the webhook configuration that selects the pod; it decides which rules apply.
        evidence: of each claim, or of each VM that uses the volume.
        nodes: each node that the evidence names.
        decision: required, preferred or unchanged.
        reason: the code of the reason.
        sentence: the reason in words.
        required: the nodes of the required affinity, best first.
        preferred: the nodes of the preferred affinity, best first.
        shortlist: the nodes to which a preference in a large cluster restricts kube-scheduler.
        annotation: the annotation kubevirt-scheduler/decision that the webhook writes.
        patch: the JSON patch.
        affinity: the pod's affinity before and after the patch.
    """

    entry: str
    evidence: Sequence[Evidence]
    nodes: Sequence[NodeResult]
    decision: str
    reason: str
    sentence: str
    required: Sequence[str]
    preferred: Sequence[WeightedNode]
    shortlist: Sequence[str]
    annotation: str | None
    patch: Sequence[Any]
    affinity: AffinityChange


class VMExplanation(Explanation, rename="camel", frozen=True, kw_only=True):
    """What decides about the next start of a VM. The pod does not exist yet, so nothing says where it can run.

    Attributes:
        claims: each claim of the VM with its share-manager.
        asks_for: the nodes for which the webhook would ask, best first.
        checks: the VM's own rules, by which kube-scheduler and the webhook then check these nodes.
        gains: whether the webhook would ask for a node, or a new share-manager would follow the VM.
        reason: the code of the reason.
        next_start: the whole in words.
    """

    claims: Sequence[VolumeItem]
    asks_for: Sequence[str]
    checks: Sequence[str]
    gains: bool
    reason: str
    next_start: str
