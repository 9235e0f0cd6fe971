"""The reference to an object of each kind that core reads, with the type of the object."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.core.api.longhorn import SHARE_MANAGER_POD_PREFIX, LonghornNode, ShareManager, VolumeAttachment
from webhook.core.api.meta import Namespace, NamespacedName
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume, PersistentVolumeClaim
from webhook.core.api.virtual_machine import VirtualMachine, VirtualMachineInstance
from webhook.core.view import Kind, ObjectRef


def namespace(name: str) -> ObjectRef[Namespace]:
    """The Namespace of that name."""
    return ObjectRef(Kind.NAMESPACE, NamespacedName("", name))


def persistent_volume_claim(key: NamespacedName) -> ObjectRef[PersistentVolumeClaim]:
    """The claim of that namespace and name."""
    return ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, key)


def persistent_volume(name: str) -> ObjectRef[PersistentVolume]:
    """The PersistentVolume of that name."""
    return ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", name))


def share_manager(volume: str) -> ObjectRef[ShareManager]:
    """The ShareManager of a Longhorn volume (PersistentVolume `spec.csi.volumeHandle`)."""
    return ObjectRef(Kind.SHARE_MANAGER, NamespacedName("", volume))


def share_manager_pod(volume: str) -> ObjectRef[Pod]:
    """The pod share-manager-<volume> in Longhorn's namespace."""
    return ObjectRef(Kind.SHARE_MANAGER_POD, NamespacedName("", SHARE_MANAGER_POD_PREFIX + volume))


def node(name: str) -> ObjectRef[Node]:
    """The Kubernetes node of that name."""
    return ObjectRef(Kind.NODE, NamespacedName("", name))


def longhorn_node(name: str) -> ObjectRef[LonghornNode]:
    """Longhorn's object for the Kubernetes node of that name."""
    return ObjectRef(Kind.LONGHORN_NODE, NamespacedName("", name))


def volume_attachment(volume: str) -> ObjectRef[VolumeAttachment]:
    """Longhorn's VolumeAttachment of a volume, from the API server and never from a cache."""
    return ObjectRef(Kind.VOLUME_ATTACHMENT, NamespacedName("", volume))


def virt_launchers_on(namespace_: str, node_: str) -> ObjectRef[Sequence[Pod]]:
    """The virt-launcher pods of a namespace that are on a node, from the API server and never from a cache."""
    return ObjectRef(Kind.VIRT_LAUNCHERS_ON_NODE, NamespacedName(namespace_, node_))


def virtual_machine(key: NamespacedName) -> ObjectRef[VirtualMachine]:
    """The VirtualMachine of that namespace and name; UNAVAILABLE if no cache follows VirtualMachines."""
    return ObjectRef(Kind.VIRTUAL_MACHINE, key)


def virtual_machine_instance(key: NamespacedName) -> ObjectRef[VirtualMachineInstance]:
    """The VirtualMachineInstance of that namespace and name; UNAVAILABLE if no cache follows them."""
    return ObjectRef(Kind.VIRTUAL_MACHINE_INSTANCE, key)
