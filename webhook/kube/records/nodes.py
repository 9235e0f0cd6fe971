"""Nodes, Longhorn's nodes and CSINodes: what is kept of one."""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern
from typing import Any, Final

from msgspec import Struct

from webhook.core.api.longhorn import (
    LonghornNode,
)
from webhook.core.api.meta import ObjectMeta
from webhook.core.api.node import CSINodeSpec, Node, NodeSpec, NodeStatus
from webhook.core.scheduler.plugins.node_volume_limits import limits
from webhook.core.scheduler.state.node_info import allocatable
from webhook.core.scheduler.topology.node_labels import NodeLabels
from webhook.kube.client.metadata import BareMeta, WireMeta
from webhook.kube.informer.index import Names
from webhook.kube.records.shared import share

_TOPOLOGY_KEYS: Final = ("kubernetes.io/hostname", "topology.kubernetes.io/zone")  # what nearly all pods' rules name


class Nodes(Names):
    """Nodes, what each has for pods, their labels, and how many of them are Ready and not cordoned."""

    def __init__(self) -> None:
        super().__init__()
        self.labels = NodeLabels(followed=_TOPOLOGY_KEYS)
        self.has: dict[str, Mapping[str, int]] = {}
        self.usable = 0

    def put(self, key: str, old: Any, new: Any) -> Any:
        """As Names."""
        if old is None or old.status != new.status:
            self.has[key] = allocatable(new.status.allocatable if new.status else None)
        self.usable += new.usable - (old is not None and old.usable)
        if old is None or old.metadata.labels != new.metadata.labels:
            self.labels.put(key, new.metadata.labels)
        return super().put(key, old, new)

    def drop(self, key: str, old: Any) -> None:
        """As Names."""
        del self.has[key]
        self.usable -= old.usable
        self.labels.drop(key)
        super().drop(key, old)


_READY: Final = "Ready"


class WireNode(Struct, gc=False):
    """A core Node."""

    metadata: WireMeta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class WireLonghornNode(Struct, gc=False):
    """A nodes.longhorn.io."""

    metadata: BareMeta
    status: NodeStatus | None = None


def _readiness(status: NodeStatus | None) -> NodeStatus:
    """Of the conditions Ready alone: a node has many, and only this one is read."""
    ready = [condition for condition in (status and status.conditions) or () if condition.type == _READY]
    return NodeStatus(conditions=ready[:1], allocatable=status.allocatable if status else None)


def keep_node(wire: WireNode) -> Node:
    """Record."""
    labels = {intern(key): intern(value) for key, value in (wire.metadata.labels or {}).items()}
    return Node(
        metadata=ObjectMeta(
            name=intern(wire.metadata.name), labels=labels, deletion_timestamp=wire.metadata.deletion_timestamp
        ),
        spec=share(wire.spec),
        status=share(_readiness(wire.status)),
    )


def keep_longhorn_node(wire: WireLonghornNode) -> NodeStatus:
    """Record."""
    return share(_readiness(wire.status))


def build_longhorn_node(name: str, status: NodeStatus | None) -> LonghornNode:
    """Object."""
    return LonghornNode(metadata=ObjectMeta(name=name), status=status)


class WireCSINode(Struct, gc=False):
    """A CSINode."""

    metadata: BareMeta
    spec: CSINodeSpec | None = None


def keep_csi_node(wire: WireCSINode) -> Mapping[str, int]:
    """Record: driver -> most volumes."""
    return share(limits(wire.spec))


def build_csi_node(_: str, most: Mapping[str, int]) -> Mapping[str, int]:
    """The record is what is asked for."""
    return most
