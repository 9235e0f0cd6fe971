"""Longhorn's nodes (nodes.longhorn.io): the record of one."""

from __future__ import annotations

from msgspec import Struct

from webhook.core.api.longhorn import NFS_CLIENT_INSTALLED, LonghornNode
from webhook.core.api.meta import Condition, ObjectMeta
from webhook.core.api.node import NodeStatus
from webhook.kube.client.metadata import BareMeta
from webhook.kube.records.shared import share


class WireLonghornNode(Struct, gc=False):
    """A nodes.longhorn.io, as far as it is decoded."""

    metadata: BareMeta
    status: NodeStatus | None = None


def transform(wire: WireLonghornNode) -> NodeStatus:
    """Return the record of a Longhorn node: the conditions that core reads. Equal records are one object."""
    status = wire.status or NodeStatus()
    conditions = ((type_, status.condition(type_)) for type_ in ("Ready", NFS_CLIENT_INSTALLED))
    return share(NodeStatus(conditions=[Condition(type=type_, status=value) for type_, value in conditions if value]))


def to_object(key: str, record: NodeStatus | None) -> LonghornNode:
    """Return the Longhorn node of this name and status."""
    return LonghornNode(metadata=ObjectMeta(name=key), status=record)
