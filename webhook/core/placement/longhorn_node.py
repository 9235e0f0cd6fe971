"""Whether Longhorn can attach a volume on a node, and kubelet mount it: Longhorn's node, data engine v2, CSINode.

Longhorn does not attach a volume on a node whose Longhorn node is absent or not Ready (longhorn-manager: "node is not
ready, couldn't attach volume"). A node that disables v2 has no instance manager for v2 (longhorn-manager
controller/node_controller.go). Longhorn accepts the attach of a v2 volume there (manager/volume.go, Attach), and the
pod waits without end.

A share-manager pod mounts no volume through kubelet: it needs neither the CSI driver nor an NFS client. If a node's
CSINode is absent, nothing is known of its drivers. Kubelet writes that object before it reports the node as Ready
(pkg/volume/csi/csi_plugin.go, initializeCSINode). Files that describe a cluster often lack this kind.
"""

from __future__ import annotations

from typing import Final

from webhook.core.api.longhorn import (
    INSTANCE_MANAGER,
    LABEL_LONGHORN_COMPONENT,
    LABEL_LONGHORN_NODE,
    LONGHORN_CSI_DRIVER,
    NFS_CLIENT_INSTALLED,
    SHARE_MANAGER,
    LonghornNode,
)
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.state.node_info import CSIDrivers
from webhook.core.scheduler.state.snapshot import AnySnapshot, SnapshotUnavailable
from webhook.core.view import NoObject

_DISABLES_V2: Final = "node.longhorn.io/disable-v2-data-engine"  # types/types.go, NodeDisableV2DataEngineLabelKey
_V2: Final = "v2"


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
    needed = [bound.volume for bound in cycle.volumes if bound.served_from in (None, name)]
    volume = next((handle for each in needed if (handle := _v2_handle(each))), None) or _served_by(cycle.pod)
    return Reason.DATA_ENGINE_DISABLED.why(node=name, volume=volume) if volume else None


def why_no_driver(name: str, drivers: CSIDrivers | None, cycle: CycleState) -> Why | None:
    """Return why kubelet on the node can mount no Longhorn volume, if the pod has one; None if that is not known."""
    if drivers is None or LONGHORN_CSI_DRIVER in drivers:
        return None
    bound = next((each for each in cycle.volumes if each.volume.longhorn_csi), None)
    return Reason.DRIVER_MISSING.why(node=name, claim=bound.claim) if bound else None


def why_no_nfs_client(name: str, node: LonghornNode | NoObject | None, cycle: CycleState) -> Why | None:
    """Return why kubelet on the node may be unable to mount what a share-manager serves, if the pod has such a volume.

    Longhorn's condition is also False if the kernel's configuration can't be read (longhorn-manager
    controller/monitor/environment_check_monitor.go, syncNFSClientVersion). Therefore it only forbids a hard pin.
    """
    if node is None or isinstance(node, NoObject) or not node.status:
        return None
    if node.status.condition(NFS_CLIENT_INSTALLED) != "False":
        return None
    bound = next((each for each in cycle.volumes if each.served_from is not None), None)
    return Reason.NFS_CLIENT_MISSING.why(node=name, claim=bound.claim) if bound else None


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
        pod.on.bound
        and not pod.on.terminating
        and pod.group.namespace == namespace
        and wanted <= dict(zip(pod.group.keys, pod.values, strict=True)).items()
        for pod in snapshot.node_info(name).pods
        if LABEL_LONGHORN_NODE in pod.group.keys
    )


def _v2_handle(volume: PersistentVolume) -> str | None:
    """Return the v2 Longhorn volume behind a PersistentVolume; a volume without the attribute is of v1."""
    csi = volume.longhorn_csi
    return csi.volume_handle if csi and csi.attribute("dataEngine") == _V2 else None


def _served_by(pod: Pod) -> str | None:
    """Return the v2 volume that a share-manager pod serves (share_manager_controller.go, createPodManifest)."""
    if pod.metadata.label(LABEL_LONGHORN_COMPONENT) != SHARE_MANAGER:
        return None
    served = (each for each in pod.spec.containers or () if each.option("--data-engine") == _V2)
    return next((each.option("--volume") for each in served), None)
