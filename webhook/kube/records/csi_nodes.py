"""CSINodes: the record of one."""

from __future__ import annotations

from msgspec import Struct

from webhook.core.api.node import CSINodeSpec, csi_drivers_of
from webhook.core.scheduler.state.node_info import CSIDrivers
from webhook.kube.client.metadata import BareMeta
from webhook.kube.records.shared import share


class WireCSINode(Struct, gc=False):
    """A CSINode, as far as it is decoded."""

    metadata: BareMeta
    spec: CSINodeSpec | None = None


def transform(wire: WireCSINode) -> CSIDrivers:
    """Return the record of a CSINode: its drivers, with their limits. Nearly all nodes share one."""
    return share(csi_drivers_of(wire.spec))


def to_object(_: str, record: CSIDrivers) -> CSIDrivers:
    """Return the record: core reads the drivers only."""
    return record
