"""What made a VM apart from its share-manager.

Evidence only: the annotations of both pods, and since when both are on their nodes. Where these do not tell the cause,
the answer is VM_CAUSE_NOT_KNOWN with what is known. Times are RFC 3339 and compare as text.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from webhook.core.observe.past_decision import Decided, PastDecision
from webhook.core.observe.vm_volumes import VMVolumeStatus
from webhook.core.reasons import Reason, Why

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


def why_apart(apart: Apart) -> Why:
    """Return what made the VM apart from this share-manager, or what is known if that does not tell."""
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
    return _by_the_start(apart) or Reason.VM_CAUSE_NOT_KNOWN.why(facts=_facts(apart))


def _by_the_start(apart: Apart) -> Why | None:
    """Return why the decision at the VM's start has left the VM apart; None if it does not tell that."""
    past = apart.past
    if apart.migrated or (past.nodes and apart.volume.node not in past.nodes):
        return None
    if past.decided is Decided.PREFERRED and not past.more and apart.node not in past.nodes:
        return Reason.VM_PREFERRED.why(on=past.on, because=past.because or _UNREADABLE, node=apart.node)
    if past.decided is Decided.UNCHANGED and apart.times_known:
        return Reason.VM_LEFT_UNCHANGED.why(because=past.because or _UNREADABLE)
    if past.decided is Decided.NOTHING and apart.times_known:
        return Reason.VM_WEBHOOK_NOT_ASKED.why()
    return None


def _before(apart: Apart) -> str:
    if not apart.past.nodes:
        return f"the VM was live-migrated to node {apart.node} at {apart.since}"
    return f"at the VM's start the webhook {_did(apart.past)}"


def _steering(steered: PastDecision | None, node: str) -> str:
    """Return what the webhook did with the share-manager's pod."""
    if steered is None or steered.decided is Decided.NOTHING:
        return "the API server did not call the webhook for the share-manager's pod, or got no answer"
    if node in steered.nodes:
        return f"for the share-manager's pod the webhook preferred {steered.on}, and kube-scheduler chose another node"
    return f"for the share-manager's pod the webhook {_did(steered)}"


def _did(past: PastDecision) -> str:
    if past.on:
        return f"{past.decided} {past.on}" + (f", because {past.because}" if past.because else "")
    if past.decided is Decided.UNCHANGED:
        return f"left the pod unchanged, because {past.because or _UNREADABLE}"
    return "was not asked"


def _facts(apart: Apart) -> str:
    volume, start = apart.volume, "live migration" if apart.migrated else "start"
    return (
        f"the VM is on node {apart.node} since {apart.since or 'an unknown time'}, the share-manager of claim "
        f"{volume.claim} on node {volume.node} since {volume.since or 'an unknown time'}, and at the VM's {start} "
        f"the webhook {_did(apart.past)}"
    )
