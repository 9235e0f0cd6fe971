"""CSINodes: the record of one."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from webhook.core.api.node import CSINodeSpec
from webhook.core.scheduler.state.node_info import volume_limits_of
from webhook.kube.client.metadata import BareMeta
from webhook.kube.records.shared import share


class WireCSINode(Struct, gc=False):
    """A CSINode, as far as it is decoded."""

    metadata: BareMeta
    spec: CSINodeSpec | None = None


def transform(wire: WireCSINode) -> Mapping[str, int]:
    """Return the record of a CSINode: CSI driver -> the most volumes of it that the node can attach."""
    return share(volume_limits_of(wire.spec))


def to_object(_: str, record: Mapping[str, int]) -> Mapping[str, int]:
    """Return the record: core reads the limits only."""
    return record
