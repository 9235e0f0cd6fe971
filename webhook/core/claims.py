"""Pod -> PersistentVolumeClaim -> PersistentVolume -> ShareManager -> evidence of a node.

One Finding per claim, each with its reason; which node wins is placement's business. The volume is followed by its
CSI handle, never by the PersistentVolume's name: they differ for restored and hand-made volumes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from webhook.core.affinity import is_node_name
from webhook.core.feasibility import ClaimVolume
from webhook.core.objects import (
    LABEL_LONGHORN_COMPONENT,
    LONGHORN_CSI_DRIVER,
    SHARE_MANAGER,
    SHARE_MANAGER_POD_PREFIX,
    CSIPersistentVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ShareManager,
)
from webhook.core.reasons import Reason, Why
from webhook.core.view import ClusterView, Gap, Key, Kind, Needs, Ref, unread

_ASSIGNED_STATES: Final = ("running", "starting", "absent")  # absent: so that a minimal object works
_LIVE_PHASES: Final = ("Pending", "Running")
_GO_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})  # strconv.ParseBool, as longhorn's csi plugin uses


class Finding(Struct, frozen=True, kw_only=True):
    """What one volume of the pod led to.

    `volume_handle` is Longhorn's volume name. `node` is set where there is evidence of a node; `firm` says that it
    may carry a hard pin. `persistent_volume` is set for every bound claim, whatever it led to.
    """

    claim: str
    why: Why
    persistent_volume: PersistentVolume | None = None
    volume_handle: str | None = None
    node: str | None = None
    firm: bool = False

    @property
    def open(self) -> bool:
        """Whether it can't be told yet which nodes the claim's volume allows: that forbids a hard pin.

        A volume bound later may be confined to a zone or a node (StorageClass topology, local volumes), and a pod
        pinned elsewhere by then would never start.
        """
        return self.persistent_volume is None

    @property
    def bound(self) -> ClaimVolume | None:
        """The claim with its PersistentVolume, None where that is not known."""
        return ClaimVolume(self.claim, self.persistent_volume) if self.persistent_volume else None


def resolve(pod: Pod, namespace: str, view: ClusterView) -> list[Finding] | Needs:
    """One finding for each claim of the pod in order of its volumes, or what the view has not read yet.

    Args:
        pod: the pod under admission; claims are looked up in `namespace`, the request's.
    """
    findings: list[Finding] = []
    missing: list[Ref] = []
    for claim, volume_name in _claims(pod):
        if claim is None:
            why = Reason.EPHEMERAL_CLAIM.why(volume=volume_name)
            findings.append(Finding(claim=volume_name, why=why))
            continue
        found = _follow(claim, namespace, view)
        if isinstance(found, Finding):
            findings.append(found)
        else:
            missing += found.refs
    return Needs(tuple(missing)) if missing else findings


def _claims(pod: Pod) -> Iterator[tuple[str | None, str]]:
    """(claim, volume) for each volume that stands for a claim, each claim once; the claim is None where its name
    can't be known: a generic ephemeral volume's is <pod>-<volume>, and the pod has only a generateName yet.
    """
    seen = set()
    for volume in pod.spec.volumes or ():
        name = volume.name or ""
        if volume.ephemeral is not None:
            yield None, name
        elif volume.persistent_volume_claim is not None:
            claim = volume.persistent_volume_claim.claim_name or ""
            if claim not in seen:
                seen.add(claim)
                yield claim, name


def _follow(claim: str, namespace: str, view: ClusterView) -> Finding | Needs:
    """The claim to its PersistentVolume, which feasibility needs whatever the claim's kind."""
    key = Key(namespace, claim)
    pvc = view.persistent_volume_claim(key)
    if pvc is Gap.UNREAD:
        return Needs((Ref(Kind.PERSISTENT_VOLUME_CLAIM, key),))
    if pvc is Gap.UNAVAILABLE:
        return _lost(claim, Kind.PERSISTENT_VOLUME_CLAIM)
    if isinstance(pvc, Gap):
        return Finding(claim=claim, why=Reason.CLAIM_NOT_FOUND.why(claim=claim, namespace=namespace))
    name = pvc.spec.volume_name if pvc.spec else None
    phase = pvc.status.phase if pvc.status else None
    if not name or phase not in (None, "Bound"):
        return Finding(claim=claim, why=Reason.CLAIM_NOT_BOUND.why(claim=claim, phase=phase or "Pending"))
    volume = view.persistent_volume(name)
    if volume is Gap.UNREAD:
        return Needs((Ref(Kind.PERSISTENT_VOLUME, Key("", name)),))
    if volume is Gap.UNAVAILABLE:
        return _lost(claim, Kind.PERSISTENT_VOLUME)
    if isinstance(volume, Gap):
        return Finding(claim=claim, why=Reason.VOLUME_NOT_FOUND.why(claim=claim, volume=name))
    return _share_manager(claim, pvc, volume, view)


