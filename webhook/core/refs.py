"""The reference to an object of each kind that core reads, with the type of the object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from webhook.core.api.longhorn import SHARE_MANAGER_POD_PREFIX, LonghornNode, ShareManager, VolumeAttachment
from webhook.core.api.meta import Namespace, NamespacedName
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume, PersistentVolumeClaim
from webhook.core.api.virtual_machine import VirtualMachine, VirtualMachineInstance
from webhook.core.view import Kind, ObjectRef

_T = TypeVar("_T")


def _by_name(kind: Kind, _: type[_T], prefix: str = "") -> Callable[[str], ObjectRef[_T]]:
    return lambda name: ObjectRef(kind, NamespacedName("", prefix + name))


def _by_key(kind: Kind, _: type[_T]) -> Callable[[NamespacedName], ObjectRef[_T]]:
    return lambda key: ObjectRef(kind, key)


namespace = _by_name(Kind.NAMESPACE, Namespace)
persistent_volume_claim = _by_key(Kind.PERSISTENT_VOLUME_CLAIM, PersistentVolumeClaim)
persistent_volume = _by_name(Kind.PERSISTENT_VOLUME, PersistentVolume)
node = _by_name(Kind.NODE, Node)
longhorn_node = _by_name(Kind.LONGHORN_NODE, LonghornNode)
virtual_machine = _by_key(Kind.VIRTUAL_MACHINE, VirtualMachine)  # UNAVAILABLE if no cache follows them
virtual_machine_instance = _by_key(Kind.VIRTUAL_MACHINE_INSTANCE, VirtualMachineInstance)  # the same
# By the name of a Longhorn volume, which is the PersistentVolume's spec.csi.volumeHandle.
share_manager = _by_name(Kind.SHARE_MANAGER, ShareManager)
share_manager_pod = _by_name(Kind.SHARE_MANAGER_POD, Pod, SHARE_MANAGER_POD_PREFIX)
volume_attachment = _by_name(Kind.VOLUME_ATTACHMENT, VolumeAttachment)  # from the API server and never from a cache


def virt_launchers_on(namespace_: str, node_: str) -> ObjectRef[Sequence[Pod]]:
    """The virt-launcher pods of a namespace that are on a node, from the API server and never from a cache."""
    return ObjectRef(Kind.VIRT_LAUNCHERS_ON_NODE, NamespacedName(namespace_, node_))
