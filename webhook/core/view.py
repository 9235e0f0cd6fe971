"""ClusterView: what core asks of a cluster, and the three reasons why a view has no object.

A view answers from memory and never waits. If it does not hold an object, its answer is NOT_CACHED. Core then returns
`NeedObjects` with all such references at once; the caller reads these objects and asks core again.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, StrEnum
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from webhook.core.api.longhorn import LonghornNode, ShareManager, VolumeAttachment
from webhook.core.api.meta import Namespace, NamespacedName
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume, PersistentVolumeClaim
from webhook.core.api.virtual_machine import VirtualMachine, VirtualMachineInstance
from webhook.core.scheduler.state.snapshot import AnySnapshot


class Kind(StrEnum):
    """The kinds that core reads. NODE is the Kubernetes Node, LONGHORN_NODE is longhorn.io's Node."""

    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    PERSISTENT_VOLUME = "PersistentVolume"
    SHARE_MANAGER = "ShareManager"
    SHARE_MANAGER_POD = "share-manager Pod"
    NODE = "Node"
    LONGHORN_NODE = "Longhorn Node"
    VOLUME_ATTACHMENT = "Longhorn VolumeAttachment"
    CSI_NODE = "CSINode"
    NAMESPACE = "Namespace"
    CLUSTER_AUTOSCALER_STATUS = "ConfigMap cluster-autoscaler-status"
    VIRT_LAUNCHER_POD = "virt-launcher Pod"
    VIRT_LAUNCHERS_ON_NODE = "virt-launcher Pods on a node"
    VIRTUAL_MACHINE = "VirtualMachine"
    VIRTUAL_MACHINE_INSTANCE = "VirtualMachineInstance"


class ObjectRef(NamedTuple):
    """A reference to one object. The namespace of Longhorn's objects stays empty, because the view knows it."""

    kind: Kind
    key: NamespacedName

    @property
    def name(self) -> str:
        """The object's name."""
        return self.key.name


class VirtLaunchersOnNode(NamedTuple):
    """A reference to the virt-launcher pods of one namespace that are on one node."""

    namespace: str
    node: str

    @property
    def kind(self) -> Kind:
        """Always VIRT_LAUNCHERS_ON_NODE."""
        return Kind.VIRT_LAUNCHERS_ON_NODE

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node


Ref = ObjectRef | VirtLaunchersOnNode
"""What core asks a caller to read: one object, or the pods of a namespace on a node."""


VMS_OF_CLAIM_MAX: Final = 100
"""How many VMs of a claim a view names: core asks whether others share the claim, and who has it hot-plugged."""


class NoObject(Enum):
    """Why a view has no object to return."""

    NOT_FOUND = "the cluster has no such object"
    NOT_CACHED = "the object was not read yet: the caller can read it and ask core again"
    UNAVAILABLE = "the API server gave no usable answer in time"


class ClusterView(Protocol):
    """What core can ask of a cluster. Every method returns at once; none raises."""

    def read_error(self, ref: Ref) -> str:
        """Why the answer to `ref` is UNAVAILABLE, in a few words."""
        ...

    def staleness(self) -> str | None:
        """Which answers of this view may be out of date because the API server could not confirm them; None for none.

        Such an answer is good enough for a preference. It is not good enough to require a node.
        """
        ...

    def namespace(self, name: str) -> Namespace | NoObject:
        """The Namespace of that name; it may lack all labels but LABEL_CO_SCHEDULE."""
        ...

    def persistent_volume_claim(self, key: NamespacedName) -> PersistentVolumeClaim | NoObject:
        """The claim of that namespace and name."""
        ...

    def persistent_volume(self, name: str) -> PersistentVolume | NoObject:
        """The PersistentVolume of that name."""
        ...

    def share_manager(self, volume: str) -> ShareManager | NoObject:
        """The ShareManager of a Longhorn volume (PersistentVolume `spec.csi.volumeHandle`)."""
        ...

    def share_manager_pod(self, volume: str) -> Pod | NoObject:
        """The pod share-manager-<volume> in Longhorn's namespace."""
        ...

    def node(self, name: str) -> Node | NoObject:
        """The Kubernetes node of that name."""
        ...

    def has_longhorn_nodes(self) -> bool:
        """Whether the cluster has any nodes.longhorn.io. If it has none, core does not ask for them."""
        ...

    def longhorn_node(self, name: str) -> LonghornNode | NoObject:
        """Longhorn's object for the Kubernetes node of that name."""
        ...

    def node_names(self) -> Sequence[str]:
        """The names of the Kubernetes nodes, in any order; empty if only a request could tell them."""
        ...

    def usable_nodes(self) -> int:
        """The number of `node_names` that are Ready and not cordoned."""
        ...

    def has_autoscaler(self) -> bool:
        """Whether Karpenter made one of `node_names`, or cluster-autoscaler writes its status; True if not known."""
        ...

    def snapshot(self) -> AnySnapshot:
        """Return the nodes and pods; or why there is no snapshot now, or that this process counts no pods."""
        ...

    def volume_claims(self, volume: str) -> Sequence[NamespacedName] | NoObject:
        """The claims (`spec.claimRef`) of the PersistentVolumes that have this CSI volume handle.

        After NOT_CACHED the caller reads the PersistentVolume that has the handle as its name, as provisioned ones do.
        """
        ...

    def virt_launchers(self, claim: NamespacedName) -> Sequence[Pod] | NoObject:
        """Every virt-launcher pod that uses this claim; UNAVAILABLE if no cache has all of them."""
        ...

    def virt_launchers_on(self, namespace: str, node: str) -> Sequence[Pod] | NoObject:
        """The virt-launcher pods of a namespace that are on a node, from the API server and never from a cache."""
        ...

    def virtual_machine(self, key: NamespacedName) -> VirtualMachine | NoObject:
        """The VirtualMachine of that namespace and name; UNAVAILABLE if no cache follows VirtualMachines."""
        ...

    def virtual_machine_instance(self, key: NamespacedName) -> VirtualMachineInstance | NoObject:
        """The VirtualMachineInstance of that namespace and name; UNAVAILABLE if no cache follows them."""
        ...

    def virtual_machines_of(self, claim: NamespacedName) -> Sequence[str] | NoObject:
        """The names of the VMs that name this claim, in their template or as they run; UNAVAILABLE if not known.

        A VirtualMachineInstance and the VirtualMachine that owns it are one VM. The answer may lack a VM if the cache
        of one of the two kinds is not up to date, and has VMS_OF_CLAIM_MAX names of more VMs. It is never NOT_CACHED.
        """
        ...

    def volume_attachment(self, volume: str) -> VolumeAttachment | NoObject:
        """Longhorn's VolumeAttachment of a volume, from the API server and never from a cache."""
        ...


class NeedObjects(Struct, frozen=True):
    """The objects that must be read before core can decide; at least one. UNAVAILABLE counts as read."""

    refs: tuple[Ref, ...]


def need_objects(*answers: tuple[Ref, object]) -> NeedObjects:
    """Return the references whose answer is NOT_CACHED; at least one must be."""
    return NeedObjects(tuple(ref for ref, answer in answers if answer is NoObject.NOT_CACHED))
