"""Reason code -> sentence: the one table behind decisions, annotations, logs, audit annotations and the README.

Codes are stable and bounded (they become metric labels); sentences carry the names, and are made by `Reason.why`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique
from typing import Final

from msgspec import Struct

ANNOTATION_CO_SCHEDULE: Final = "kubevirt-scheduler/co-schedule"
ANNOTATION_DECISION: Final = "kubevirt-scheduler/decision"
ANNOTATION_APPLIED_PATCH: Final = "kubevirt-scheduler/written"  # for programs: webhook.core.patch.applied_patch


class Why(Struct, frozen=True, gc=False):
    """A reason, and the names that its sentence tells; the sentence is made when somebody reads it."""

    reason: Reason
    names: Mapping[str, object]

    @property
    def sentence(self) -> str:
        """The reason as a sentence that names its evidence."""
        return self.reason.template.format_map(self.names)

    def __str__(self) -> str:
        return f"{self.reason.code}: {self.sentence}"


@unique
class Reason(Enum):
    """Every reason there is: code, sentence template. Members are grouped by the rule that gives them."""

    def __init__(self, code: str, template: str) -> None:
        self.code = code
        self.template = template

    def why(self, **names: object) -> Why:
        """This reason for these names: those that the template asks for."""
        return Why(self, names)

    # Rules 1-4: is this pod ours, and does it want us?
    NOT_A_POD = "NotAPod", "the object is {kind}, not a v1 Pod"
    NOT_A_CREATE = "NotACreate", "the operation is {operation}, not CREATE"
    SUBRESOURCE = "Subresource", "the request is for the subresource {subresource}"
    NOT_VIRT_LAUNCHER = "NotVirtLauncher", "the pod has no label kubevirt.io=virt-launcher"
    MIGRATION_TARGET = (
        "MigrationTarget",
        "the pod is a live-migration target (label kubevirt.io/migrationJobUID)",
    )
    MIGRATION_RECEIVER = (
        "MigrationReceiver",
        "the pod receives a decentralized migration (annotation kubevirt.io/create-migration-target)",
    )
    EPHEMERAL_PROVISIONING = (
        "EphemeralProvisioning",
        "the pod only provisions a disk (annotation kubevirt.io/ephemeral-provisioning)",
    )
    NODE_ALREADY_SET = "NodeAlreadySet", "spec.nodeName is already {node}: the scheduler is not asked"
    NOT_OPTED_IN = "NotOptedIn", f"the pod has no annotation {ANNOTATION_CO_SCHEDULE}"
    OPTED_OUT = "OptedOut", f"the annotation {ANNOTATION_CO_SCHEDULE} is false"
    MODE_OFF = "ModeOff", f"the cluster's mode is off, and {ANNOTATION_CO_SCHEDULE} is true"
    BAD_CO_SCHEDULE = (
        "BadCoSchedule",
        (
            f"annotation {ANNOTATION_CO_SCHEDULE}: got {{value}}, expected true, false, required or preferred; "
            "the pod is left as it is: correct spec.template.metadata.annotations of the VirtualMachine"
        ),
    )

    # Rule 5: from each claim to its share-manager. In chain order: the further down, the closer to a node.
    NO_CLAIMS = "NoClaims", "the pod has no PersistentVolumeClaim volume"
    EPHEMERAL_CLAIM = (
        "EphemeralClaim",
        "volume {volume} is a generic ephemeral volume: its claim does not exist before the pod does",
    )
    CLAIM_LOOKUP_FAILED = "ClaimLookupFailed", "claim {claim}: its {kind} could not be read ({problem})"
    CLAIM_NOT_FOUND = "ClaimNotFound", "claim {claim}: no such PersistentVolumeClaim in namespace {namespace}"
    CLAIM_NOT_BOUND = "ClaimNotBound", "claim {claim}: not bound to a PersistentVolume (phase {phase})"
    VOLUME_NOT_FOUND = "VolumeNotFound", "claim {claim}: its PersistentVolume {volume} does not exist"
    CLAIM_NOT_READ_WRITE_MANY = (
        "ClaimNotReadWriteMany",
        "claim {claim}: access modes {modes}, and a share-manager serves only ReadWriteMany and ReadOnlyMany",
    )
    VOLUME_NOT_LONGHORN = (
        "VolumeNotLonghorn",
        "claim {claim}: PersistentVolume {volume} is not one of driver.longhorn.io",
    )
    VOLUME_IS_BLOCK = (
        "VolumeIsBlock",
        "claim {claim}: volume {volume} is {what}, attached as a block device without a share-manager",
    )
    VOLUME_STRICT_LOCAL = (
        "VolumeStrictLocal",
        (
            "claim {claim}: volume {volume} is strict-local, attached without a share-manager "
            "and only on the node of its replica, which is not known"
        ),
    )
    SHARE_MANAGER_NOT_FOUND = "ShareManagerNotFound", "claim {claim}: volume {volume} has no ShareManager"
    SHARE_MANAGER_NO_NODE = (
        "ShareManagerNoNode",
        "claim {claim}: the share-manager of volume {volume} is on no node yet (state {state})",
    )
    NODE_NAME_INVALID = (
        "NodeNameInvalid",
        "claim {claim}: the share-manager of volume {volume} names {node}, which can't be a node's name",
    )

    # Rule 6: evidence of a node, weakest first.
    SHARE_MANAGER_POD_UNREAD = (
        "ShareManagerPodUnread",
        (
            "claim {claim}: the share-manager pod of volume {volume} could not be read ({problem}); "
            "ShareManager ownerID {node} is a hint"
        ),
    )
    SHARE_MANAGER_UNSCHEDULED = (
        "ShareManagerUnscheduled",
        (
            "claim {claim}: the share-manager pod of volume {volume} is not scheduled yet; "
            "ShareManager ownerID {node} is a hint"
        ),
    )
    SHARE_MANAGER_OWNER = (
        "ShareManagerOwner",
        "claim {claim}: ShareManager {volume} is {state}, ownerID {node}",
    )
    SHARE_MANAGER_POD = (
        "ShareManagerPod",
        "claim {claim}: pod share-manager-{volume} is on node {node}{besides}",
    )

    # A share-manager pod: from its volume to the VMs that use it. The further down, the closer to a node.
    NOT_SHARE_MANAGER = (
        "NotShareManager",
        "the pod is no share-manager of Longhorn's (namespace {namespace}, label longhorn.io/component)",
    )
    VOLUME_LOOKUP_FAILED = "VolumeLookupFailed", "volume {volume}: its {kind} could not be read ({problem})"
    VOLUME_UNCLAIMED = "VolumeUnclaimed", "volume {volume}: no PersistentVolume with this handle has a claim"
    NO_CONSUMER = (
        "NoConsumer",
        "claim {claim}: no virt-launcher pod is known that uses it, and no csi-attacher ticket leads to one",
    )
    CONSUMER_NOT_OPTED_IN = "ConsumerNotOptedIn", "claim {claim}: VM {vm} uses it, and {because}"
    CONSUMER_ON_NO_NODE = (
        "ConsumerOnNoNode",
        "claim {claim}: VM {vm} uses it, and is on no node yet; no csi-attacher ticket names one",
    )
    ATTACHMENT_TICKET = (
        "AttachmentTicket",
        "claim {claim}: VM {vm} uses it, and a csi-attacher ticket of volume {volume} names node {node}",
    )
    CONSUMER_PINNED = "ConsumerPinned", "claim {claim}: VM {vm} uses it, and its pod {pod} may only run on node {node}"
    CONSUMER_LEAVING = (
        "ConsumerLeaving",
        "claim {claim}: VM {vm} uses it, and its terminating pod {pod} is on node {node}",
    )
    CONSUMER_ON_NODE = "ConsumerOnNode", "claim {claim}: VM {vm} uses it, and its pod {pod} is on node {node}"

    # Rule 7: may this pod run on that node?
    NODE_LOOKUP_FAILED = "NodeLookupFailed", "node {node}: its {kind} could not be read ({problem})"
    NODE_NOT_FOUND = "NodeNotFound", "node {node} does not exist"
    NODE_BEING_DELETED = "NodeBeingDeleted", "node {node} is being deleted"
    NODE_NOT_READY = "NodeNotReady", "node {node} is not Ready"
    NODE_LEAVING = "NodeLeaving", "node {node} is about to be lost: it has the taint {taint}"
    NODE_CORDONED = "NodeCordoned", "node {node} is cordoned"
    TAINT_NOT_TOLERATED = "TaintNotTolerated", "node {node} has the taint {taint}, which the pod does not tolerate"
    NODE_SELECTOR_MISMATCH = (
        "NodeSelectorMismatch",
        "node {node} does not have the label {label} of the pod's nodeSelector",
    )
    VOLUME_AFFINITY_MISMATCH = (
        "VolumeAffinityMismatch",
        "PersistentVolume {volume} of claim {claim} can't be used on node {node}",
    )
    VOLUME_ZONE_MISMATCH = (
        "VolumeZoneMismatch",
        "PersistentVolume {volume} of claim {claim} is labelled for another zone or region than node {node}",
    )
    NODE_AFFINITY_MISMATCH = (
        "NodeAffinityMismatch",
        "the pod's own required node affinity excludes node {node}",
    )
    LONGHORN_NOT_READY = (
        "LonghornNotReady",
        "Longhorn is not ready on node {node} (nodes.longhorn.io {state}), so no volume can be attached there",
    )
    DATA_ENGINE_DISABLED = (
        "DataEngineDisabled",
        (
            "node {node} is labelled node.longhorn.io/disable-v2-data-engine=true, "
            "so volume {volume} of data engine v2 can't be attached there"
        ),
    )
    PODS_UNKNOWN = "PodsUnknown", "what the pods on node {node} leave free is not known: {problem}"
    NO_ROOM = (
        "NoRoom",
        "node {node} has no room: {resource} {asked} is asked for, {used} of {allocatable} is taken{headroom}",
    )
    NO_SHARE = (
        "NoShare",
        (
            "node {node} has room for this pod, and not for what each of the {replicas} replicas of the webhook may be "
            "drawing there: {resource} {asked} is asked for, {used} of {allocatable} is taken{headroom}"
        ),
    )
    OTHERS_ON_WAY = (
        "OthersOnWay",
        "{count} more pods are drawn to node {node}, and kube-scheduler has not looked at them yet",
    )
    CROWD_BEFORE = (
        "CrowdBefore",
        "several VMs were on their way to node {node} at once, and other replicas may not have seen the end of it yet",
    )
    NODE_CONTESTED = (
        "NodeContested",
        "{count} more pods are on their way to node {node}, and may be all that it has room for ({because})",
    )
    NODE_AWAITED = (
        "NodeAwaited",
        "a VM that may run on no other node waits for room on node {node} ({because})",
    )
    PORT_TAKEN = "PortTaken", "a pod on node {node} has the host port {port} already"
    VOLUMES_LIMITED = (
        "VolumesLimited",
        (
            "node {node} takes at most {limit} volumes of {driver}, that of claim {claim} among them, "
            "and how many are attached is not known"
        ),
    )
    SELECTOR_UNREADABLE = "SelectorUnreadable", "the pod's {rule} has a label selector that the scheduler can't read"
    TOPOLOGY_LABEL_MISSING = "TopologyLabelMissing", "node {node} has no label {key}, which the pod's {rule} needs"
    POD_AFFINITY_UNMET = (
        "PodAffinityUnmet",
        "no pod that the pod's required pod affinity asks for ({pods}) is in the same {key} as node {node}",
    )
    POD_ANTI_AFFINITY = (
        "PodAntiAffinity",
        "a pod that the pod's required anti-affinity keeps away from ({pods}) is in the same {key} as node {node}",
    )
    REPELLED = (
        "Repelled",
        "a pod in the same {key} as node {node} has a required anti-affinity against pods such as this one ({pods})",
    )
    SPREAD_SKEW = (
        "SpreadSkew",
        (
            "node {node} would be in a {key} with {count} pods of the pod's DoNotSchedule topology spread, "
            "another {key} has {least}, and maxSkew is {most}"
        ),
    )
    SPREAD_DOMAINS = (
        "SpreadDomains",
        (
            "node {node} would be in a {key} with {count} pods of the pod's DoNotSchedule topology spread, which "
            "allows {most} where there are fewer than {wanted} of them (minDomains), and a pin leaves but one"
        ),
    )
    NAMESPACES_UNKNOWN = (
        "NamespacesUnknown",
        "whether {rule} refuses node {node} depends on labels of namespaces, which are not known",
    )
    NEIGHBOUR_EXPECTED = (
        "NeighbourExpected",
        "whether {rule} refuses node {node} depends on a pod that is not there yet",
    )
    NEIGHBOUR_ON_UNKNOWN_NODE = (
        "NeighbourOnUnknownNode",
        "whether {rule} refuses node {node} depends on a pod on node {other}, which is not known",
    )
    LABEL_NOT_KEPT = "LabelNotKept", "{rule} selects pods by label {key}, which is not kept of other pods"
    TOO_MANY_NEIGHBOURS = (
        "TooManyNeighbours",
        "{rule} concerns more pods or nodes than one admission may look at (a budget of {most} steps)",
    )
    NODE_DELINQUENT = "NodeDelinquent", "Longhorn itself prefers to keep its pod away from node {node}"
    NODE_FEASIBLE = "NodeFeasible", "the pod may run on node {node}"

    # Rule 7, of the pod itself: rules that are not evaluated, so a hard pin could strand it.
    INTER_POD_AFFINITY = "InterPodAffinity", "the pod has required inter-pod {which}"
    TOPOLOGY_SPREAD = "TopologySpread", "the pod has a DoNotSchedule topology spread over {key}"
    SCHEDULING_GATED = (
        "SchedulingGated",
        "the pod has the scheduling gate {gate}, and what its node will have free when that is lifted is not known",
    )
    INDIVISIBLE = (
        "Indivisible",
        (
            "the pod's {what} admits one such pod on a node, and each of the {replicas} replicas of the webhook may be "
            "asked about one at this moment"
        ),
    )
    RESOURCE_CLAIMS = "ResourceClaims", "the pod claims devices (spec.resourceClaims) that only some nodes may have"
    TOO_MANY_TERMS = "TooManyTerms", "the pod's required node affinity has more than {limit} terms"

    # Rule 8, and what is beyond the rules.
    UNCONFIRMED = "Unconfirmed", "the evidence may be out of date, and could not be confirmed: {staleness}"
    PREFERRED_MODE = "PreferredMode", "mode preferred, as {who} asks"
    STATE_CLAIM = (
        "StateClaim",
        "claim {claim} holds no disk, but what KubeVirt keeps of the VM (TPM, EFI): that never requires a node",
    )
    PATCH_NOT_PROVEN = "PatchNotProven", "the patch could not be shown to apply ({problem}); please report this"
    ANNOTATIONS_FULL = (
        "AnnotationsFull",
        "the pod's annotations leave no room for the record of what would be written (Kubernetes takes 256 KiB in all)",
    )
    INTERNAL_ERROR = "InternalError", "the webhook failed on this pod ({problem}); please report this"

    # A VM as it is now (status, metrics): of one that is on no node. The others have a claim's reason.
    VM_NOT_SCHEDULED = "VmNotScheduled", "pod {pod} is on no node yet"
    VM_UNSCHEDULABLE = "VmUnschedulable", "pod {pod} is on no node yet: kube-scheduler says: {message}"
    VM_STUCK = (
        "VmStuck",
        "pod {pod} may run on nodes that its affinity names, and kube-scheduler finds room on none: {message}",
    )


CHAIN_ORDER: Final = {reason: rank for rank, reason in enumerate(Reason)}
"""How far a claim came: of several findings without a node the furthest is the decision's reason."""
