"""kube-scheduler's NodeVolumeLimits plugin (pkg/scheduler/framework/plugins/nodevolumelimits/csi.go).

A node's CSINode sets the limits. Most drivers set none, and Longhorn's is one of them.
Invariant: the plugin rejects no node that passes here. The number of volumes that are attached is not known: a node
that sets a limit for a driver passes for no pod that uses the driver.
"""

from __future__ import annotations

from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import ClaimVolume
from webhook.core.scheduler.state.node_info import NodeInfo


def filter_volume(volume: ClaimVolume, node: NodeInfo) -> Why | None:
    """Return that the node limits the number of volumes of this volume's driver."""
    spec = volume.volume.spec
    csi = spec.csi if spec else None
    limit = (node.csi_drivers or {}).get(csi.driver or "") if csi else None
    if csi is None or limit is None:
        return None
    return Reason.VOLUME_COUNT_UNKNOWN.why(node=node.name, driver=csi.driver, limit=limit, claim=volume.claim)
