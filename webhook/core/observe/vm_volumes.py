"""The claims of a VM, each with the node of its share-manager (VMVolumeStatus), and what made a VM apart from it.

Nothing unknown is guessed: a share-manager whose node is not certain yet is on no node. `why_apart` takes evidence
only: the annotations of both pods, and since when both are on their nodes. Where these do not tell the cause, the
answer is VM_CAUSE_NOT_KNOWN with what is known. Times are RFC 3339 and compare as text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from webhook.core import refs
from webhook.core.api.longhorn import SHARE_MANAGER_NODE_SELECTOR
from webhook.core.api.meta import time_or_none
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume
from webhook.core.evidence import share_managers
from webhook.core.evidence.facts import ClaimUse, Finding
from webhook.core.observe.past_decision import Decided, PastDecision
from webhook.core.reasons import Reason, Why
from webhook.core.view import ClusterView, NoObject

STARTING: Final = "starting"
UNREAD: Final = frozenset(reason.code for reason in Reason if reason.columns.unread)
"""The codes that say that an object could not be read."""


class VMVolumeStatus(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """One claim of a VM, as JSON has it.

    Attributes:
        claim: the claim's name.
        volume: Longhorn's volume, None if the claim leads to none.
        node: the share-manager's node, None if it is on none.
        share_manager: the state of the ShareManager.
        together: whether VM and share-manager are on one node, None if there is nothing to compare.
        since: when the share-manager's pod was bound to its node, None if unknown.
        reason: the code of the finding; for a share-manager without a live pod that this is so.
        because: the same as a sentence.
        confined: the node selector to which the volume's StorageClass confines its share-managers; empty for none.
        use: what the VM uses the claim for, as ClaimUse names it. Only a disk of the VM's own is compared with the
            VM's node.
    """

    claim: str
    volume: str | None
    node: str | None
    share_manager: str | None
    together: bool | None
    since: str | None
    reason: str
    because: str
    confined: str = ""
    use: str = ClaimUse.OWN.name.lower()

    @property
    def unread(self) -> bool:
        """Whether an object on the way from the claim to the node could not be read."""
        return self.reason in UNREAD

    @property
    def is_own_disk(self) -> bool:
        """Whether the VM's state counts the claim."""
        return ClaimUse[self.use.upper()].is_own_disk


def volumes_of(pod: Pod, view: ClusterView) -> tuple[VMVolumeStatus, ...]:
    """Return the status of each claim."""
    findings = share_managers.find_share_managers(pod, pod.metadata.namespace or "", view)
    return tuple(_volume(finding, pod.spec.node_name, view) for finding in findings)


def has_share_manager(volumes: Iterable[VMVolumeStatus]) -> bool:
    """Whether a disk of a VM has a share-manager, or may have one that could not be read.

    A VM gains nothing by the share-manager of a CD-ROM or of KubeVirt's own claim (TPM, EFI).
    """
    disks = (volume for volume in volumes if ClaimUse[volume.use.upper()] >= ClaimUse.SHARED)
    return any(volume.share_manager or volume.node or volume.unread for volume in disks)


def _volume(finding: Finding, vm_node: str | None, view: ClusterView) -> VMVolumeStatus:
    handle = finding.volume_handle
    share_manager = NoObject.NOT_FOUND if handle is None else view.get(refs.share_manager(handle))
    status = None if isinstance(share_manager, NoObject) else share_manager.status
    state = status.state if status else None
    node, why = finding.node if finding.firm else None, finding.why
    if why.reason is Reason.SHARE_MANAGER_OWNER:
        # No live pod: nothing serves the volume there. The ownerID is interim while the share-manager starts. Longhorn
        # also leaves ShareManagers `running` for hours after their pod is gone (longhorn/longhorn#7684, #9828).
        reason = Reason.SHARE_MANAGER_NO_NODE if state == STARTING else Reason.VM_SHARE_MANAGER_POD_GONE
        node, why = None, reason.why(claim=finding.claim, volume=handle, state=state or "absent")
    own = finding.use.is_own_disk
    if node and not own:
        why = finding.why_not_required
    return VMVolumeStatus(
        claim=finding.claim,
        volume=handle,
        node=node,
        share_manager=state,
        together=None if node is None or not vm_node or not own else node == vm_node,
        since=_serving_since(handle, view) if handle and node else None,
        reason=why.reason.code,
        because=why.sentence,
        confined=_confined(finding.persistent_volume),
        use=finding.use.name.lower(),
    )


def _confined(volume: PersistentVolume | None) -> str:
    csi = volume.spec.csi if volume and volume.spec else None
    return ((csi.volume_attributes if csi else None) or {}).get(SHARE_MANAGER_NODE_SELECTOR, "")


def _serving_since(handle: str, view: ClusterView) -> str | None:
    """Return when the share-manager's pod was bound to its node; None if the view has no such pod."""
    pod = view.get(refs.share_manager_pod(handle))
    return None if isinstance(pod, NoObject) else bound_or_waiting_since(pod)


def bound_or_waiting_since(pod: Pod) -> str | None:
    """Return when the pod was bound or began to wait for a node; without that condition when it was created."""
    return (pod.status and pod.status.scheduled_at) or time_or_none(pod.metadata.creation_timestamp)


