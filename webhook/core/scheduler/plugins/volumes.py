"""What the bound volumes of a pod have against a node.

Upstream: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, volumezone/volume_zone.go and
nodevolumelimits/csi.go. Invariant: these plugins do not reject a node that passes here, for bound claims with CSI
volumes. Claims that are not bound yet are not evaluated: their volume can come to be on any node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from webhook.core.api.storage import PersistentVolume
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.plugins.node_affinity import matches_node_selector
from webhook.core.scheduler.state.node_info import NodeInfo

TOPOLOGY_LABELS: Final = {  # each with the label that has replaced it
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}


class ClaimVolume(Struct, frozen=True):
    """A bound claim of the pod, or of a pod that must be on the same node, with its PersistentVolume.

    `served_from`: the node of the share-manager that serves the volume, empty if the share-manager is on none. None for
    a volume that is attached to the pod's own node. `of_one_pod`: whether only one pod at a time may use the claim.
    """

    claim: str
    volume: PersistentVolume
    served_from: str | None = None
    of_one_pod: bool = False


def why_unusable(volumes: Iterable[ClaimVolume], node: NodeInfo) -> Why | None:
    """Return why a volume can't be used on the node; without such a reason, why that is not known."""
    whys = [why for volume in volumes for why in _whys(volume, node)]
    return next((why for why in whys if why.reason.columns.excludes), whys[0] if whys else None)


def _whys(bound: ClaimVolume, node: NodeInfo) -> Iterator[Why]:
    volume, spec = bound.volume, bound.volume.spec
    names = {"volume": volume.metadata.name, "claim": bound.claim, "node": node.name}
    affinity = spec.node_affinity if spec else None
    if affinity and not matches_node_selector(affinity.required, node.labels, None):
        yield Reason.VOLUME_AFFINITY_MISMATCH.why(**names)
    if volume.metadata.labels and _is_elsewhere(volume.metadata.labels, node.labels):
        yield Reason.VOLUME_ZONE_MISMATCH.why(**names)
    csi = spec.csi if spec else None
    limit = (node.csi_drivers or {}).get(csi.driver or "") if csi else None
    if csi and limit is not None:
        yield Reason.VOLUME_COUNT_UNKNOWN.why(node=node.name, driver=csi.driver, limit=limit, claim=bound.claim)


def _is_elsewhere(volume_labels: Mapping[str, str], node_labels: Mapping[str, str]) -> bool:
    """Whether the node's zone or region is not among the volume's; a node without any such label is accepted.

    A volume can name several zones in one value, `a__b`. A value that does not split into names is ignored.
    """
    if node_labels.keys().isdisjoint(TOPOLOGY_LABELS):
        return False
    for label, current in TOPOLOGY_LABELS.items():
        zones = [zone.strip() for zone in volume_labels.get(label, "").split("__")]
        if "" not in zones and node_labels.get(label, node_labels.get(current)) not in zones:
            return True
    return False
