"""Manifests: a ClusterView of objects that were read once, from files or at an API server.

Invariant: nothing is ever missing here. An object that was not read is absent, unless it is known of its kind that
it could not be listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.meta import NamespacedName
from webhook.core.api.node import Node, csi_drivers_of
from webhook.core.api.pod import Pod, uses
from webhook.core.api.storage import PersistentVolumeClaim, claim_of
from webhook.core.decision import Pin
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.placement.replica_share import count_replicas, own_namespace_of
from webhook.core.scheduler.state.node_info import NO_HEADROOM
from webhook.core.scheduler.state.snapshot import NOT_COUNTED, NotCounted, SnapshotUnavailable
from webhook.core.view import ClusterView, Kind, NoObject, ObjectRef, ObjectT, Ref
from webhook.core.virtual_machines import KINDS_OF_VMS, ListedVirtualMachines
from webhook.objects.kinds import (
    CONFIG_MAP,
    CSI_NODE,
    LONGHORN_NODE,
    NAMESPACE,
    NODE,
    OF_CORE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SHARE_MANAGER,
    VIRT_LAUNCHER_POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    VOLUME_ATTACHMENT,
    APIResource,
)
from webhook.objects.objects import ObjectStore, load_objects


class Manifests(ListedVirtualMachines):
    """The cluster of these objects; a ClusterView (webhook.core.view)."""

    def __init__(
        self,
        objects: ObjectStore,
        *,
        longhorn_namespace: str,
        headroom: Mapping[str, int] | None = NO_HEADROOM,
    ) -> None:
        """Count the pods on the nodes.

        Args:
            objects: what was read.
            longhorn_namespace: of Longhorn's objects.
            headroom: what must stay free on a node; None if the resources of nodes do not count.
        """
        self.objects = objects
        super().__init__(
            *(
                None if objects.problem(kind) else objects.of(kind)
                for kind in (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE)
            )
        )
        self._claims = objects.of(PERSISTENT_VOLUME_CLAIM)
        self._claims_in: dict[str, list[PersistentVolumeClaim]] = {}
        for key, claim in sorted(self._claims.items()):
            self._claims_in.setdefault(key.namespace, []).append(claim)
        self._volumes = objects.within(PERSISTENT_VOLUME, "")
        self._nodes = objects.within(NODE, "")
        self._longhorn_nodes = objects.within(LONGHORN_NODE, longhorn_namespace)
        self._by_name: Mapping[Kind, Mapping[str, Any]] = {
            Kind.PERSISTENT_VOLUME: self._volumes,
            Kind.SHARE_MANAGER: objects.within(SHARE_MANAGER, longhorn_namespace),
            Kind.SHARE_MANAGER_POD: objects.within(POD, longhorn_namespace),
            Kind.NODE: self._nodes,
            Kind.LONGHORN_NODE: self._longhorn_nodes,
            Kind.VOLUME_ATTACHMENT: objects.within(VOLUME_ATTACHMENT, longhorn_namespace),
            Kind.NAMESPACE: objects.within(NAMESPACE, ""),
        }
        self._virt_launchers = [pod for pod in objects.of(POD).values() if _is_virt_launcher(pod)]
        self._snapshot = self._count(headroom)

    def _count(self, headroom: Mapping[str, int] | None) -> ListedSnapshot | SnapshotUnavailable | NotCounted:
        if headroom is None:
            return NOT_COUNTED
        counted: tuple[APIResource[Any], ...] = (NODE, POD, CSI_NODE)
        unread = next(filter(None, map(self.objects.unread, counted)), "")
        if unread:
            return SnapshotUnavailable(unread)
        if not _has_allocatable(self._nodes.values()):
            return NOT_COUNTED
        pods = list(self.objects.of(POD).values())
        drivers_of = {name: csi_drivers_of(node.spec) for name, node in self.objects.within(CSI_NODE, "").items()}
        replicas = count_replicas(pods, own_namespace_of(self.objects.configuration()))
        return ListedSnapshot(pods, self._nodes, drivers_of, headroom, replicas)

    @classmethod
    def load(
        cls, path: Path, *, longhorn_namespace: str, headroom: Mapping[str, int] | None = NO_HEADROOM
    ) -> Manifests:
        """Return the cluster of a file, or of a directory's .yaml, .yml and .json files, without subdirectories.

        Raises:
            BadDocument: there is no file, or objects can't be read. Each message has file and line.
        """
        return cls(load_objects(path), longhorn_namespace=longhorn_namespace, headroom=headroom)

    def node_names(self) -> list[str]:
        """Return the names of all nodes, sorted."""
        return sorted(self._nodes)

    def claims(self, namespace: str) -> Sequence[PersistentVolumeClaim]:
        """Return the claims of a namespace, by name."""
        return self._claims_in.get(namespace, [])

    def all_virt_launchers(self) -> Sequence[Pod]:
        """Return all virt-launcher pods."""
        return self._virt_launchers

    def usable_nodes(self) -> int:
        """Count the nodes that are Ready and not cordoned."""
        return sum(node.usable for node in self._nodes.values())

    def has_autoscaler(self) -> bool:
        """Return whether Karpenter made any of the nodes, or cluster-autoscaler writes its status or may do so."""
        seen = any(node.from_karpenter for node in self._nodes.values()) or self.objects.of(CONFIG_MAP)
        return bool(seen or self.objects.unread(CONFIG_MAP))

    def view(self) -> Manifests:
        """Return itself: files do not change, so the cluster is its own view."""
        return self

    without_reads = view

    @property
    def missing(self) -> tuple[()]:
        """Return nothing: all objects were read."""
        return ()

    def get(self, ref: ObjectRef[ObjectT]) -> ObjectT | NoObject:
        """Return this object."""
        kind, key = ref
        if kind in KINDS_OF_VMS:
            return super().get(ref)
        found: Any
        if kind is Kind.VIRT_LAUNCHERS_ON_NODE:
            found = self._virt_launchers_on(*key)
        else:
            found = self._claims.get(key) if kind is Kind.PERSISTENT_VOLUME_CLAIM else self._by_name[kind].get(ref.name)
        if found is None:
            found = NoObject.UNAVAILABLE if self.objects.unread(OF_CORE[kind]) else NoObject.NOT_FOUND
        known: ObjectT | NoObject = found
        return known

    def _virt_launchers_on(self, namespace: str, node: str) -> Any:
        return [p for p in self._virt_launchers if p.metadata.namespace == namespace and p.spec.node_name == node]

    async def read(self, view: ClusterView, refs: Sequence[Ref], deadline: float, most: int) -> Manifests:
        """Raise TypeError: nothing is missing, so there is nothing to read."""
        raise TypeError(f"files hold everything, and core needs {refs} of {view} by {deadline}, {most} at most")

    def read_error(self, ref: Ref) -> str:
        """Return why `bundle` could not list the objects of this kind."""
        return self.objects.unread(OF_CORE[ref.kind])

    def staleness(self) -> None:
        """Return None: files are never out of date."""

    def has_longhorn_nodes(self) -> bool:
        """Return whether any nodes.longhorn.io exist in Longhorn's namespace, or may exist."""
        return bool(self._longhorn_nodes or self.objects.unread(LONGHORN_NODE))

    def snapshot(self) -> ListedSnapshot | SnapshotUnavailable | NotCounted:
        """Return the snapshot of pods and nodes; NOT_COUNTED if no node has status.allocatable."""
        return self._snapshot

    def assume(self, pod: Pod, namespace: str, pin: Pin) -> None:
        """Do nothing: an admitted pod does not change the files."""

    def forget(self, pod: Pod, namespace: str) -> None:
        """Do nothing, as `assume`."""

    def volume_claims(self, volume: str) -> list[NamespacedName] | NoObject:
        """Return the claims of the PersistentVolumes that have this CSI volume handle."""
        if self.objects.unread(PERSISTENT_VOLUME):
            return NoObject.UNAVAILABLE
        return [claim for found in self._volumes.values() if (claim := claim_of(found, volume))]

    def virt_launchers(self, claim: NamespacedName) -> list[Pod] | NoObject:
        """Return the virt-launcher pods that use this claim."""
        if self.objects.unread(VIRT_LAUNCHER_POD):
            return NoObject.UNAVAILABLE
        return [
            pod for pod in self._virt_launchers if pod.metadata.namespace == claim.namespace and uses(pod, claim.name)
        ]


def _has_allocatable(nodes: Iterable[Node]) -> bool:
    return any(node.status and node.status.allocatable for node in nodes)


def _is_virt_launcher(pod: Pod) -> bool:
    return pod.metadata.label(LABEL_APP) == VIRT_LAUNCHER
