"""Reason code -> sentence: the one table behind decisions, annotations, logs, audit annotations and docs.

Codes are stable, and there is a fixed number of them, because they become metric labels. A sentence names the objects.
The rules have the numbers of webhook.core.admit.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique
from typing import Final

from msgspec import Struct

ANNOTATION_CO_SCHEDULE: Final = "kubevirt-scheduler/co-schedule"
LABEL_CO_SCHEDULE: Final = ANNOTATION_CO_SCHEDULE  # of a Namespace
ANNOTATION_DECISION: Final = "kubevirt-scheduler/decision"
ANNOTATION_OPT_IN_ALL: Final = "kubevirt-scheduler/opt-in-all"  # of the webhook configuration
ANNOTATION_APPLIED_PATCH: Final = "kubevirt-scheduler/written"  # for programs: webhook.core.patch.applied_patch
ANNOTATION_NO_EVICTION: Final = "descheduler.alpha.kubernetes.io/prefer-no-eviction"  # pkg/descheduler/evictions/utils


SENTENCE_MAX_CHARS: Final = 1024
"""Of each sentence, which is about an object of anybody: a template has 200 characters at most, and three long names.
As many has the message of an Event (pkg/apis/core/validation/events.go, NoteLengthLimit)."""
_CUT: Final = "..."


def shortened(sentence: str) -> str:
    """Return the sentence with at most SENTENCE_MAX_CHARS; nothing decides by a sentence."""
    return sentence if len(sentence) <= SENTENCE_MAX_CHARS else sentence[: SENTENCE_MAX_CHARS - len(_CUT)] + _CUT


class Why(Struct, frozen=True, gc=False):
    """A reason and the names in its sentence. The sentence is built only when it is read."""

    reason: Reason
    names: Mapping[str, object]

    @property
    def sentence(self) -> str:
        """The reason as a sentence with the names of the objects."""
        return shortened(self.reason.template.format_map(self.names))

    def __str__(self) -> str:
        return f"{self.reason.code}: {self.sentence}"


class Columns(Struct, frozen=True, kw_only=True, gc=False):
    """What the code asks of a reason. Each column is false for most reasons.

    Attributes:
        other_pod: the entry is not for such a pod, in which nothing is touched.
        not_opted_in: nobody said whether the VM takes part.
        opted_out: somebody said that the VM takes no part.
        wrong_value: somebody tried to opt in, by a value that means nothing. The client gets a warning.
        unread: an object could not be read.
        no_share_manager: the volume is attached on the pod's own node.
        fits: kube-scheduler would take this node now; other pods can still take its resources first.
        excludes: kube-scheduler never takes this node, as long as the node and the pod are as they are.
        intended: the VM has no share-manager, or not yet; or somebody wants it so. The Event is no warning.
        fault: the webhook has a fault.
    """

    other_pod: bool = False
    not_opted_in: bool = False
    opted_out: bool = False
    wrong_value: bool = False
    unread: bool = False
    no_share_manager: bool = False
    fits: bool = False
    excludes: bool = False
    intended: bool = False
    fault: bool = False


@unique
class Reason(Enum):
    """Every reason: the template of its sentence, and its columns. Its code is the member's name in camel case.

    The members are grouped by rule.
    """

    def __init__(self, template: str, columns: Columns = Columns()) -> None:  # noqa: B008 - it is frozen
        self.code = "".join(word.capitalize() for word in self.name.split("_"))
        self.template = template
        self.columns = columns

    def why(self, **names: object) -> Why:
        """Return this reason with the names that its template needs."""
        return Why(self, names)

    # Rules 1 to 4: does the webhook place this pod, and does the VM ask for it?
    NOT_A_POD = "the object is {kind}, not a v1 Pod"
    NOT_A_CREATE = "the operation is {operation}, not CREATE"
    SUBRESOURCE = "the request is for the subresource {subresource}"
    POD_TOO_LARGE = "the pod has {count} {what}; the webhook evaluates a pod with at most {most}"
    TEXT_TOO_LONG = "{what} of the pod has more than {most} characters; the webhook evaluates no such pod"
    NOT_VIRT_LAUNCHER = "the pod has no label kubevirt.io=virt-launcher", Columns(other_pod=True)
    MIGRATION_TARGET = (
        "the pod is a live-migration target (label kubevirt.io/migrationJobUID)",
        Columns(other_pod=True),
    )
    MIGRATION_RECEIVER = (
        "the pod receives a decentralized migration (annotation kubevirt.io/create-migration-target)",
        Columns(other_pod=True),
    )
    EPHEMERAL_PROVISIONING = (
        "the pod only provisions a disk (annotation kubevirt.io/ephemeral-provisioning)",
        Columns(other_pod=True),
    )
    NODE_ALREADY_SET = "spec.nodeName is already {node}, so kube-scheduler does not choose a node"

    NO_OWNER = "the pod's ownerReferences do not name the {kind} that the pod is created for, by its name and uid"
    OWNER_NOT_FOUND = "the cluster has no {kind} {owner} with the uid that the pod's ownerReferences name"
    OWNER_LOOKUP_FAILED = (
        "whether {kind} {owner}, the pod's owner, exists is not known: it could not be read ({problem})",
        Columns(unread=True),
    )
    NOT_OPTED_IN = (
        f"the pod has no annotation {ANNOTATION_CO_SCHEDULE}, and its Namespace no such label",
        Columns(not_opted_in=True),
    )
    OPTED_OUT = f"the annotation {ANNOTATION_CO_SCHEDULE} is false", Columns(opted_out=True)
    MODE_OFF = f"the cluster's mode is off, and {ANNOTATION_CO_SCHEDULE} is true"
    BAD_CO_SCHEDULE = (
        (
            f"annotation {ANNOTATION_CO_SCHEDULE}: got {{value}}, expected true, false, required or preferred; "
            "the pod stays unchanged; correct spec.template.metadata.annotations of the VirtualMachine"
        ),
        Columns(wrong_value=True),
    )

    NAMESPACE_OPTED_OUT = (
        f"the pod has no annotation {ANNOTATION_CO_SCHEDULE}, and this label of Namespace {{namespace}} is false",
        Columns(opted_out=True),
    )
    BAD_NAMESPACE_LABEL = (
        (
            f"label {LABEL_CO_SCHEDULE} of Namespace {{namespace}}: got {{value}}, expected true, false, required or "
            "preferred; the pod stays unchanged; correct the label, or annotate the VM"
        ),
        Columns(wrong_value=True),
    )
    NAMESPACE_LOOKUP_FAILED = (
        (
            f"the pod has no annotation {ANNOTATION_CO_SCHEDULE}, and whether a label of Namespace {{namespace}} opts "
            "it in is not known: the Namespace could not be read ({problem})"
        ),
        Columns(unread=True),
    )

    # Rule 5: from each claim to its share-manager. The further down, the closer to a node.
    NO_CLAIMS = "the pod has no PersistentVolumeClaim volume", Columns(intended=True)
    EPHEMERAL_CLAIM = (
        "volume {volume} is a generic ephemeral volume, whose claim is created after the pod",
        Columns(intended=True),
    )
    CLAIM_LOOKUP_FAILED = ("claim {claim}: its {kind} could not be read ({problem})", Columns(unread=True))
    CLAIM_NOT_FOUND = "claim {claim}: namespace {namespace} has no PersistentVolumeClaim of this name"
    CLAIM_NOT_BOUND = ("claim {claim}: it is not bound to a PersistentVolume (phase {phase})", Columns(intended=True))
    VOLUME_NOT_FOUND = "claim {claim}: its PersistentVolume {volume} does not exist"
    CLAIM_NOT_READ_WRITE_MANY = (
        "claim {claim}: its access modes are {modes}; a share-manager serves only ReadWriteMany and ReadOnlyMany",
        Columns(no_share_manager=True, intended=True),
    )
    VOLUME_NOT_LONGHORN = (
        "claim {claim}: PersistentVolume {volume} is not a volume of driver.longhorn.io",
        Columns(no_share_manager=True, intended=True),
    )
    VOLUME_IS_BLOCK = (
        "claim {claim}: volume {volume} is {what}; Longhorn attaches it as a block device, without a share-manager",
        Columns(no_share_manager=True, intended=True),
    )
    VOLUME_STRICT_LOCAL = (
        (
            "claim {claim}: volume {volume} is strict-local; Longhorn attaches it without a share-manager, "
            "only on the node of its replica, which the webhook does not know"
        ),
        Columns(no_share_manager=True, intended=True),
    )
    CDROM_CLAIM = "claim {claim} is a CD-ROM of the VM, whose share-manager pulls the VM nowhere"
    SHARE_MANAGER_NOT_FOUND = ("claim {claim}: volume {volume} has no ShareManager", Columns(intended=True))
    SHARE_MANAGER_NO_NODE = (
        "claim {claim}: the share-manager of volume {volume} is on no node yet (state {state})",
        Columns(intended=True),
    )
    NODE_NAME_INVALID = (
        "claim {claim}: the share-manager of volume {volume} names {node}, which is not a valid node name"
    )

    # Rule 6: the evidence of a node, weakest first.
    SHARE_MANAGER_POD_UNREAD = (
        (
            "claim {claim}: the share-manager pod of volume {volume} could not be read ({problem}); "
            "ShareManager ownerID {node} is only a hint"
        ),
        Columns(unread=True),
    )
    SHARE_MANAGER_UNSCHEDULED = (
        "claim {claim}: the share-manager pod of volume {volume} is not scheduled yet; "
        "ShareManager ownerID {node} is only a hint"
    )
    SHARE_MANAGER_OWNER = "claim {claim}: ShareManager {volume} is {state}, ownerID {node}"
    SHARE_MANAGER_POD = "claim {claim}: pod share-manager-{volume} is on node {node}{besides}"

    # Rules 2, 5 and 6 for a share-manager pod: from its volume to the VMs that use it. The further down, the closer.
    NOT_SHARE_MANAGER = (
        "the pod is not a share-manager pod of Longhorn (namespace {namespace}, label longhorn.io/component)",
        Columns(other_pod=True),
    )
    VOLUME_LOOKUP_FAILED = ("volume {volume}: its {kind} could not be read ({problem})", Columns(unread=True))
    VOLUME_UNCLAIMED = "volume {volume}: no PersistentVolume with this handle has a claim"
    NO_CONSUMER = "claim {claim}: no known virt-launcher pod uses it, and no csi-attacher ticket leads to such a pod"
    CONSUMER_NOT_OPTED_IN = ("claim {claim}: VM {vm} uses it, and {because}", Columns(not_opted_in=True))
    CONSUMER_ON_NO_NODE = "claim {claim}: VM {vm} uses it, and is on no node yet; no csi-attacher ticket names a node"
    SHARE_MANAGER_OF_OTHER_CLAIM = (
        "claim {claim}: VM {vm} uses it, and its own node can't take the share-manager; the share-manager of its "
        "claim {other} is on node {node}"
    )
    ATTACHMENT_TICKET = "claim {claim}: VM {vm} uses it, and a csi-attacher ticket of volume {volume} names node {node}"
    CONSUMER_PINNED = "claim {claim}: VM {vm} uses it, and its pod {pod} may only run on node {node}"
    CONSUMER_TERMINATING = "claim {claim}: VM {vm} uses it, and its terminating pod {pod} is on node {node}"
    CONSUMER_ON_NODE = "claim {claim}: VM {vm} uses it, and its pod {pod} is on node {node}"

    # Rule 7: can this pod run on that node?
    NODE_LOOKUP_FAILED = ("node {node}: its {kind} could not be read ({problem})", Columns(unread=True))
    NODE_NOT_FOUND = "node {node} does not exist"
    NODE_BEING_DELETED = "node {node} is being deleted"
    NODE_NOT_READY = "node {node} is not Ready"
    NODE_LEAVING = "node {node} is being drained or removed: it has the taint {taint}"
    NODE_CORDONED = "node {node} is cordoned"
    TAINT_NOT_TOLERATED = ("node {node} has the taint {taint}, which the pod does not tolerate", Columns(excludes=True))
    TAINT_TOLERATED_WITHOUT_KEY = (
        "node {node} has the taint {taint}, which only a toleration without a key covers; it covers the taint of a "
        "drain, too"
    )
    NODE_SELECTOR_MISMATCH = (
        "node {node} does not have the label {label} of the pod's nodeSelector",
        Columns(excludes=True),
    )
    VOLUME_AFFINITY_MISMATCH = (
        "PersistentVolume {volume} of claim {claim} can't be used on node {node}",
        Columns(excludes=True),
    )
    NODE_AFFINITY_MISMATCH = ("the pod's own required node affinity excludes node {node}", Columns(excludes=True))
    LONGHORN_NOT_READY = (
        "Longhorn is not ready on node {node} (nodes.longhorn.io {state}), so no volume can be attached there"
    )
    DATA_ENGINE_DISABLED = (
        "node {node} is labeled node.longhorn.io/disable-v2-data-engine=true, "
        "so volume {volume} of data engine v2 can't be attached there"
    )
    DRIVER_MISSING = (
        "kubelet on node {node} has no CSI driver {driver} (see its CSINode), "
        "so it can't mount the volume of claim {claim}"
    )
    NFS_CLIENT_MISSING = (
        "node {node} lacks an NFS client (nodes.longhorn.io, condition {condition}: {word}), "
        "so nothing that a share-manager serves can be mounted there"
    )
    ENCRYPTION_MISSING = (
        "node {node} lacks what opens encrypted volumes (nodes.longhorn.io, condition {condition}: {word})"
    )
    MOUNT_UNCERTAIN = (
        "whether node {node} lacks {what} is not certain (nodes.longhorn.io, condition {condition}: {word}{besides})"
    )
    FREE_RESOURCES_UNKNOWN = ("the free resources of node {node} are not known: {problem}", Columns(unread=True))
    NO_ROOM = "node {node} has too little of {resource}: {asked} is requested, {used} of {allocatable} is taken"
    REPLICA_SHARE_FULL = (
        (
            "node {node} has too little of {resource} for a pod from each of the {replicas} replicas of the webhook: "
            "{asked} is requested, {used} of {allocatable} is taken"
        ),
        Columns(fits=True),
    )
    PODS_ON_THE_WAY = (
        "pods are on the way to node {node} ({count}); kube-scheduler has not evaluated them yet",
        Columns(fits=True),
    )
    NODE_MAY_FILL_UP = "pods are on the way to node {node} ({count}), and can use up its free resources ({because})"
    PINNED_VM_WAITS = (
        "a VM that may run only on node {node} is not bound yet, and the pod's required anti-affinity ({pods}) can "
        "keep it from there"
    )
    VOLUME_COUNT_UNKNOWN = (
        "claim {claim} has a volume of {driver}; node {node} takes at most {limit} of them, "
        "and how many are attached is not known"
    )
    EXCLUDED_BY_POD = (
        "a pod that is, or will be, in the same {key} as node {node} has a required anti-affinity that can be meant "
        "for this pod ({pods})"
    )
    POD_NOT_COMPARED = (
        "a pod on {which} has more than {most} bytes in a field that can exclude this pod, and is not compared with it"
    )
    MAY_BE_EXCLUDED_BY_POD = (
        "a pod on a node that is not known has a required anti-affinity over {key}, which node {node} has, that can "
        "exclude this pod ({pods})"
    )
    NODE_DELINQUENT = "the share-manager pod has a preference of its own, from Longhorn, against node {node}"
    NODE_FEASIBLE = "the pod can run on node {node}", Columns(fits=True)

    # Rule 7, for all nodes: what is not evaluated. The pod might not start on a required node.
    RULE_NOT_EVALUATED = (
        "the pod has {what}; the webhook does not evaluate what kube-scheduler's plugin {plugin} makes of it"
    )
    TOO_MANY_EXISTING_TERMS = (
        "the webhook compares a pod with at most {terms} required anti-affinity terms of other pods, on {nodes} nodes"
    )
    TOO_MANY_TERMS = "the pod's required node affinity has more than {limit} terms"

    # Rule 8, and failures.
    EVIDENCE_NOT_CONFIRMED = "the evidence can be out of date, because the API server did not confirm it: {staleness}"
    PREFERRED_MODE = "{who} asks for mode preferred"
    STATE_CLAIM = (
        "claim {claim} holds only the state that KubeVirt stores of the VM (TPM, EFI), which never requires a node"
    )
    SHARED_CLAIM = (
        "claim {claim} never requires a node, because it is not the VM's alone: its volume is also used by {other}"
    )
    HOTPLUGGED_CLAIM = (
        "claim {claim} is hotpluggable: KubeVirt attaches it after the VM's pod has its node, so it never requires "
        "a node"
    )
    OTHER_SCHEDULER = (
        "the scheduler {scheduler} (spec.schedulerName) can refuse the node by rules that the webhook does not know"
    )
    START_FAILURES = (
        "VirtualMachine {vm} has {count} failed starts in a row (status.startFailure); after one no node is required, "
        "after more none is preferred either"
    )
    AUDIT_REQUIRED = (
        "the webhook only audits (--audit=on); it would write a requirement: {decision}",
        Columns(intended=True),
    )
    AUDIT_PREFERRED = (
        "the webhook only audits (--audit=on); it would write a preference: {decision}",
        Columns(intended=True),
    )
    PATCH_DOES_NOT_APPLY = ("the patch does not apply ({problem}); please report this", Columns(fault=True))
    ANNOTATIONS_FULL = (
        "the pod's annotations leave too little space for the record of the patch (Kubernetes accepts 256 KiB in all)"
    )
    INTERNAL_ERROR = ("the webhook failed on this pod ({problem}); please report this", Columns(fault=True))

    # A VM as it is now (status, metrics), if it is on no node. A VM that is together has the reason of a claim.
    VM_POD_NOT_KNOWN = (
        "in which of its pods the VM runs is not known: VirtualMachineInstance {vm} could not be read ({problem})",
        Columns(unread=True),
    )
    VM_POD_NOT_FOUND = (
        "whether the VM runs is not known: its VirtualMachineInstance exists, and no pod of it was found",
        Columns(unread=True),
    )
    VM_NOT_SCHEDULED = "pod {pod} is on no node yet"
    VM_OTHER_SCHEDULER = "pod {pod} is on no node yet, and waits for the scheduler {scheduler} (spec.schedulerName)"
    VM_UNSCHEDULABLE = "pod {pod} is on no node yet: kube-scheduler reports: {message}"
    VM_STUCK = "pod {pod} may run only on the nodes that its affinity names, and fits none: {message}"
    VM_NOT_RUNNING = "pod {pod} has had node {node} since {since}, and does not run: {waiting}"
    VM_NODE_NOT_READY = "node {node} is not Ready, so KubeVirt can neither migrate nor restart the VM"
    VM_POD_TERMINATING = (
        "pod {pod} is being deleted, so KubeVirt can neither migrate nor restart the VM until it is gone"
    )
    VM_SHARE_MANAGER_POD_GONE = (
        "claim {claim}: its share-manager's pod is gone; ShareManager {volume} still says {state}"
    )

    # What made a VM apart from a share-manager, by the times and annotations of both pods.
    VM_SHARE_MANAGER_MOVED = "{before}; since then the share-manager of claim {claim} has taken node {other}{since}"
    VM_SHARE_MANAGER_LATER = (
        "the share-manager of claim {claim} took node {other} at {since}, after the VM had taken node {node} at "
        "{at}; {steering}"
    )
    VM_SHARE_MANAGERS_SPREAD = "the VM's share-managers are on nodes {nodes}, and the VM can be on only one of them"
    VM_LIVE_MIGRATED = (
        "the VM was live-migrated to node {node} at {at}, and the share-manager of claim {claim} stayed on node "
        "{other}; for the target the webhook was not asked"
    )
    VM_PREFERRED = (
        "at the VM's start the webhook preferred {on} and did not require it, because {because}; kube-scheduler "
        "chose node {node}"
    )
    VM_LEFT_UNCHANGED = "at the VM's start the webhook left the pod unchanged, because {because}"
    VM_WEBHOOK_NOT_ASKED = (
        "the VM's pod has no decision of the webhook: at the VM's start the API server did not call the webhook, "
        "or got no answer{unasked}"
    )
    VM_CAUSE_NOT_KNOWN = "it is not known why: {facts}"


CHAIN_ORDER: Final = {reason: rank for rank, reason in enumerate(Reason)}
"""How far a claim led. If no finding has a node, the furthest one is the reason of the decision."""
