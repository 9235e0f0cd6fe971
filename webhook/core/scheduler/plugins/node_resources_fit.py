"""kube-scheduler's NodeResourcesFit filter (plugins/noderesources/fit.go, fitsRequest)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from webhook.core.scheduler.plugins.node_ports import PortTaken
from webhook.core.scheduler.state.node_info import _MORE_THAN_ANY, NO_HEADROOM, PODS, NodeLoad
from webhook.core.scheduler.state.pod_requests import CPU, Usage

_IN_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-")
_MEBIBYTE: Final = 2**20


class Shortage(Struct, frozen=True):
    """A resource of which the node has too little left. Amounts are milli-CPU or whole units."""

    resource: str
    asked: int
    used: int
    allocatable: int
    headroom: int

    def names(self) -> dict[str, str]:
        """The amounts as a person reads them, for a sentence."""
        told = {name: amount_text(self.resource, getattr(self, name)) for name in ("asked", "used", "allocatable")}
        kept = f", {amount_text(self.resource, self.headroom)} of it kept free" if self.headroom else ""
        return {"resource": self.resource, "headroom": kept, **told}


Refusal = Shortage | PortTaken


def refusal(
    asked: Usage, has: Mapping[str, int], load: NodeLoad, headroom: Mapping[str, int] = NO_HEADROOM
) -> Refusal | None:
    """The first thing that the node has not enough of for this pod, None where it has room."""
    return next(refusals(asked, has, load, headroom), None)


def refusals(
    asked: Usage, has: Mapping[str, int], load: NodeLoad, headroom: Mapping[str, int] = NO_HEADROOM
) -> Iterator[Refusal]:
    """Everything that the node has not enough of, the number of pods first and ports last.

    Args:
        asked: the pod, not counted in `load`.
        has: the node's `allocatable`.
        load: the pods on the node.
        headroom: how much of a resource has to stay free beside this pod.
    """
    if load.pods + 1 > has.get(PODS, 0) - headroom.get(PODS, 0):
        yield Shortage(PODS, 1, load.pods, has.get(PODS, 0), headroom.get(PODS, 0))
    for resource, amount in asked.requests:
        there, used, kept = has.get(resource, 0), load.requested.get(resource, 0), headroom.get(resource, 0)
        if amount > there - used - kept:
            yield Shortage(resource, amount, used, there, kept)
    for port in asked.ports:
        if any(map(port.clashes, load.ports)):
            yield PortTaken(port)


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


def amount_text(resource: str, amount: int) -> str:
    """An amount as Kubernetes would write it."""
    if amount >= _MORE_THAN_ANY:
        return "an amount that can't be read"
    if resource == CPU:
        return f"{amount}m"
    if resource.startswith(_IN_BYTES) and amount and amount % _MEBIBYTE == 0:
        return f"{amount // _MEBIBYTE}Mi"
    return str(amount)
