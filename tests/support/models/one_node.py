"""The Snapshot of one node, n1, and a view of a healthy cluster that has this node."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, convert, field
from support.fakes.views import ViewWithGaps, cluster
from support.objects import builders

from webhook.core.api.node import Node
from webhook.core.scheduler.state.cache import SchedulerCache
from webhook.core.scheduler.state.node_info import UNLISTED, CSIDrivers, NodeInfo
from webhook.core.scheduler.state.snapshot import AnySnapshot
from webhook.core.view import NoObject, Ref

HAS = {"pods": 3, "cpu": 1000}


class OneNodeSnapshot(Struct):
    """A Snapshot of n1, a node with one CPU and capacity for three pods."""

    scheduler_cache: SchedulerCache = field(default_factory=SchedulerCache)
    csi_drivers: CSIDrivers | None = None
    replicas: int = 1
    has: Mapping[str, int] = field(default_factory=HAS.copy)
    nodes: Mapping[str, Node] = field(default_factory=lambda: {"n1": convert(builders.node("n1"), Node)})

    def node(self, name: str) -> Node:
        """Return the node of that name."""
        return self.nodes.get(name, UNLISTED)

    def node_info(self, name: str) -> NodeInfo:
        """Return the node; any name has the same allocatable."""
        return self.scheduler_cache.node_info(name, self.has, self.csi_drivers, self.node(name))


class ViewWithSnapshot(ViewWithGaps):
    """A healthy n1 with this snapshot."""

    def __init__(self, snapshot: AnySnapshot, gaps: Mapping[Ref, NoObject] | None = None) -> None:
        super().__init__(cluster(builders.node("n1")), gaps or {})
        self._snapshot = snapshot

    def snapshot(self) -> AnySnapshot:
        """Return the snapshot that was given."""
        return self._snapshot
