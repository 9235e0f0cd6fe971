"""kube-scheduler's NodeResourcesFit plugin (pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest).

Invariant: the plugin does not reject a node that passes here, for the pods that are known. `ignoredResources` in
kube-scheduler's own configuration are not known: the webhook counts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.state.node_info import MORE_THAN_ANY, NO_AMOUNTS, NodeInfo
from webhook.core.scheduler.state.pod_requests import CPU, PODS, Usage

_IN_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-")
_MEBIBYTE: Final = 2**20


class InsufficientResource(Struct, frozen=True):
    """A resource of which the node has too little left. Amounts are milli-CPU or whole units."""

    resource: str
    asked: int
    used: int
    allocatable: int

    def names(self) -> dict[str, str]:
        """Return the amounts as texts, for the sentence of a reason."""
        amounts = {name: amount_text(self.resource, getattr(self, name)) for name in ("asked", "used", "allocatable")}
        return {"resource": self.resource, **amounts}


def filter_node(cycle: CycleState, node: NodeInfo) -> Why | None:
    """Reject a node that has too little of a resource left beside its pods."""
    insufficient = next(insufficient_resources(cycle.usage, node), None)
    return None if insufficient is None else Reason.NO_ROOM.why(node=node.name, **insufficient.names())


def insufficient_resources(
    usage: Usage, node: NodeInfo, margin: Mapping[str, int] = NO_AMOUNTS
) -> Iterator[InsufficientResource]:
    """Return every resource of which the node has too little for one pod more, the number of pods first.

    `margin` is how much of a resource must stay free beside the pod: milli-CPU or whole units.
    """
    allocatable, requested = node.allocatable, node.requested
    if requested.pods + 1 > allocatable.get(PODS, 0) - margin.get(PODS, 0):
        yield InsufficientResource(PODS, 1, requested.pods, allocatable.get(PODS, 0))
    amounts = requested.amounts
    for resource, amount in usage.requests:
        total, used, kept = allocatable.get(resource, 0), amounts.get(resource, 0), margin.get(resource, 0)
        if amount > total - used - kept:
            yield InsufficientResource(resource, amount, used, total)


def amount_text(resource: str, amount: int) -> str:
    """Return the amount as Kubernetes writes it; `amount` is milli-CPU or whole units."""
    if amount >= MORE_THAN_ANY:
        return "an amount that can't be read"
    if resource == CPU:
        return f"{amount}m"
    if resource.startswith(_IN_BYTES) and amount and amount % _MEBIBYTE == 0:
        return f"{amount // _MEBIBYTE}Mi"
    return str(amount)
