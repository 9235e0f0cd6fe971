"""Has this node room for this pod? What its pods take, added up as they come and go, against what it has.

The scheduler's NodeResourcesFit (plugins/noderesources/fit.go, fitsRequest) and NodePorts (plugins/nodeports/
node_ports.go, fitsPorts) filters. Invariant: what is given no refusal here is refused by neither of them, as long as
`NodeLoad` holds every pod that counts on the node (`drawn.places`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from webhook.core.api.container import Quantities
from webhook.core.api.quantity import UNREADABLE, amounts, units
from webhook.core.scheduler.state.pod_requests import CPU, HostPort, Usage, is_counted

PODS: Final = "pods"
NO_HEADROOM: Final[Mapping[str, int]] = MappingProxyType({})
_MORE_THAN_ANY: Final = units(UNREADABLE)


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


_EMPTY: Final = NodeLoad()


class NodeInfo(Struct, frozen=True):
    """One node.

    Attributes:
        has: what it has (`room.allocatable`).
        load: what its pods take, those among them that are drawn to it and not bound yet.
        volume_limits: by CSI driver.
        on_way: how many pods are drawn to it that kube-scheduler has not looked at yet.
        pinned: whether a VM that may run on no other node waits for it.
        crowded: whether several VMs were on their way there at once, and are or may still be (see `SchedulerCache`).
        settled: whether several are, and every replica knows it.
        in_flight: those that this replica has just drawn to it, and that no watch has shown yet.
    """

    has: Mapping[str, int]
    load: NodeLoad
    volume_limits: Mapping[str, int]
    on_way: int = 0
    pinned: bool = False
    crowded: bool = False
    settled: bool = False
    in_flight: NodeLoad = _EMPTY
