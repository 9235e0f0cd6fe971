"""Clusters for core, made of dicts: complete ones, and ones that answer NOT_CACHED or UNAVAILABLE for some objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from webhook.core.api.longhorn import SHARE_MANAGER_POD_PREFIX, LonghornNode, ShareManager, VolumeAttachment
from webhook.core.api.meta import Namespace, NamespacedName
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume, PersistentVolumeClaim
from webhook.core.api.virtual_machine import VirtualMachine, VirtualMachineInstance
from webhook.core.scheduler.state.snapshot import AnySnapshot
from webhook.core.view import Kind, NoObject, ObjectRef, Ref, VirtLaunchersOnNode
from webhook.objects.documents import Document
from webhook.objects.manifests import Manifests
from webhook.objects.objects import read_objects

LONGHORN_NAMESPACE = "longhorn-system"
_NOWHERE = yaml.compose("{}")


def cluster(*objects: dict[str, Any]) -> Manifests:
    """A cluster with exactly these objects."""
    return Manifests(
        read_objects(Document("-", value, _NOWHERE) for value in objects), longhorn_namespace=LONGHORN_NAMESPACE
    )


class Patchy:
    """A view of a complete cluster that answers with a NoObject if `gaps` has one for the object."""

    def __init__(self, whole: Manifests, gaps: Mapping[Ref, NoObject], *, staleness: str | None = None) -> None:
        self._whole = whole
        self._gaps = gaps
        self._doubt = staleness

    def read_error(self, ref: Ref) -> str:
        """Implement ClusterView, for UNAVAILABLE objects only."""
        assert self._gaps[ref] is NoObject.UNAVAILABLE
        return "503 for a test"

    def staleness(self) -> str | None:
        """Implement ClusterView."""
        return self._doubt

    def namespace(self, name: str) -> Namespace | NoObject:
        """Implement ClusterView."""
        return self._gap(Kind.NAMESPACE, NamespacedName("", name)) or self._whole.namespace(name)

    def persistent_volume_claim(self, key: NamespacedName) -> PersistentVolumeClaim | NoObject:
        """Implement ClusterView."""
        return self._gap(Kind.PERSISTENT_VOLUME_CLAIM, key) or self._whole.persistent_volume_claim(key)

    def persistent_volume(self, name: str) -> PersistentVolume | NoObject:
        """Implement ClusterView."""
        return self._gap(Kind.PERSISTENT_VOLUME, NamespacedName("", name)) or self._whole.persistent_volume(name)

    def share_manager(self, volume: str) -> ShareManager | NoObject:
        """Implement ClusterView."""
        return self._gap(Kind.SHARE_MANAGER, NamespacedName("", volume)) or self._whole.share_manager(volume)

    def share_manager_pod(self, volume: str) -> Pod | NoObject:
        """Implement ClusterView."""
        key = NamespacedName("", SHARE_MANAGER_POD_PREFIX + volume)
        return self._gap(Kind.SHARE_MANAGER_POD, key) or self._whole.share_manager_pod(volume)

    def node(self, name: str) -> Node | NoObject:
        """Implement ClusterView."""
        return self._gap(Kind.NODE, NamespacedName("", name)) or self._whole.node(name)

    def has_longhorn_nodes(self) -> bool:
        """Implement ClusterView."""
        return self._whole.has_longhorn_nodes()

    def longhorn_node(self, name: str) -> LonghornNode | NoObject:
        """Implement ClusterView."""
        return self._gap(Kind.LONGHORN_NODE, NamespacedName("", name)) or self._whole.longhorn_node(name)

    def node_names(self) -> Sequence[str]:
        """Implement ClusterView."""
        return self._whole.node_names()

    def usable_nodes(self) -> int:
        """Implement ClusterView."""
        return self._whole.usable_nodes()

    def has_autoscaler(self) -> bool:
        """Implement ClusterView."""
        return self._whole.has_autoscaler()

    def snapshot(self) -> AnySnapshot:
        """Implement ClusterView."""
        return self._whole.snapshot()

    def volume_claims(self, volume: str) -> Sequence[NamespacedName] | NoObject:
        """Implement ClusterView."""
        return self._gap(Kind.PERSISTENT_VOLUME, NamespacedName("", volume)) or self._whole.volume_claims(volume)

    def virt_launchers(self, claim: NamespacedName) -> Sequence[Pod] | NoObject:
        """Implement ClusterView. A NoObject for a claim is the NoObject of the pods that use it."""
        return self._gap(Kind.VIRT_LAUNCHER_POD, claim) or self._whole.virt_launchers(claim)

    def virt_launchers_on(self, namespace: str, node: str) -> Sequence[Pod] | NoObject:
        """Implement ClusterView."""
        found = self._gaps.get(VirtLaunchersOnNode(namespace, node))
        return found or self._whole.virt_launchers_on(namespace, node)

    def virtual_machine(self, key: NamespacedName) -> VirtualMachine | NoObject:
        """Implement ClusterView."""
        return self._gap(Kind.VIRTUAL_MACHINE, key) or self._whole.virtual_machine(key)

    def virtual_machine_instance(self, key: NamespacedName) -> VirtualMachineInstance | NoObject:
        """Implement ClusterView."""
        return self._gap(Kind.VIRTUAL_MACHINE_INSTANCE, key) or self._whole.virtual_machine_instance(key)

    def virtual_machines_of(self, claim: NamespacedName) -> Sequence[str] | NoObject:
        """Implement ClusterView."""
        return self._whole.virtual_machines_of(claim)

    def volume_attachment(self, volume: str) -> VolumeAttachment | NoObject:
        """Implement ClusterView."""
        return self._gap(Kind.VOLUME_ATTACHMENT, NamespacedName("", volume)) or self._whole.volume_attachment(volume)

    def _gap(self, kind: Kind, key: NamespacedName) -> NoObject | None:
        return self._gaps.get(ObjectRef(kind, key))
