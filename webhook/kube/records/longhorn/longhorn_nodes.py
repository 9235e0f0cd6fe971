"""Longhorn's nodes (nodes.longhorn.io): the record of one."""

from __future__ import annotations

from msgspec import Struct

from webhook.core.api.longhorn import LonghornNode
from webhook.core.api.meta import ObjectMeta
from webhook.core.api.node import NodeStatus
from webhook.kube.client.metadata import BareMeta
from webhook.kube.records.nodes import ready_status
from webhook.kube.records.shared import share


class WireLonghornNode(Struct, gc=False):
    """A nodes.longhorn.io, as far as it is decoded."""

    metadata: BareMeta
    status: NodeStatus | None = None


def transform(wire: WireLonghornNode) -> NodeStatus:
    """Return the record of a Longhorn node: its condition Ready. Equal records are one object."""
    return share(ready_status(wire.status))


def to_object(key: str, record: NodeStatus | None) -> LonghornNode:
    """Return the Longhorn node of this name and status."""
    return LonghornNode(metadata=ObjectMeta(name=key), status=record)
