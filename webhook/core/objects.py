"""The partial Kubernetes objects that core reads, decoded straight from JSON.

Only fields that some rule reads are declared; everything else is skipped by the decoder and never rebuilt, so an
object can't lose a field by passing through here. Invariant: every field may be absent or null, as in Go's JSON.
They are trees, so the cycle collector need not know them (gc=False): a large cluster costs it nothing.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

from webhook.core.pod_rules import InterPodTerms, TopologySpreadConstraint
from webhook.core.workload import PodCondition, Quantities, Workload, WorkloadStatus

LABEL_APP: Final = "kubevirt.io"
LABEL_MIGRATION_JOB_UID: Final = "kubevirt.io/migrationJobUID"  # on the target pod of a live migration
VIRT_LAUNCHER: Final = "virt-launcher"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
METADATA_NAME: Final = "metadata.name"
LONGHORN_API_VERSION: Final = "longhorn.io/v1beta2"
LONGHORN_CSI_DRIVER: Final = "driver.longhorn.io"
LABEL_LONGHORN_COMPONENT: Final = "longhorn.io/component"
LABEL_LONGHORN_SHARE_MANAGER: Final = "longhorn.io/share-manager"
SHARE_MANAGER: Final = "share-manager"
SHARE_MANAGER_POD_PREFIX: Final = "share-manager-"
POD_SCHEDULED: Final = "PodScheduled"
UNSCHEDULABLE: Final = "Unschedulable"


class OwnerReference(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """metav1.OwnerReference."""

    kind: str | None = None
    name: str | None = None
    uid: str | None = None


class ObjectMeta(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """metav1.ObjectMeta. A pod at CREATE has `generate_name` and no `name`, and often no `namespace`."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None

    def label(self, key: str) -> str | None:
        """The value of a label, None where it is absent."""
        return self.labels.get(key) if self.labels else None

    def annotation(self, key: str) -> str | None:
        """The value of an annotation, None where it is absent."""
        return self.annotations.get(key) if self.annotations else None


