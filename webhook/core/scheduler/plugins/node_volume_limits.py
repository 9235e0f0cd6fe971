"""How many volumes of a CSI driver a node can have attached: what the scheduler's NodeVolumeLimits filter goes by.

Limits stand in the node's CSINode (plugins/nodevolumelimits/csi.go); most drivers, Longhorn's among them, set none. So
what is attached is not counted here: a node with a limit on a driver is not required of a pod that uses it.
"""

from __future__ import annotations

from webhook.core.api.node import CSINodeSpec


def limits(spec: CSINodeSpec | None) -> dict[str, int]:
    """Driver -> most volumes, of the drivers that have a limit on the node. A node without a CSINode has none."""
    return {
        driver.name: driver.allocatable.count
        for driver in (spec.drivers if spec else None) or ()
        if driver.name and driver.allocatable and driver.allocatable.count is not None
    }
