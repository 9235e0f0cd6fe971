"""kube-scheduler's VolumeZone filter (plugins/volumezone/volume_zone.go)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TOPOLOGY_LABELS: Final = {  # each with the label that has replaced it
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}


def _is_elsewhere(volume_labels: Mapping[str, str], node_labels: Mapping[str, str]) -> bool:
    """The scheduler's VolumeZone filter (plugins/volumezone/volume_zone.go): topology labels of a PersistentVolume.

    A node without any topology label is refused nowhere. Several zones stand in one value, `a__b`; one that does not
    split into names is passed over.
    """
    if node_labels.keys().isdisjoint(TOPOLOGY_LABELS):
        return False
    for label, current in TOPOLOGY_LABELS.items():
        places = [place.strip() for place in volume_labels.get(label, "").split("__")]
        if "" not in places and node_labels.get(label, node_labels.get(current)) not in places:
            return True
    return False
