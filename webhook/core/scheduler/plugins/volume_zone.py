"""kube-scheduler's VolumeZone plugin (pkg/scheduler/framework/plugins/volumezone/volume_zone.go).

Invariant: for a bound claim the plugin does not reject a node that passes here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import ClaimVolume
from webhook.core.scheduler.state.node_info import NodeInfo

TOPOLOGY_LABELS: Final = {  # each with the label that has replaced it
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}


def filter_volume(volume: ClaimVolume, node: NodeInfo) -> Why | None:
    """Reject a node whose zone or region is not among those in the labels of the PersistentVolume."""
    labels = volume.volume.metadata.labels
    if not labels or not _is_elsewhere(labels, node.labels):
        return None
    name = volume.volume.metadata.name
    return Reason.VOLUME_ZONE_MISMATCH.why(volume=name, claim=volume.claim, node=node.name)


def _is_elsewhere(volume_labels: Mapping[str, str], node_labels: Mapping[str, str]) -> bool:
    """A node without any topology label is accepted. A volume can name several zones in one value, `a__b`.

    A value that does not split into names is ignored.
    """
    if node_labels.keys().isdisjoint(TOPOLOGY_LABELS):
        return False
    for label, current in TOPOLOGY_LABELS.items():
        zones = [zone.strip() for zone in volume_labels.get(label, "").split("__")]
        if "" not in zones and node_labels.get(label, node_labels.get(current)) not in zones:
            return True
    return False
