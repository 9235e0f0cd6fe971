"""Whether Longhorn can attach a volume on a node, and kubelet mount it: Longhorn's node, data engine v2, CSI drivers.

Longhorn does not attach a volume on a node whose Longhorn node is absent or not Ready (longhorn-manager: "node is not
ready, couldn't attach volume"). A node that disables v2 has no instance manager for v2 (longhorn-manager
controller/node_controller.go). Longhorn accepts the attach of a v2 volume there (manager/volume.go, Attach), and the
pod waits without end.

A share-manager pod mounts no volume through kubelet: it needs no CSI driver. Where it is steered to, its VM needs an
NFS client; the share-manager of an encrypted volume opens the volume with the node's cryptsetup. If a node's CSINode is
absent, nothing is known of its drivers. Kubelet writes that object before it reports the node as Ready
(pkg/volume/csi/csi_plugin.go, initializeCSINode). Files that describe a cluster often lack this kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from webhook.core import refs
from webhook.core.api.longhorn import (
    INSTANCE_MANAGER,
    LABEL_LONGHORN_COMPONENT,
    LABEL_LONGHORN_NODE,
    LABEL_LONGHORN_SHARE_MANAGER,
    Lack,
    LonghornNode,
    Need,
    is_share_manager,
)
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cache import AnySnapshot, CSIDrivers, SnapshotUnavailable
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.view import ClusterView, NoObject

_DISABLES_V2: Final = "node.longhorn.io/disable-v2-data-engine"  # types/types.go, NodeDisableV2DataEngineLabelKey
_V2: Final = "v2"
_MISSING: Final[Mapping[Need, Reason]] = {
    Need.NFS_CLIENT: Reason.NFS_CLIENT_MISSING,
    Need.ENCRYPTION: Reason.ENCRYPTION_MISSING,
}


def why_not_ready(name: str, node: LonghornNode | NoObject | None) -> Why | None:
    """Return why Longhorn attaches nothing on the node; None if it does, or if that could not be read.

    `node` is Longhorn's object; None in a cluster that has no such objects.
    """
    if node is None or node is NoObject.UNAVAILABLE:
        return None
    if isinstance(node, NoObject):
        return Reason.LONGHORN_NOT_READY.why(node=name, state="is absent")
    if not (node.status and node.status.ready):
        return Reason.LONGHORN_NOT_READY.why(node=name, state="is not Ready")
    return None


def why_no_data_engine(name: str, node: Node, cycle: CycleState) -> Why | None:
    """Return why a v2 volume that the pod needs on the node can't be attached there; None if no such volume is known.

    A volume is needed on the pod's own node, or on the node of the share-manager that serves it. A share-manager pod
    itself names the volume that it serves.
    """
    if node.metadata.label(_DISABLES_V2) != "true":
        return None
    volume = next((handle for each in _attached_on(name, cycle) if (handle := _v2_handle(each))), None)
    volume = volume or _served_by(cycle.pod)
    return Reason.DATA_ENGINE_DISABLED.why(node=name, volume=volume) if volume else None


def why_no_driver(name: str, drivers: CSIDrivers | None, cycle: CycleState) -> Why | None:
    """Return for which volume kubelet on the node has no CSI driver; None if it has all, or if that is not known."""
    if drivers is None:
        return None
    for bound in cycle.volumes:
        csi = bound.volume.spec.csi if bound.volume.spec else None
        if csi and csi.driver and csi.driver not in drivers:
            return Reason.DRIVER_MISSING.why(node=name, claim=bound.claim, driver=csi.driver)
    return None


def lacks_of(name: str, node: LonghornNode | NoObject | None, cycle: CycleState, view: ClusterView) -> Sequence[Lack]:
    """Return what the node lacks and the pod needs there. The VM of a share-manager pod needs an NFS client there."""
    lacks = lacks_known(node)
    if not lacks:
        return ()
    served = cycle.pod.metadata.label(LABEL_LONGHORN_SHARE_MANAGER) if is_share_manager(cycle.pod.metadata) else None
    needs = {Need.NFS_CLIENT} if served or any(each.served_from is not None for each in cycle.volumes) else set()
    volumes = _volumes_of(served, view) if served else _attached_on(name, cycle)
    if any(csi.flag("encrypted") for each in volumes if (csi := each.longhorn_csi)):
        needs.add(Need.ENCRYPTION)
    return [lack for lack in lacks if lack.need in needs]


def lacks_known(node: LonghornNode | NoObject | None) -> Sequence[Lack]:
    """Return what Longhorn says that its node lacks; nothing for a node that it does not have, or that was not read."""
    return () if node is None or isinstance(node, NoObject) else node.lacks


def why_lacking(name: str, lacks: Iterable[Lack], view: ClusterView) -> Why | None:
    """Return which of these the node certainly lacks; None if none.

    If Longhorn says the same of each of its nodes, it looks for the wrong thing: VMs run in this cluster.
    """
    for lack in lacks:
        if lack.certain and not view.all_longhorn_nodes_lack(lack.need):
            return _MISSING[lack.need].why(node=name, condition=lack.condition, word=lack.word)
    return None


def why_doubtful(name: str, lacks: Sequence[Lack]) -> Why | None:
    """Return the first of these, if the node certainly lacks none: then Longhorn could not look, or looks wrong."""
    if not lacks:
        return None
    condition, word, need, certain = lacks[0]
    besides = ", as of each of its nodes" if certain else ""
    return Reason.MOUNT_UNCERTAIN.why(node=name, condition=condition, word=word, what=need.value, besides=besides)


def _volumes_of(handle: str, view: ClusterView) -> Iterator[PersistentVolume]:
    """Yield the PersistentVolumes of a Longhorn volume that have a claim, as far as they are known."""
    claims = view.volume_claims(handle)
    for key in () if isinstance(claims, NoObject) else claims:
        claim = view.get(refs.persistent_volume_claim(key))
        name = None if isinstance(claim, NoObject) or not claim.spec else claim.spec.volume_name
        volume = view.get(refs.persistent_volume(name)) if name else NoObject.NOT_FOUND
        if not isinstance(volume, NoObject):
            yield volume


def is_instance_manager_seen(name: str, namespace: str, snapshot: AnySnapshot) -> bool:
    """Whether Longhorn's instance-manager pod is on the node, so that a pod affinity to it has an effect.

    After a power cut, a reboot or an upgrade of Longhorn a node has none for some time. The pod names its node itself,
    and is never restarted (longhorn-manager controller/instance_manager_controller.go). A pod that is being deleted
    does not count. Where pods are not known, none is seen. `namespace` is that of the pod that has the affinity.
    """
    if isinstance(snapshot, SnapshotUnavailable):
        return False
    wanted = {LABEL_LONGHORN_COMPONENT: INSTANCE_MANAGER, LABEL_LONGHORN_NODE: name}.items()
    return any(
        pod.on.bound and not pod.on.terminating and pod.namespace == namespace and wanted <= (pod.labels or {}).items()
        for pod in snapshot.node_info(name).labelled
    )


def _v2_handle(volume: PersistentVolume) -> str | None:
    """Return the v2 Longhorn volume behind a PersistentVolume; a volume without the attribute is of v1."""
    csi = volume.longhorn_csi
    return csi.volume_handle if csi and csi.attribute("dataEngine") == _V2 else None


def _attached_on(name: str, cycle: CycleState) -> list[PersistentVolume]:
    """Return the volumes that Longhorn attaches on this node for the pod."""
    return [bound.volume for bound in cycle.volumes if bound.served_from in (None, name)]


def _served_by(pod: Pod) -> str | None:
    """Return the v2 volume that a share-manager pod serves (share_manager_controller.go, createPodManifest)."""
    if not is_share_manager(pod.metadata):
        return None
    served = (each for each in pod.spec.containers or () if each.option("--data-engine") == _V2)
    return next((each.option("--volume") for each in served), None)
