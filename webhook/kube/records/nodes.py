"""Kubernetes nodes: the record of one, and the index over all of them."""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern
from typing import Any, Final

from webhook.core.api.meta import Condition, ObjectMeta
from webhook.core.api.node import Node, NodeStatus
from webhook.core.scheduler.state.node_info import allocatable
from webhook.kube.informer.resource import KeyList
from webhook.kube.records.shared import share

_READY: Final = "Ready"


def ready_status(status: NodeStatus | None) -> NodeStatus:
    """Return the condition Ready, without its time, and the allocatable resources of a status.

    Core reads no other condition.
    """
    ready = _ready(status)
    conditions = [Condition(type=ready.type, status=ready.status)] if ready else []
    return NodeStatus(conditions=conditions, allocatable=status.allocatable if status else None)


def transform(wire: Node) -> Node:
    """Return the record of a node, which is core's Node: all labels, and equal specs and statuses shared."""
    labels = {intern(key): intern(value) for key, value in (wire.metadata.labels or {}).items()}
    return Node(
        metadata=ObjectMeta(
            name=intern(wire.metadata.name or ""), labels=labels, deletion_timestamp=wire.metadata.deletion_timestamp
        ),
        spec=wire.spec and share(wire.spec),
        status=share(ready_status(wire.status)),
    )


def _ready(status: NodeStatus | None) -> Condition | None:
    return next((condition for condition in (status and status.conditions) or () if condition.type == _READY), None)


def to_object(_: str, record: Node) -> Node:
    """Return the record: it is the object."""
    return record


class NodeIndex(KeyList):
    """The index over the nodes.

    Attributes:
        allocatable: node name -> what the node has for pods, by resource.
        usable: how many nodes are Ready and not cordoned.
        from_karpenter: how many nodes Karpenter made.
    """

    def __init__(self) -> None:
        super().__init__()
        self.allocatable: dict[str, Mapping[str, int]] = {}
        self.usable = 0
        self.from_karpenter = 0

    def put(self, key: str, old: Any, new: Any) -> Any:
        """Take in the record `new` of this node, which was `old`. Return the record to store."""
        if old is None or old.status != new.status:
            self.allocatable[key] = allocatable(new.status.allocatable if new.status else None)
        self.usable += new.usable - (old is not None and old.usable)
        self.from_karpenter += new.from_karpenter - (old is not None and old.from_karpenter)
        return super().put(key, old, new)

    def drop(self, key: str, old: Any) -> None:
        """Remove the node, whose record was `old`."""
        del self.allocatable[key]
        self.usable -= old.usable
        self.from_karpenter -= old.from_karpenter
        super().drop(key, old)
