"""v1.Node and storage/v1 CSINode with the fields that a rule reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from webhook.core.api.container import Quantities
from webhook.core.api.meta import ApiType, Condition, ObjectMeta, condition_of

LABEL_NODE_POOL: Final = "karpenter.sh/nodepool"


class Taint(ApiType):
    """v1.Taint: it keeps pods without a matching toleration away from a node."""

    key: str | None = None
    value: str | None = None
    effect: str | None = None


class NodeSpec(ApiType):
    """v1.NodeSpec: whether the node is cordoned, and its taints."""

    unschedulable: bool | None = None
    taints: list[Taint] | None = None


class NodeStatus(ApiType):
    """v1.NodeStatus: what a node has for pods, and its conditions."""

    allocatable: Quantities | None = None
    conditions: list[Condition] | None = None

    @property
    def ready_condition(self) -> Condition | None:
        """The condition Ready; None without one."""
        return condition_of(self.conditions, "Ready")

    @property
    def ready(self) -> bool:
        """Whether the condition Ready is True; a node without the condition is not ready."""
        found = self.ready_condition
        return found is not None and found.status == "True"


class Node(ApiType):
    """v1.Node: what kube-scheduler's rules and `reunite` read of it."""

    metadata: ObjectMeta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None

    @property
    def taints(self) -> Sequence[Taint]:
        """The node's taints."""
        return (self.spec.taints if self.spec else None) or ()

    @property
    def ready_since(self) -> str | None:
        """When the node became Ready (RFC 3339); None if it is not, or if its condition does not say it."""
        found = self.status.ready_condition if self.status and self.status.ready else None
        return found.last_transition_time if found else None

    @property
    def from_karpenter(self) -> bool:
        """Whether Karpenter made the node (sigs.k8s.io/karpenter pkg/apis/v1/labels.go, NodePoolLabelKey)."""
        return self.metadata.label(LABEL_NODE_POOL) is not None

    @property
    def usable(self) -> bool:
        """Whether the node is Ready and not cordoned."""
        return bool(self.status and self.status.ready) and not (self.spec and self.spec.unschedulable)


class VolumeCount(ApiType):
    """storage/v1 VolumeNodeResources: how many volumes of a driver the node takes."""

    count: int | None = None


class CSINodeDriver(ApiType):
    """storage/v1 CSINodeDriver: a CSI driver on a node, and its limit."""

    name: str | None = None
    allocatable: VolumeCount | None = None


class CSINodeSpec(ApiType):
    """storage/v1 CSINodeSpec: the CSI drivers of one node."""

    drivers: list[CSINodeDriver] | None = None


class CSINode(ApiType):
    """storage/v1 CSINode; its name is the node's."""

    metadata: ObjectMeta
    spec: CSINodeSpec | None = None


def csi_drivers_of(spec: CSINodeSpec | None) -> dict[str, int | None]:
    """Return the CSI drivers of a node, from its CSINode: kubelet can mount no volume of another driver there."""
    return {
        driver.name: driver.allocatable.count if driver.allocatable else None
        for driver in (spec.drivers if spec else None) or ()
        if driver.name
    }
