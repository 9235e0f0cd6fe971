"""NodeInfo: one node as kube-scheduler sees it, with what it has for pods and what its pods request.

As NodeInfo in pkg/scheduler/framework/types.go. Invariant: `NodeInfo.requested` counts every pod that counts on the
node (webhook.core.scheduler.state.pod_info.pod_nodes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from webhook.core.api.container import UNREADABLE, Quantities, amounts, units
from webhook.core.api.meta import ObjectMeta
from webhook.core.api.node import Node
from webhook.core.scheduler.state.pod_info import PodInfo
from webhook.core.scheduler.state.pod_requests import CPU, PODS, Usage, is_counted

CSIDrivers = Mapping[str, int | None]
"""The CSI drivers of a node, each with the most volumes that can be attached there; None for no limit."""
NO_AMOUNTS: Final[Mapping[str, int]] = MappingProxyType({})
MORE_THAN_ANY: Final = units(UNREADABLE)
"""An amount that no node has: it stands for a quantity that can't be read."""

UNLISTED: Final = Node(metadata=ObjectMeta())
"""Stands for a node that the snapshot does not have."""


class NodeRequests:
    """What pods request together: their number, and the amounts of resources.

    The caller takes a pod off with the values with which it added the pod.
    """

    __slots__ = ("amounts", "pods")

    def __init__(self) -> None:
        self.pods = 0
        self.amounts: dict[str, int] = {}

    def add(self, usage: Usage, count: int = 1) -> None:
        """Count `count` pods that request `usage` each; with a negative `count`, as many no longer."""
        self.pods += count
        amounts = self.amounts
        for resource, amount in usage.requests:
            amounts[resource] = amounts.get(resource, 0) + count * amount

    def of(self, resource: str) -> int:
        """Return what is requested of a resource, or the number of pods."""
        return self.pods if resource == PODS else self.amounts.get(resource, 0)


NO_REQUESTS: Final = NodeRequests()


class NodeInfo(Struct, frozen=True):
    """One node, at one moment.

    Attributes:
        node: the Node object.
        allocatable: what the node has for pods: milli-CPU or whole units by resource.
        requested: what its pods request, with those that will probably be bound to it.
        csi_drivers: the CSI drivers in its CSINode (`csi_drivers_of`); None if no CSINode is known.
        on_the_way: what the pods request that kube-scheduler has not tried yet; a part of `requested`.
        labelled: those of its pods whose labels are kept (`PodInfo.labels`), with each pinned VM that is not bound.
    """

    node: Node
    allocatable: Mapping[str, int] = NO_AMOUNTS
    requested: NodeRequests = NO_REQUESTS
    csi_drivers: CSIDrivers | None = None
    on_the_way: NodeRequests = NO_REQUESTS
    labelled: Sequence[PodInfo] = ()

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