def _share_manager(
    claim: str, pvc: PersistentVolumeClaim, volume: PersistentVolume, view: ClusterView
) -> Finding | Needs:
    """The bound claim to its share-manager, where it can have one, and on to the evidence."""
    csi = volume.spec.csi if volume.spec else None
    modes = (pvc.spec.access_modes if pvc.spec else None) or []
    handle = csi.volume_handle if csi and csi.driver == LONGHORN_CSI_DRIVER else None

    def finding(why: Why, node: str | None = None, *, firm: bool = False) -> Finding:
        return Finding(claim=claim, why=why, persistent_volume=volume, volume_handle=handle, node=node, firm=firm)

    if "ReadWriteMany" not in modes:
        return finding(Reason.CLAIM_NOT_READ_WRITE_MANY.why(claim=claim, modes=", ".join(modes) or "none"))
    if csi is None or not handle:
        return finding(Reason.VOLUME_NOT_LONGHORN.why(claim=claim, volume=volume.metadata.name))
    block = _block_kind(pvc, volume, csi)
    if block:
        return finding(Reason.VOLUME_IS_BLOCK.why(claim=claim, volume=handle, what=block))
    manager, pod = view.share_manager(handle), view.share_manager_pod(handle)
    needs = unread(
        (Ref(Kind.SHARE_MANAGER, Key("", handle)), manager),
        (Ref(Kind.SHARE_MANAGER_POD, Key("", SHARE_MANAGER_POD_PREFIX + handle)), pod),
    )
    if needs:
        return needs
    if manager is Gap.ABSENT:
        return finding(Reason.SHARE_MANAGER_NOT_FOUND.why(claim=claim, volume=handle))
    why, node, firm = _evidence(claim, handle, manager, pod)
    if node is not None and not is_node_name(node):
        return finding(Reason.NODE_NAME_INVALID.why(claim=claim, volume=handle, node=repr(node[:80])))
    return finding(why, node, firm=firm)


def _evidence(claim: str, handle: str, manager: ShareManager | Gap, pod: Pod | Gap) -> tuple[Why, str | None, bool]:
    """(reason, node, whether it is firm): the share-manager's live pod, else ShareManager.status.ownerID.

    ownerID is the node whose Longhorn manager reconciles the object. It follows the pod, but flips away from a
    cordoned node while the pod stays (longhorn-manager share_manager_controller.go, isResponsibleFor), so the pod wins.
    """
    live = not isinstance(pod, Gap) and _is_live(pod)
    status = None if isinstance(manager, Gap) else manager.status
    owner = (status and status.owner_id) or None
    if not isinstance(pod, Gap) and live and pod.spec.node_name:
        node = pod.spec.node_name
        besides = f", which outweighs ShareManager ownerID {owner}" if owner and owner != node else ""
        return Reason.SHARE_MANAGER_POD.why(claim=claim, volume=handle, node=node, besides=besides), node, True
    if isinstance(manager, Gap):
        return Reason.CLAIM_LOOKUP_FAILED.why(claim=claim, kind=Kind.SHARE_MANAGER), None, False
    state = (status and status.state) or "absent"
    if owner is None or state not in _ASSIGNED_STATES:
        return Reason.SHARE_MANAGER_NO_NODE.why(claim=claim, volume=handle, state=state), None, False
    if pod is Gap.UNAVAILABLE:
        return Reason.SHARE_MANAGER_POD_UNREAD.why(claim=claim, volume=handle, node=owner), owner, False
    if live:
        return Reason.SHARE_MANAGER_UNSCHEDULED.why(claim=claim, volume=handle, node=owner), owner, False
    return Reason.SHARE_MANAGER_OWNER.why(claim=claim, volume=handle, node=owner, state=state), owner, True


def _is_live(pod: Pod) -> bool:
    """Whether this is a share-manager's pod that serves or will serve: not terminating, Pending or Running."""
    phase = pod.status.phase if pod.status else None
    return (
        pod.metadata.label(LABEL_LONGHORN_COMPONENT) == SHARE_MANAGER
        and not pod.metadata.deletion_timestamp
        and (phase or "Pending") in _LIVE_PHASES
    )


def _lost(claim: str, kind: Kind) -> Finding:
    return Finding(claim=claim, why=Reason.CLAIM_LOOKUP_FAILED.why(claim=claim, kind=kind))


def _block_kind(pvc: PersistentVolumeClaim, volume: PersistentVolume, csi: CSIPersistentVolumeSource) -> str | None:
    if (csi.volume_attributes or {}).get("migratable") in _GO_TRUE:
        return "migratable"
    modes = (pvc.spec and pvc.spec.volume_mode, volume.spec and volume.spec.volume_mode)
    return "volumeMode Block" if "Block" in modes else None
