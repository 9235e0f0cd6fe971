"""kube-scheduler's VolumeBinding plugin (pkg/scheduler/framework/plugins/volumebinding/volume_binding.go).

Invariant: for a bound claim the plugin does not reject a node that passes here. Claims that are not bound yet are not
evaluated here: their volume can come to be on any node.

A volume with an in-tree source counts as the volume of a CSI driver (binder.go, tryTranslatePVToCSI): its zone becomes
that driver's topology, and NodeVolumeLimits counts it against the driver's limit. No such translation is made here.
"""

from __future__ import annotations

from webhook.core.reasons import Reason
from webhook.core.scheduler.matching.node_selector import matches_node_selector
from webhook.core.scheduler.state.incoming_pod import ClaimVolume
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.scheduler.status import PASSED, Rejected, Status, Unknown


def filter_volume(volume: ClaimVolume, node: NodeInfo) -> Status:
    """Reject a node that the volume's `spec.nodeAffinity` does not match; Unknown if the volume is an in-tree one."""
    spec = volume.volume.spec
    source = spec.in_tree() if spec else None
    if source:
        names = {"volume": volume.volume.metadata.name, "claim": volume.claim, "source": source, "node": node.name}
        return Unknown(Reason.IN_TREE_VOLUME, names)
    affinity = spec.node_affinity if spec else None
    if not affinity or matches_node_selector(affinity.required, node.labels, None):
        return PASSED
    names = {"node": node.name, "volume": volume.volume.metadata.name, "claim": volume.claim}
    return Rejected(Reason.VOLUME_AFFINITY_MISMATCH, names)
