"""How many pods of one shape nodes have room for."""

from __future__ import annotations

from collections.abc import Mapping

from webhook.core.scheduler.plugins.node_resources_fit import refusal
from webhook.core.scheduler.state.node_info import NO_HEADROOM, PODS, NodeLoad
from webhook.core.scheduler.state.pod_requests import Usage


def places(asked: Usage, has: Mapping[str, int], load: NodeLoad, headroom: Mapping[str, int] = NO_HEADROOM) -> int:
    """How many pods such as this one the node has room for, beside `load`; arguments as of `refusals`."""
    if refusal(asked, has, load, headroom) is not None:
        return 0
    if asked.ports:
        return 1
    found = has.get(PODS, 0) - load.pods - headroom.get(PODS, 0)
    for resource, amount in asked.requests:
        free = has.get(resource, 0) - load.requested.get(resource, 0) - headroom.get(resource, 0)
        found = min(found, free // amount)
    return found


def times(asked: Usage, other: Usage) -> int:
    """How many places for pods such as `asked` one pod such as `other` takes at the most, wherever it comes to run."""
    amounts_of_other = dict(other.requests)
    return max([1, *(-(-amounts_of_other.get(resource, 0) // amount) for resource, amount in asked.requests)])