class NodeSelectorRequirement(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """v1.NodeSelectorRequirement: one condition on a label (or on the field metadata.name)."""

    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class NodeSelectorTerm(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """v1.NodeSelectorTerm: requirements, ANDed. With none at all it is empty, and matches no node."""

    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the scheduler skips this term (component-helpers nodeaffinity.go, isEmptyNodeSelectorTerm)."""
        return not self.match_expressions and not self.match_fields


class NodeSelector(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """v1.NodeSelector: terms, ORed. Zero terms match no node."""

    node_selector_terms: list[NodeSelectorTerm] | None = None


class PreferredSchedulingTerm(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """v1.PreferredSchedulingTerm: `weight` (1..100) is added to the score of each node that `preference` matches."""

    weight: int | None = None
    preference: NodeSelectorTerm | None = None


class NodeAffinity(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """v1.NodeAffinity."""

    required: NodeSelector | None = field(name=REQUIRED, default=None)
    preferred: list[PreferredSchedulingTerm] | None = field(name=PREFERRED, default=None)


class Affinity(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """v1.Affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: InterPodTerms | None = None
    pod_anti_affinity: InterPodTerms | None = None


class Toleration(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.Toleration; an absent key, effect or operator is the empty string."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class PersistentVolumeClaimVolumeSource(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.PersistentVolumeClaimVolumeSource."""

    claim_name: str | None = None


class Volume(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.Volume, as far as it leads to a claim."""

    name: str | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: dict[str, Any] | None = None


class PodSchedulingGate(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.PodSchedulingGate: kube-scheduler does not look at the pod while it has one."""

    name: str | None = None


class PodSpec(Workload, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.PodSpec."""

    node_name: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    scheduling_gates: list[PodSchedulingGate] | None = None
    resource_claims: list[Any] | None = None
    volumes: list[Volume] | None = None

    @property
    def node_affinity(self) -> NodeAffinity | None:
        """The pod's own node affinity, None where it has none."""
        return self.affinity.node_affinity if self.affinity else None

    @property
    def required_node_affinity(self) -> NodeSelector | None:
        """The pod's own required node affinity, None where it has none."""
        node_affinity = self.affinity.node_affinity if self.affinity else None
        return node_affinity.required if node_affinity else None


class PodStatus(WorkloadStatus, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.PodStatus."""

    @property
    def scheduled(self) -> PodCondition | None:
        """The condition PodScheduled, which kube-scheduler posts; None before it has looked at the pod."""
        for condition in self.conditions or ():
            if condition.type == POD_SCHEDULED:
                return condition
        return None


class Pod(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.Pod: the pod under admission, or a share-manager pod."""

    metadata: ObjectMeta
    spec: PodSpec
    status: PodStatus | None = None


class PersistentVolumeClaimSpec(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.PersistentVolumeClaimSpec."""

    access_modes: list[str] | None = None
    volume_name: str | None = None
    volume_mode: str | None = None


class PersistentVolumeClaimStatus(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.PersistentVolumeClaimStatus."""

    phase: str | None = None


class PersistentVolumeClaim(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.PersistentVolumeClaim."""

    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec | None = None
    status: PersistentVolumeClaimStatus | None = None


class CSIPersistentVolumeSource(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.CSIPersistentVolumeSource. `volume_handle` is Longhorn's volume name; the PV's own name may differ."""

    driver: str | None = None
    volume_handle: str | None = None
    volume_attributes: dict[str, str] | None = None


class ObjectReference(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.ObjectReference, as far as it names an object."""

    namespace: str | None = None
    name: str | None = None


class VolumeNodeAffinity(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.VolumeNodeAffinity."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.PersistentVolumeSpec."""

    csi: CSIPersistentVolumeSource | None = None
    claim_ref: ObjectReference | None = None
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.PersistentVolume."""

    metadata: ObjectMeta
    spec: PersistentVolumeSpec | None = None


class ShareManagerStatus(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """longhorn.io/v1beta2 ShareManagerStatus."""

    owner_id: str | None = field(name="ownerID", default=None)
    state: str | None = None


class ShareManager(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """longhorn.io/v1beta2 ShareManager; its name is Longhorn's volume name."""

    metadata: ObjectMeta
    status: ShareManagerStatus | None = None


class AttachmentTicket(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """longhorn.io/v1beta2 AttachmentTicket: who wants the volume attached, and on which node."""

    type: str | None = None
    node_id: str | None = field(name="nodeID", default=None)


class VolumeAttachmentSpec(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """longhorn.io/v1beta2 VolumeAttachmentSpec."""

    attachment_tickets: dict[str, AttachmentTicket] | None = None


class VolumeAttachment(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """longhorn.io/v1beta2 VolumeAttachment; its name is Longhorn's volume name."""

    metadata: ObjectMeta
    spec: VolumeAttachmentSpec | None = None


class Condition(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.NodeCondition and Longhorn's Condition."""

    type: str | None = None
    status: str | None = None


class Taint(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.Taint."""

    key: str | None = None
    value: str | None = None
    effect: str | None = None


class NodeSpec(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.NodeSpec."""

    unschedulable: bool | None = None
    taints: list[Taint] | None = None


class NodeStatus(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.NodeStatus and longhorn.io/v1beta2 NodeStatus, which has no `allocatable`."""

    allocatable: Quantities | None = None
    conditions: list[Condition] | None = None

    @property
    def ready(self) -> bool:
        """Whether the condition Ready is there and True; one that was never posted is not ready."""
        for condition in self.conditions or ():
            if condition.type == "Ready":
                return condition.status == "True"
        return False


class Node(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.Node."""

    metadata: ObjectMeta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None

    @property
    def usable(self) -> bool:
        """Whether it is Ready, and not cordoned."""
        return bool(self.status and self.status.ready) and not (self.spec and self.spec.unschedulable)


class LonghornNode(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """longhorn.io/v1beta2 Node; its name is the Kubernetes node's name."""

    metadata: ObjectMeta
    status: NodeStatus | None = None
