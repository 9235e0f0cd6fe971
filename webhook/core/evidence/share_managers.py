"""Pod -> PersistentVolumeClaim -> PersistentVolume -> ShareManager -> evidence of a node (rules 5 and 6).

One Finding for each claim, each with its reason. `webhook.core.placement` chooses among the nodes. The volume's CSI
handle names the ShareManager. The PersistentVolume's own name does not: it differs for restored and hand-made volumes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from webhook.core import refs
from webhook.core.api.affinity import is_node_name
from webhook.core.api.longhorn import ASSIGNED_STATES, is_share_manager
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.api.storage import CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeClaim
from webhook.core.evidence import facts
from webhook.core.evidence.facts import Finding
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.node_rules import ClaimVolume
from webhook.core.view import ClusterView, NoObject, Ref

# longhorn-manager csi/util.go, requiresSharedAccess: the volume is shared if it is attached with either mode.
_SHARED_MODES: Final = frozenset({"ReadWriteMany", "ReadOnlyMany"})
_OF_ONE_POD: Final = "ReadWriteOncePod"
_STATE_VOLUME: Final = "vm-state"  # kubevirt pkg/virt-controller/services/rendervolumes.go, withBackendStorage
_STATE_CLAIM_PREFIX: Final = "persistent-state-for-"  # kubevirt pkg/storage/backend-storage/backend-storage.go, basePVC
# Longhorn attaches such a volume only on the node of its one replica (longhorn-manager
# webhook/resources/volumeattachment/validator.go), without a share-manager (types/types.go,
# ValidateDataLocalityAndAccessMode).
_STRICT_LOCAL: Final = "strict-local"
_NAME_SHOWN_CHARS: Final = 80
_LIVE_PHASES: Final = ("Pending", "Running")


def find_share_managers(pod: Pod, namespace: str, view: ClusterView) -> list[Finding]:
    """Return one finding for each claim of the pod and each hotpluggable claim of its VM, ephemeral volumes last."""
    vm = facts.vm_as_described(pod, namespace, view)
    followed: dict[str, Finding] = {}
    ephemeral: list[Finding] = []
    vm_state_claims: set[str] = set()
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            claim = volume.persistent_volume_claim.claim_name or ""
            if claim not in followed:
                followed[claim] = _follow(claim, namespace, view)
            if volume.name == _STATE_VOLUME or claim.startswith(_STATE_CLAIM_PREFIX):
                vm_state_claims.add(claim)
        elif volume.ephemeral is not None:
            # The name of its claim will be <pod>-<volume>, and the pod has no name yet.
            why = Reason.EPHEMERAL_CLAIM.why(volume=volume.name)
            ephemeral.append(Finding(claim=volume.name or "", why=why))
    for claim in vm.hotpluggable_claims:
        if claim not in followed:
            followed[claim] = replace(_follow(claim, namespace, view), in_pod=False)
    return [*facts.with_uses(followed.values(), vm_state_claims, vm, namespace, view), *ephemeral]


def bound_volumes(findings: Iterable[Finding]) -> list[ClaimVolume]:
    """Return every bound claim of the VM with its PersistentVolume. All must be usable on the pod's node.

    KubeVirt attaches a hotpluggable volume by a pod of its own on the same node, and starts no domain before that
    (pkg/virt-handler/vm.go). So a volume that can't be used there would keep the VM from starting.
    """
    return [
        ClaimVolume(
            found.claim,
            found.persistent_volume,
            None if found.why.reason.columns.no_share_manager else found.node or "",
            of_one_pod=found.of_one_pod,
            being_deleted=found.being_deleted,
        )
        for found in findings
        if found.persistent_volume
    ]


def _follow(claim: str, namespace: str, view: ClusterView) -> Finding:
    """Follow the claim to its PersistentVolume. Rule 7 needs the volume also if no share-manager serves it."""
    ref = refs.persistent_volume_claim(NamespacedName(namespace, claim))
    persistent_volume_claim = view.get(ref)
    if persistent_volume_claim is NoObject.UNAVAILABLE:
        return Finding(claim=claim, why=_lookup_failed(claim, ref, view))
    if isinstance(persistent_volume_claim, NoObject):
        return Finding(claim=claim, why=Reason.CLAIM_NOT_FOUND.why(claim=claim, namespace=namespace))
    name = persistent_volume_claim.spec.volume_name if persistent_volume_claim.spec else None
    phase = persistent_volume_claim.status.phase if persistent_volume_claim.status else None
    if not name or (phase or "Bound") != "Bound":
        return Finding(claim=claim, why=Reason.CLAIM_NOT_BOUND.why(claim=claim, phase=phase or "not stated"))
    volume_ref = refs.persistent_volume(name)
    volume = view.get(volume_ref)
    if volume is NoObject.UNAVAILABLE:
        return Finding(claim=claim, why=_lookup_failed(claim, volume_ref, view))
    if isinstance(volume, NoObject):
        return Finding(claim=claim, why=Reason.VOLUME_NOT_FOUND.why(claim=claim, volume=name))
    return _share_manager(claim, persistent_volume_claim, volume, view)


def _share_manager(
    claim: str, persistent_volume_claim: PersistentVolumeClaim, volume: PersistentVolume, view: ClusterView
) -> Finding:
    """Follow the bound claim to its share-manager, if it can have one, and to the evidence."""
    csi = volume.longhorn_csi
    modes = (persistent_volume_claim.spec.access_modes if persistent_volume_claim.spec else None) or ()
    handle = csi.volume_handle if csi else None
    block = _block_kind(persistent_volume_claim, volume, csi) if csi else None
    shared = not _SHARED_MODES.isdisjoint(modes)
    node, firm = None, False
    if handle and csi and (block or not shared) and csi.attribute("dataLocality") == _STRICT_LOCAL:
        why = Reason.VOLUME_STRICT_LOCAL.why(claim=claim, volume=handle)
    elif not shared:
        why = Reason.CLAIM_NOT_READ_WRITE_MANY.why(claim=claim, modes=", ".join(modes) or "none")
    elif not handle:
        why = Reason.VOLUME_NOT_LONGHORN.why(claim=claim, volume=volume.metadata.name)
    elif block:
        why = Reason.VOLUME_IS_BLOCK.why(claim=claim, volume=handle, what=block)
    else:
        why, node, firm = _evidence(claim, handle, view)
        if node is not None and not is_node_name(node):
            shown = ascii(node[:_NAME_SHOWN_CHARS])
            why, node, firm = Reason.NODE_NAME_INVALID.why(claim=claim, volume=handle, node=shown), None, False
    return Finding(
        claim=claim,
        why=why,
        persistent_volume=volume,
        volume_handle=handle,
        node=node,
        firm=firm,
        of_one_pod=_OF_ONE_POD in modes,
        being_deleted=bool(persistent_volume_claim.metadata.deletion_timestamp),
    )


def _evidence(claim: str, handle: str, view: ClusterView) -> tuple[Why, str | None, bool]:
    """Return (reason, node, firm) from the share-manager's live pod, or from ShareManager.status.ownerID without one.

    ownerID is the node whose longhorn-manager reconciles the object. It follows the pod. If that node is cordoned,
    ownerID moves to another node while the pod stays (longhorn-manager share_manager_controller.go, isResponsibleFor).
    Therefore the pod outweighs ownerID.
    """
    ref, pod_ref = refs.share_manager(handle), refs.share_manager_pod(handle)
    share_manager, pod = view.get(ref), view.get(pod_ref)
    if share_manager is NoObject.NOT_FOUND:
        return Reason.SHARE_MANAGER_NOT_FOUND.why(claim=claim, volume=handle), None, False
    live = None if isinstance(pod, NoObject) or not _is_live(pod) else pod
    status = None if isinstance(share_manager, NoObject) else share_manager.status
    owner = (status and status.owner_id) or None
    state = (status and status.state) or "absent"
    if live and live.spec.node_name:
        node = live.spec.node_name
        besides = f", which outweighs ShareManager ownerID {owner}" if owner and owner != node else ""
        return Reason.SHARE_MANAGER_POD.why(claim=claim, volume=handle, node=node, besides=besides), node, True
    if isinstance(share_manager, NoObject):
        return _lookup_failed(claim, ref, view), None, False
    if owner is None or state not in ASSIGNED_STATES:
        return Reason.SHARE_MANAGER_NO_NODE.why(claim=claim, volume=handle, state=state), None, False
    if pod is NoObject.UNAVAILABLE:
        problem = view.read_error(pod_ref)
        why = Reason.SHARE_MANAGER_POD_UNREAD.why(claim=claim, volume=handle, node=owner, problem=problem)
        return why, owner, False
    if live:
        return Reason.SHARE_MANAGER_UNSCHEDULED.why(claim=claim, volume=handle, node=owner), owner, False
    return Reason.SHARE_MANAGER_OWNER.why(claim=claim, volume=handle, node=owner, state=state), owner, True


def _is_live(pod: Pod) -> bool:
    """Whether this share-manager pod serves its volume, or will: it is Pending or Running, and not terminating."""
    phase = pod.status.phase if pod.status else None
    return (
        is_share_manager(pod.metadata) and not pod.metadata.deletion_timestamp and (phase or "Pending") in _LIVE_PHASES
    )


def _lookup_failed(claim: str, ref: Ref, view: ClusterView) -> Why:
    return Reason.CLAIM_LOOKUP_FAILED.why(claim=claim, kind=ref.kind, problem=view.read_error(ref))


def _block_kind(
    persistent_volume_claim: PersistentVolumeClaim, volume: PersistentVolume, csi: CSIPersistentVolumeSource
) -> str | None:
    if csi.flag("migratable"):
        return "migratable"
    modes = (
        persistent_volume_claim.spec and persistent_volume_claim.spec.volume_mode,
        volume.spec and volume.spec.volume_mode,
    )
    return "volumeMode Block" if "Block" in modes else None
