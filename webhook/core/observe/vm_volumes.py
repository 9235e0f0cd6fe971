"""The claims of a VM, each with the node of its share-manager: the VMVolumeStatus of each, as things are now.

Nothing unknown is guessed: a share-manager whose node is not certain yet is on no node.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from webhook.core import refs
from webhook.core.api.longhorn import SHARE_MANAGER_NODE_SELECTOR
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume
from webhook.core.evidence import share_managers
from webhook.core.evidence.finding import ClaimUse, Finding
from webhook.core.reasons import Reason, Why
from webhook.core.view import ClusterView, NoObject

STARTING: Final = "starting"


class VMVolumeStatus(Struct, frozen=True, kw_only=True, gc=False):
    """One claim of a VM.

    Attributes:
        claim: the claim's name.
        volume: Longhorn's volume, None if the claim leads to none.
        node: the share-manager's node, None if it is on none.
        state: the state of the ShareManager.
        together: whether VM and share-manager are on one node, None if there is nothing to compare.
        since: when the share-manager's pod was bound to its node, None if unknown.
        confined: the node selector to which the volume's StorageClass confines its share-managers; empty for none.
        use: what the VM uses the claim for. Only a disk of the VM's own is compared with the VM's node.
        why: the reason of the finding; for a share-manager without a live pod that this is so.
    """

    claim: str
    volume: str | None
    node: str | None
    state: str | None
    together: bool | None
    since: str | None
    why: Why
    confined: str = ""
    use: ClaimUse = ClaimUse.OWN

    @property
    def unread(self) -> bool:
        """Whether an object on the way from the claim to the node could not be read."""
        return self.why.reason.columns.unread


def volumes_of(pod: Pod, view: ClusterView) -> tuple[VMVolumeStatus, ...]:
    """Return the status of each claim."""
    findings = share_managers.find_share_managers(pod, pod.metadata.namespace or "", view)
    return tuple(_volume(finding, pod.spec.node_name, view) for finding in findings)


def has_share_manager(volumes: Iterable[VMVolumeStatus]) -> bool:
    """Whether a disk of a VM has a share-manager, or may have one that could not be read.

    A VM gains nothing by the share-manager of a CD-ROM or of KubeVirt's own claim (TPM, EFI).
    """
    disks = (volume for volume in volumes if volume.use >= ClaimUse.SHARED)
    return any(volume.state or volume.node or volume.unread for volume in disks)


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
    return VMVolumeStatus(
        claim=finding.claim,
        volume=handle,
        node=node,
        state=state,
        together=None if node is None or not vm_node or not own else node == vm_node,
        since=_serving_since(handle, view) if handle and node else None,
        confined=_confined(finding.persistent_volume),
        why=finding.why_not_required if node and not own else why,
        use=finding.use,
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
    condition = pod.status.scheduled if pod.status else None
    return (condition and condition.last_transition_time) or pod.metadata.creation_timestamp
