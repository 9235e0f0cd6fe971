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


class Why(Struct, frozen=True):
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
        "claim {claim}: access modes {modes}, so no share-manager serves it",
    )
    VOLUME_NOT_LONGHORN = (
        "VolumeNotLonghorn",
        "claim {claim}: PersistentVolume {volume} is not one of driver.longhorn.io",
    )
    VOLUME_IS_BLOCK = (
        "VolumeIsBlock",
        "claim {claim}: volume {volume} is {what}, attached as a block device without a share-manager",
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

    # Rule 7: may this pod run on that node?
    NODE_LOOKUP_FAILED = "NodeLookupFailed", "node {node}: its {kind} could not be read ({problem})"
    NODE_NOT_FOUND = "NodeNotFound", "node {node} does not exist"
    NODE_BEING_DELETED = "NodeBeingDeleted", "node {node} is being deleted"
    NODE_NOT_READY = "NodeNotReady", "node {node} is not Ready"
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
    NODE_FEASIBLE = "NodeFeasible", "the pod may run on node {node}"

    # Rule 7, of the pod itself: rules that are not evaluated, so a hard pin could strand it.
    INTER_POD_AFFINITY = "InterPodAffinity", "the pod has required inter-pod {which}"
    TOPOLOGY_SPREAD = "TopologySpread", "the pod has a DoNotSchedule topology spread over {key}"
    RESOURCE_CLAIMS = "ResourceClaims", "the pod claims devices (spec.resourceClaims) that only some nodes may have"
    TOO_MANY_TERMS = "TooManyTerms", "the pod's required node affinity has more than {limit} terms"

    # Rule 8, and what is beyond the rules.
    UNCONFIRMED = "Unconfirmed", "the evidence may be out of date, and could not be confirmed: {doubt}"
    PREFERRED_MODE = "PreferredMode", "mode preferred, as {who} asks"
    PATCH_NOT_PROVEN = "PatchNotProven", "the patch could not be shown to apply ({problem}); please report this"
    INTERNAL_ERROR = "InternalError", "the webhook failed on this pod ({problem}); please report this"


CHAIN_ORDER: Final = {reason: rank for rank, reason in enumerate(Reason)}
"""How far a claim came: of several findings without a node the furthest is the decision's reason."""
