"""Snapshot: the nodes and pods of a cluster at one moment, as plugins see them.

Upstream: SharedLister and its NodeInfoLister in pkg/scheduler/framework/listers.go.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from webhook.core.api.node import Node
from webhook.core.scheduler.state.cache import SchedulerCache
from webhook.core.scheduler.state.node_info import NodeInfo


class Snapshot(Protocol):
    """Every node, and every pod that is bound to a node or will probably be bound to one."""

    @property
    def scheduler_cache(self) -> SchedulerCache:
        """The pods on their nodes."""

    @property
    def replicas(self) -> int:
        """The number of replicas of the webhook that an API server may call, this one included; 1 at least."""

    def node(self, name: str) -> Node:
        """Return the node of that name; `UNLISTED` for an unknown one."""

    def node_info(self, name: str) -> NodeInfo:
        """Return the node of that name with its pods; `UNLISTED` is the Node of an unknown one."""


class SnapshotUnavailable(Struct, frozen=True):
    """There is no snapshot now. `problem` says why: a part of a sentence."""

    problem: str


AnySnapshot = Snapshot | SnapshotUnavailable
