"""How many pods of one shape a node has enough for."""

from __future__ import annotations

from collections.abc import Mapping

from webhook.core.scheduler.plugins.node_ports import find_taken
from webhook.core.scheduler.plugins.node_resources_fit import insufficient_resources
from webhook.core.scheduler.state.node_info import NO_HEADROOM, NodeInfo
from webhook.core.scheduler.state.pod_requests import PODS, Usage


def count_fitting(usage: Usage, node: NodeInfo, headroom: Mapping[str, int] = NO_HEADROOM) -> int:
    """Return how many pods that request `usage` the node has enough for, beside its pods and the headroom."""
    if next(insufficient_resources(usage, node, headroom), None) is not None or find_taken(usage, node.requested):
        return 0
    if usage.ports:
        return 1
    allocatable, requested = node.allocatable, node.requested
    count = allocatable.get(PODS, 0) - requested.pods - headroom.get(PODS, 0)
    for resource, amount in usage.requests:
        free = allocatable.get(resource, 0) - requested.amounts.get(resource, 0) - headroom.get(resource, 0)
        count = min(count, free // amount)
    return count


def count_displaced(usage: Usage, other: Usage) -> int:
    """Return how many pods that request `usage` one pod that requests `other` displaces at most, on any node."""
    amounts = dict(other.requests)
    return max([1, *(-(-amounts.get(resource, 0) // amount) for resource, amount in usage.requests)])