_EXCLUDES: Final = frozenset(reason.code for reason in Reason if reason.columns.excludes)
_UNREADABLE: Final = "a reason that the annotation does not show"


class Apart(Struct, frozen=True, kw_only=True):
    """What is known of a VM and of a share-manager on another node.

    Attributes:
        node: the VM's node.
        since: since when the VM's pod has it; None if that is not known.
        past: the webhook's decision for the VM's pod.
        volume: the claim whose share-manager is on another node.
        steered: the webhook's decision for the share-manager's pod; None if there is no such pod.
        nodes: the nodes of all share-managers of the VM.
    """

    node: str
    since: str | None
    past: PastDecision
    volume: VMVolumeStatus
    steered: PastDecision | None
    nodes: tuple[str, ...]

    @property
    def migrated(self) -> bool:
        """Whether a live migration created the VM's pod."""
        return self.past.decided is Decided.MIGRATED

    @property
    def times_known(self) -> bool:
        """Whether both pods show since when they have their node."""
        return bool(self.since and self.volume.since)

    @property
    def excluded(self) -> bool:
        """Whether the node of one of both pods excluded the other pod, whatever runs there, when that was created."""
        return any(past.reason in _EXCLUDES for past in (self.past, self.steered) if past)

    @property
    def share_manager_later(self) -> bool:
        """Whether the share-manager took its node after the VM took its own."""
        return bool(self.since and self.volume.since and self.volume.since > self.since)

    @property
    def share_manager_moved(self) -> bool:
        """Whether the share-manager was elsewhere when the VM's pod was created."""
        past = self.past
        if self.migrated and self.share_manager_later:
            return True  # a live migration has a running VM, and so a share-manager
        elsewhere = bool(past.nodes) and not past.more and self.volume.node not in past.nodes
        return elsewhere and (self.node in past.nodes or self.share_manager_later)


def why_apart(apart: Apart, *, asks_itself: bool) -> Why:
    """Return what made the VM apart from this share-manager, or what is known if that does not tell.

    `asks_itself`: whether the VM asks by its annotation. What else asks for it can be newer than its pod: the label of
    its Namespace, or the cluster's setting.
    """
    past, node, volume = apart.past, apart.node, apart.volume
    here = {"claim": volume.claim, "other": volume.node, "node": node, "at": apart.since}
    if apart.share_manager_moved:
        since = f" at {volume.since}" if volume.since else ""
        return Reason.VM_SHARE_MANAGER_MOVED.why(**{**here, "since": since, "before": _before(apart)})
    if apart.share_manager_later and not past.nodes:
        steering = _steering(apart.steered, node)
        return Reason.VM_SHARE_MANAGER_LATER.why(**here, since=volume.since, steering=steering)
    if node in apart.nodes:
        return Reason.VM_SHARE_MANAGERS_SPREAD.why(nodes=" and ".join(apart.nodes))
    if apart.migrated and apart.times_known:
        return Reason.VM_LIVE_MIGRATED.why(**here)
    return _by_the_start(apart, asks_itself=asks_itself) or Reason.VM_CAUSE_NOT_KNOWN.why(facts=_facts(apart))


def _by_the_start(apart: Apart, *, asks_itself: bool) -> Why | None:
    """Return why the decision at the VM's start has left the VM apart; None if it does not tell that."""
    past = apart.past
    if apart.migrated or (past.nodes and apart.volume.node not in past.nodes):
        return None
    if past.decided is Decided.PREFERRED and not past.more and apart.node not in past.nodes:
        return Reason.VM_PREFERRED.why(on=past.on, because=past.because or _UNREADABLE, node=apart.node)
    if past.decided is Decided.UNCHANGED and apart.times_known:
        return Reason.VM_LEFT_UNCHANGED.why(because=past.because or _UNREADABLE)
    if past.decided is Decided.NOTHING and apart.times_known:
        return Reason.VM_WEBHOOK_NOT_ASKED.why(unasked="" if asks_itself else ", or the VM did not ask yet")
    return None


def _before(apart: Apart) -> str:
    if not apart.past.nodes:
        return f"the VM was live-migrated to node {apart.node} at {apart.since}"
    return f"at the VM's start the webhook {_did(apart.past)}"


def _steering(steered: PastDecision | None, node: str) -> str:
    """Return what the webhook did with the share-manager's pod."""
    if steered is None or steered.decided is Decided.NOTHING:
        return "the share-manager's pod has no decision of the webhook"
    if node in steered.nodes:
        return f"for the share-manager's pod the webhook preferred {steered.on}, and kube-scheduler chose another node"
    return f"for the share-manager's pod the webhook {_did(steered)}"


def _did(past: PastDecision) -> str:
    if past.on:
        return f"{past.decided} {past.on}" + (f", because {past.because}" if past.because else "")
    if past.decided is Decided.UNCHANGED:
        return f"left the pod unchanged, because {past.because or _UNREADABLE}"
    return "was not asked" if past.decided is Decided.MIGRATED else "left no decision"


def _facts(apart: Apart) -> str:
    volume, start = apart.volume, "live migration" if apart.migrated else "start"
    return (
        f"the VM is on node {apart.node} since {apart.since or 'an unknown time'}, the share-manager of claim "
        f"{volume.claim} on node {volume.node} since {volume.since or 'an unknown time'}, and at the VM's {start} "
        f"the webhook {_did(apart.past)}"
    )
