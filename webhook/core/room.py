"""Has this node room for this pod? What its pods take, added up as they come and go, against what it has.

The scheduler's NodeResourcesFit (plugins/noderesources/fit.go, fitsRequest) and NodePorts (plugins/nodeports/
node_ports.go, fitsPorts) filters. Invariant: what is given no refusal here is refused by neither of them, as long as
`NodeLoad` holds every pod that counts on the node (`drawn.places`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from webhook.core.api.container import Quantities
from webhook.core.api.quantity import UNREADABLE, amounts, units
from webhook.core.requests import CPU, HostPort, Usage, is_counted

PODS: Final = "pods"
NO_HEADROOM: Final[Mapping[str, int]] = MappingProxyType({})
_IN_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-")
_MEBIBYTE: Final = 2**20
_MORE_THAN_ANY: Final = units(UNREADABLE)


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


class PortTaken(Struct, frozen=True):
    """A host port that a pod of the node has already."""

    port: HostPort

    def names(self) -> dict[str, str]:
        """The port as a person reads it, for a sentence."""
        return {"port": f"{self.port.protocol} {self.port.address}:{self.port.port}"}


Refusal = Shortage | PortTaken


class NodeLoad:
    """What the pods of one node take together. `add` and `remove` cost what one pod asks for, not what the node has.

    Whoever adds a pod must remove it with the same values.
    """

    __slots__ = ("pods", "ports", "requested")

    def __init__(self) -> None:
        self.pods = 0
        self.requested: dict[str, int] = {}
        self.ports: dict[HostPort, int] = {}

    def add(self, usage: Usage, count: int = 1) -> None:
        """Count so many pods."""
        self.pods += count
        requested = self.requested
        for resource, amount in usage.requests:
            requested[resource] = requested.get(resource, 0) + count * amount
        for port in usage.ports:
            self.ports[port] = self.ports.get(port, 0) + count

    def copy(self) -> NodeLoad:
        """Another one that counts the same pods."""
        other = NodeLoad()
        other.pods, other.requested, other.ports = self.pods, self.requested.copy(), self.ports.copy()
        return other

    def remove(self, usage: Usage) -> None:
        """Count a pod no more."""
        self.pods -= 1
        requested = self.requested
        for resource, amount in usage.requests:
            requested[resource] -= amount
        for port in usage.ports:
            if self.ports[port] == 1:
                del self.ports[port]  # an entry of none would be taken for one that is there
            else:
                self.ports[port] -= 1


def allocatable(quantities: Quantities | None) -> dict[str, int]:
    """What a node has for pods (status.allocatable), of the resources that are counted.

    What can't be read is left out: a pod that asks for it does not fit. So is what int64 can't hold, for Go reads
    that as anything.
    """
    found = {}
    for name, thousandths in amounts(quantities).items():
        amount = thousandths if name == CPU else units(thousandths)
        if 0 < amount < _MORE_THAN_ANY and (name == PODS or is_counted(name)):
            found[name] = amount
    return found


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
