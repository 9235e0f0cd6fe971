"""A reason in a few words: for a table, and to count VMs by cause. `Why.sentence` has the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webhook.core.reasons import Reason, Why

_CAUSES: Final[Mapping[Reason, str]] = {
    Reason.NO_CLAIMS: "no claim",
    Reason.EPHEMERAL_CLAIM: "a generic ephemeral volume, whose claim comes later",
    Reason.CLAIM_LOOKUP_FAILED: "an object of a claim could not be read",
    Reason.CLAIM_NOT_FOUND: "a claim does not exist",
    Reason.CLAIM_NOT_BOUND: "a claim is not bound",
    Reason.VOLUME_NOT_FOUND: "a PersistentVolume does not exist",
    Reason.CLAIM_NOT_READ_WRITE_MANY: "no share-manager: the claim is not ReadWriteMany",
    Reason.VOLUME_NOT_LONGHORN: "no share-manager: not a volume of Longhorn",
    Reason.VOLUME_IS_BLOCK: "no share-manager: a block volume",
    Reason.VOLUME_STRICT_LOCAL: "no share-manager: a strict-local volume",
    Reason.CDROM_CLAIM: "only a CD-ROM has a share-manager",
    Reason.SHARE_MANAGER_NOT_FOUND: "the volume has no ShareManager",
    Reason.SHARE_MANAGER_NO_NODE: "the share-manager is on no node yet",
    Reason.SHARE_MANAGER_POD_UNREAD: "the share-manager's pod could not be read",
    Reason.SHARE_MANAGER_UNSCHEDULED: "the share-manager's pod is not scheduled yet",
    Reason.SHARE_MANAGER_POD: "the share-manager's pod is on that node",
    Reason.VM_NOT_SCHEDULED: "not scheduled yet",
    Reason.VM_OTHER_SCHEDULER: "waits for another scheduler",
    Reason.VM_UNSCHEDULABLE: "no node takes the pod now",
    Reason.VM_STUCK: "fits none of the nodes that its affinity names",
    Reason.VM_SHARE_MANAGER_POD_GONE: "the share-manager's pod is gone",
    Reason.VM_SHARE_MANAGER_MOVED: "share-manager moved",
    Reason.VM_SHARE_MANAGER_LATER: "share-manager placed after the VM",
    Reason.VM_SHARE_MANAGERS_SPREAD: "share-managers on several nodes",
    Reason.VM_LIVE_MIGRATED: "live-migrated",
    Reason.VM_PREFERRED: "only preferred",
    Reason.VM_LEFT_UNCHANGED: "left unchanged",
    Reason.VM_WEBHOOK_NOT_ASKED: "webhook not asked",
    Reason.VM_CAUSE_NOT_KNOWN: "cause not known",
}
_BY_DECISION: Final = (Reason.VM_PREFERRED, Reason.VM_LEFT_UNCHANGED)
_CODES: Final = frozenset(reason.code for reason in Reason)


def short_cause(why: Why) -> str:
    """Return the reason in at most 60 characters, without names of objects; its code if there are no words for it.

    A decision that did not require a node has its own reason behind it, by its code.
    """
    cause = _CAUSES.get(why.reason, why.reason.code)
    code = str(why.names["because"]).partition(":")[0] if why.reason in _BY_DECISION else ""
    return f"{cause}: {code}" if code in _CODES else cause
