"""NodeInfo: one node as kube-scheduler sees it, with what it has for pods and what its pods request.

As NodeInfo in pkg/scheduler/framework/types.go. Invariant: `NodeInfo.requested` counts every pod that counts on the
node (webhook.core.scheduler.state.pod_info.pod_nodes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from webhook.core.api.container import Quantities
from webhook.core.api.meta import ObjectMeta
from webhook.core.api.node import Node
from webhook.core.api.quantity import UNREADABLE, amounts, units
from webhook.core.scheduler.state.pod_info import PodHandle
from webhook.core.scheduler.state.pod_requests import CPU, PODS, HostPort, Usage, is_counted

CSIDrivers = Mapping[str, int | None]
"""The CSI drivers of a node, each with the most volumes that can be attached there; None for no limit."""
NO_AMOUNTS: Final[Mapping[str, int]] = MappingProxyType({})
MORE_THAN_ANY: Final = units(UNREADABLE)
"""An amount that no node has: it stands for a quantity that can't be read."""

UNLISTED: Final = Node(metadata=ObjectMeta())
"""Stands for a node that the snapshot does not have."""


class NodeRequests:
    """What the pods of one node request together: their number, the amounts of resources, and host ports.

    The caller takes a pod off with the values with which it added the pod.
    """

    __slots__ = ("amounts", "pods", "ports")

    def __init__(self) -> None:
        self.pods = 0
        self.amounts: dict[str, int] = {}
        self.ports: dict[HostPort, int] = {}

    def add(self, usage: Usage, count: int = 1) -> None:
        """Count `count` pods that request `usage` each; with a negative `count`, as many no longer."""
        self.pods += count
        amounts = self.amounts
        for resource, amount in usage.requests:
            amounts[resource] = amounts.get(resource, 0) + count * amount
        for port in usage.ports:
            taken = self.ports.get(port, 0) + count
            if taken:
                self.ports[port] = taken
            else:
                del self.ports[port]  # NodePorts compares with every key, so none may stay with a count of zero


NO_REQUESTS: Final = NodeRequests()


class NodeInfo(Struct, frozen=True):
    """One node, at one moment.

    Attributes:
        node: the Node object.
        allocatable: what the node has for pods: milli-CPU or whole units by resource.
        requested: what its pods request, with the pods that will probably be bound to it.
        csi_drivers: the CSI drivers in its CSINode (`csi_drivers_of`); None if no CSINode is known.
        queued: the number of pods that will probably be bound to it, and that kube-scheduler has not tried yet.
        waited_for: whether a VM that may run on no other node waits for this one.
        starting_together: whether VMs start together there, or another replica may think so (see `SchedulerCache`).
        known_to_all: whether VMs start together on this node, and every replica knows of it.
        requested_by_queued: what the pods of `queued` request; a part of `requested`.
        pods: its pods, as terms between pods see them.
        pods_with_anti_affinity: those of them that have required anti-affinity.
    """

    node: Node
    allocatable: Mapping[str, int] = NO_AMOUNTS
    requested: NodeRequests = NO_REQUESTS
    csi_drivers: CSIDrivers | None = None
    queued: int = 0
    waited_for: bool = False
    starting_together: bool = False
    known_to_all: bool = False
    requested_by_queued: NodeRequests = NO_REQUESTS
    pods: Sequence[PodHandle] = ()
    pods_with_anti_affinity: Sequence[PodHandle] = ()

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name or ""

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return self.node.metadata.labels or {}


def allocatable(quantities: Quantities | None) -> dict[str, int]:
    """Return what a node has for pods (`status.allocatable`): milli-CPU or whole units by resource.

    Only resources that kube-scheduler counts. A quantity that can't be read is left out, so that a pod that requests
    the resource does not fit. A quantity that int64 can't hold is left out too, because Go does not read it reliably.
    """
    found = {}
    for name, thousandths in amounts(quantities).items():
        amount = thousandths if name == CPU else units(thousandths)
        if 0 < amount < MORE_THAN_ANY and (name == PODS or is_counted(name)):
            found[name] = amount
    return found
