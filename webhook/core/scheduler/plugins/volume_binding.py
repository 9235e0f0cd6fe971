"""kube-scheduler's VolumeBinding plugin (pkg/scheduler/framework/plugins/volumebinding/volume_binding.go).

Invariant: for a bound claim the plugin does not reject a node that passes here. Claims that are not bound yet are not
evaluated here: their volume can come to be on any node.
"""

from __future__ import annotations

from webhook.core.reasons import Reason
from webhook.core.scheduler.matching.node_selector import matches_node_selector
from webhook.core.scheduler.state.incoming_pod import ClaimVolume
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.scheduler.status import PASSED, Rejected, Status


def filter_volume(volume: ClaimVolume, node: NodeInfo) -> Status:
    """Reject a node that the volume's `spec.nodeAffinity` does not match."""
    spec = volume.volume.spec
    affinity = spec.node_affinity if spec else None
    if not affinity or matches_node_selector(affinity.required, node.labels, None):
        return PASSED
    names = {"node": node.name, "volume": volume.volume.metadata.name, "claim": volume.claim}
    return Rejected(Reason.VOLUME_AFFINITY_MISMATCH, names)
