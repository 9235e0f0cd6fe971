"""The explanation of one pod, or of one VM, as `-o json` prints it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from webhook.core.decision import WeightedNode
from webhook.core.observe.vm_status import VMStatus
from webhook.core.observe.vm_volumes import UNREAD


class Subject(Struct, rename="camel", frozen=True, kw_only=True):
    """The object. `source` is file:line, or TYPE/NAME as typed. `name` can be a pod's generateName."""

    kind: str
    namespace: str
    name: str
    source: str


class Explanation(Struct, rename="camel", frozen=True, kw_only=True):
    """What both kinds have. Each key is always present; a key that does not apply is null or empty.

    Attributes:
        object: the object that is explained.
        cluster: the cluster or the files with the other objects.
        settings: those of the webhook, and which of them are assumed.
        notes: what could not be read.
        hints: what the user can do.
    """

    object: Subject
    cluster: str
    settings: str
    notes: Sequence[str]
    hints: Sequence[str]


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


class PodExplanation(Explanation, rename="camel", frozen=True, kw_only=True):
    """The decision of core for a pod.

    Attributes:
        asked: the value that asks for co-scheduling, or does not, and whose it is; empty for none.
        opted_in: whether the VM of the pod asks; None for a share-manager pod, whose VMs ask.
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
    """

    asked: str
    opted_in: bool | None
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

    @property
    def asks_for_a_node(self) -> bool:
        """Whether the webhook asks for a node."""
        return bool(self.required or self.preferred)

    @property
    def is_unread(self) -> bool:
        """Whether what decides could not be read."""
        return self.reason in UNREAD

    @property
    def may_be_opted_in(self) -> bool:
        """Whether the cluster's setting decides: neither annotation nor label says anything."""
        return self.opted_in is False and not self.asked


class VMExplanation(Explanation, rename="camel", frozen=True, kw_only=True):
    """What decides about the next start of a VM. The pod does not exist yet, so nothing says where it can run.

    `vm` is the VM as `status` and `candidates` have it.
    """

    vm: VMStatus

    @property
    def asks_for_a_node(self) -> bool:
        """Whether the webhook would ask for a node."""
        start = self.vm.next_start
        return bool(start and start.gains and not self.vm.not_asked)

    @property
    def is_unread(self) -> bool:
        """Whether what decides could not be read."""
        start = self.vm.next_start
        return bool({start.reason if start else "", self.vm.not_asked.partition(":")[0]} & UNREAD)

    @property
    def may_be_opted_in(self) -> bool:
        """Whether the cluster's setting decides: neither annotation nor label says anything."""
        return bool(self.vm.not_asked) and not self.vm.asked
