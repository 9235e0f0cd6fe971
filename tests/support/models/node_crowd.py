"""What is there on one node, n1, as core asks for it: a Crowd, and a view of a healthy cluster that has it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, convert, field
from support.fakes.views import Patchy, cluster
from support.objects import builders

from webhook.core.api.node import Node
from webhook.core.scheduler.state.cache import SchedulerCache
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.scheduler.state.pod_index import PodIndex
from webhook.core.scheduler.state.pod_requests import Usage
from webhook.core.scheduler.state.snapshot import Snapshot
from webhook.core.scheduler.topology.node_labels import NodeLabels
from webhook.core.view import NoObject, Ref

HAS = {"pods": 3, "cpu": 1000}


class There(Struct):
    """A Crowd on n1, a node of one CPU and three pods."""

    scheduler_cache: SchedulerCache = field(default_factory=SchedulerCache)
    headroom: Mapping[str, int] = {}
    volume_limits: Mapping[str, int] = {}
    replicas: int = 1
    has: Mapping[str, int] = field(default_factory=HAS.copy)
    node_labels: NodeLabels = field(default_factory=NodeLabels)
    nodes: Mapping[str, Node] = field(default_factory=lambda: {"n1": convert(builders.node("n1"), Node)})

    @property
    def pod_index(self) -> PodIndex:
        """As Crowd says."""
        return self.scheduler_cache.pod_index

    def room(self, node: str) -> NodeInfo:
        """As Crowd says."""
        return self.scheduler_cache.room(node, self.has, self.volume_limits)

    def listed(self, *, in_flight: bool) -> Mapping[Usage, int]:
        """As Crowd says."""
        return self.scheduler_cache.listed(in_flight=in_flight)


class Crowded(Patchy):
    """A healthy n1 with this crowd."""

    def __init__(self, snapshot: Snapshot | str | None, gaps: Mapping[Ref, NoObject] | None = None) -> None:
        super().__init__(cluster(builders.node("n1")), gaps or {})
        self._crowd = snapshot

    def snapshot(self) -> Snapshot | str | None:
        """As ClusterView says."""
        return self._crowd
