"""kube-scheduler's VolumeBinding plugin (pkg/scheduler/framework/plugins/volumebinding/volume_binding.go).

Invariant: for a bound claim the plugin does not reject a node that passes here. Claims that are not bound yet are not
evaluated here: their volume can come to be on any node.

A volume with an in-tree source counts as the volume of a CSI driver (binder.go, tryTranslatePVToCSI): its zone becomes
that driver's topology, and NodeVolumeLimits counts it against the driver's limit. No such translation is made here.
"""

from __future__ import annotations

from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import ClaimVolume
from webhook.core.scheduler.matching.node_selector import matches_node_selector
from webhook.core.scheduler.state.node_info import NodeInfo


def filter_volume(volume: ClaimVolume, node: NodeInfo) -> Why | None:
    """Reject a node that the volume's `spec.nodeAffinity` does not match; or that the volume is an in-tree one."""
    spec, name = volume.volume.spec, volume.volume.metadata.name
    source = spec.in_tree() if spec else None
    if source:
        return Reason.IN_TREE_VOLUME.why(volume=name, claim=volume.claim, source=source, node=node.name)
    affinity = spec.node_affinity if spec else None
    if not affinity or matches_node_selector(affinity.required, node.labels, None):
        return None
    return Reason.VOLUME_AFFINITY_MISMATCH.why(volume=name, claim=volume.claim, node=node.name)
