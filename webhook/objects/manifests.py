"""Manifests: a ClusterView of YAML files, for `--manifests` of all commands and for the demo.

All files are read at the start. Either every object can be read, or an error names each object that can't.
Invariant: nothing is ever NOT_CACHED here. An object that no file describes is absent, unless the file is a bundle that
says of its kind that it could not be listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.longhorn import SHARE_MANAGER_POD_PREFIX, LonghornNode, ShareManager, VolumeAttachment
from webhook.core.api.meta import ConfigMap, Namespace, NamespacedName
from webhook.core.api.node import CSINode, Node, csi_drivers_of
from webhook.core.api.pod import Pod, uses
from webhook.core.api.storage import PersistentVolume, PersistentVolumeClaim, claim_of
from webhook.core.api.virtual_machine import VirtualMachine, VirtualMachineInstance
from webhook.core.decision import Pin
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.placement.replica_share import count_replicas, own_namespace_of
from webhook.core.scheduler.state.node_info import NO_HEADROOM
from webhook.core.scheduler.state.snapshot import NOT_COUNTED, NotCounted, SnapshotUnavailable
from webhook.core.view import ClusterView, Kind, NoObject, Ref
from webhook.core.virtual_machines import ListedVirtualMachines
from webhook.objects.documents import BadDocument, Document, read_file
from webhook.objects.objects import DescribedObjects

_SUFFIXES: Final = (".yaml", ".yml", ".json")
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml")
_TYPES: Final[Mapping[Kind, type[Any]]] = {
    Kind.PERSISTENT_VOLUME_CLAIM: PersistentVolumeClaim,
    Kind.PERSISTENT_VOLUME: PersistentVolume,
    Kind.SHARE_MANAGER: ShareManager,
    Kind.SHARE_MANAGER_POD: Pod,
    Kind.NODE: Node,
    Kind.LONGHORN_NODE: LonghornNode,
    Kind.VOLUME_ATTACHMENT: VolumeAttachment,
    Kind.CSI_NODE: CSINode,
    Kind.NAMESPACE: Namespace,
    Kind.CLUSTER_AUTOSCALER_STATUS: ConfigMap,
    Kind.VIRT_LAUNCHER_POD: Pod,
    Kind.VIRT_LAUNCHERS_ON_NODE: Pod,
    Kind.VIRTUAL_MACHINE: VirtualMachine,
    Kind.VIRTUAL_MACHINE_INSTANCE: VirtualMachineInstance,
}


class Manifests(ListedVirtualMachines):
    """The cluster that documents describe; a ClusterView (webhook.core.view).

    `objects` are what the documents describe.
    """

    def __init__(
        self,
        documents: Iterable[Document],
        *,
        longhorn_namespace: str,
        headroom: Mapping[str, int] | None = NO_HEADROOM,
    ) -> None:
        """Read all documents.

        Args:
            documents: the objects.
            longhorn_namespace: of Longhorn's objects.
            headroom: what must stay free on a node; None if the resources of nodes do not count.

        Raises:
            BadDocument: as `DescribedObjects`.
        """
        self.objects = objects = DescribedObjects(documents)
        super().__init__(objects.all_of(VirtualMachine), objects.all_of(VirtualMachineInstance))
        self._claims = objects.of(PersistentVolumeClaim)
        self._claims_in: dict[str, list[PersistentVolumeClaim]] = {}
        for key, claim in sorted(self._claims.items()):
            self._claims_in.setdefault(key.namespace, []).append(claim)
        self._volumes = objects.within(PersistentVolume, "")
        self._nodes = objects.within(Node, "")
        self._share_managers = objects.within(ShareManager, longhorn_namespace)
        self._pods = objects.within(Pod, longhorn_namespace)
        self._longhorn_nodes = objects.within(LonghornNode, longhorn_namespace)
        self._attachments = objects.within(VolumeAttachment, longhorn_namespace)
        self._namespaces = objects.within(Namespace, "")
        self._virt_launchers = [pod for pod in objects.of(Pod).values() if _is_virt_launcher(pod)]
        self._snapshot = self._count(headroom)

    def _count(self, headroom: Mapping[str, int] | None) -> ListedSnapshot | SnapshotUnavailable | NotCounted:
        if headroom is None or not _has_allocatable(self._nodes.values()):
            return NOT_COUNTED
        unread = next(filter(None, map(self.objects.unread, (Pod, CSINode))), "")
        if unread:
            return SnapshotUnavailable(unread)
        pods = list(self.objects.of(Pod).values())
        drivers_of = {name: csi_drivers_of(node.spec) for name, node in self.objects.within(CSINode, "").items()}
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
        problems: list[str] = []
        documents: list[Document] = []
        for file in _files(path):
            try:
                documents += read_file(file)
            except BadDocument as error:
                problems += error.problems
        try:
            cluster = cls(documents, longhorn_namespace=longhorn_namespace, headroom=headroom)
        except BadDocument as error:
            problems += error.problems
        if problems:
            raise BadDocument(*problems)
        return cluster

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
        seen = any(node.from_karpenter for node in self._nodes.values()) or self.objects.of(ConfigMap)
        return bool(seen or self.objects.unread(ConfigMap))

    def view(self) -> Manifests:
        """Return itself: files do not change, so the cluster is its own view."""
        return self

    async def read(self, view: ClusterView, refs: Sequence[Ref], deadline: float, most: int) -> Manifests:
        """Raise TypeError: nothing is NOT_CACHED, so core never needs to read an object."""
        raise TypeError(f"files hold everything, and core needs {refs} of {view} by {deadline}, {most} at most")

    def read_error(self, ref: Ref) -> str:
        """Return why `bundle` could not list the objects of this kind."""
        return self.objects.unread(_TYPES[ref.kind])

    def _absent(self, type_: type[Any]) -> NoObject:
        """Why there is no object of this type. Only a bundle has kinds that could not be listed."""
        return NoObject.UNAVAILABLE if self.objects.unread(type_) else NoObject.NOT_FOUND

    def staleness(self) -> None:
        """Return None: files are never out of date."""

    def namespace(self, name: str) -> Namespace | NoObject:
        """Return the Namespace of that name."""
        return self._namespaces.get(name, self._absent(Namespace))

    def persistent_volume_claim(self, key: NamespacedName) -> PersistentVolumeClaim | NoObject:
        """Return the claim of that namespace and name."""
        return self._claims.get(key, self._absent(PersistentVolumeClaim))

    def persistent_volume(self, name: str) -> PersistentVolume | NoObject:
        """Return the PersistentVolume of that name."""
        return self._volumes.get(name, self._absent(PersistentVolume))

    def share_manager(self, volume: str) -> ShareManager | NoObject:
        """Return the ShareManager of a Longhorn volume."""
        return self._share_managers.get(volume, self._absent(ShareManager))

    def share_manager_pod(self, volume: str) -> Pod | NoObject:
        """Return the pod share-manager-<volume> of Longhorn's namespace."""
        return self._pods.get(SHARE_MANAGER_POD_PREFIX + volume, self._absent(Pod))

    def node(self, name: str) -> Node | NoObject:
        """Return the Kubernetes node of that name."""
        return self._nodes.get(name, self._absent(Node))

    def has_longhorn_nodes(self) -> bool:
        """Return whether any nodes.longhorn.io exist in Longhorn's namespace, or may exist."""
        return bool(self._longhorn_nodes or self.objects.unread(LonghornNode))

    def longhorn_node(self, name: str) -> LonghornNode | NoObject:
        """Return Longhorn's Node for the Kubernetes node of that name."""
        return self._longhorn_nodes.get(name, self._absent(LonghornNode))

    def snapshot(self) -> ListedSnapshot | SnapshotUnavailable | NotCounted:
        """Return the snapshot of pods and nodes; NOT_COUNTED if no node has status.allocatable."""
        return self._snapshot

    def assume(self, pod: Pod, namespace: str, pin: Pin) -> None:
        """Do nothing: an admitted pod does not change the files."""

    def forget(self, pod: Pod, namespace: str) -> None:
        """Do nothing, as `assume`."""

    def volume_claims(self, volume: str) -> list[NamespacedName] | NoObject:
        """Return the claims of the PersistentVolumes that have this CSI volume handle."""
        if self.objects.unread(PersistentVolume):
            return NoObject.UNAVAILABLE
        return [claim for found in self._volumes.values() if (claim := claim_of(found, volume))]

    def virt_launchers(self, claim: NamespacedName) -> list[Pod] | NoObject:
        """Return the virt-launcher pods that use this claim."""
        if self.objects.unread(Pod):
            return NoObject.UNAVAILABLE
        return [
            pod for pod in self._virt_launchers if pod.metadata.namespace == claim.namespace and uses(pod, claim.name)
        ]

    def virt_launchers_on(self, namespace: str, node: str) -> list[Pod]:
        """Return the virt-launcher pods of a namespace that are on a node."""
        return [p for p in self._virt_launchers if p.metadata.namespace == namespace and p.spec.node_name == node]

    def volume_attachment(self, volume: str) -> VolumeAttachment | NoObject:
        """Return Longhorn's VolumeAttachment of a volume."""
        return self._attachments.get(volume, self._absent(VolumeAttachment))


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise BadDocument(f"{path}: no such file or directory; expected manifests of a cluster")
    if not path.is_dir():
        return [path]  # a file, or what a shell makes of <(...)
    try:
        files = sorted(f for f in path.iterdir() if f.suffix in _SUFFIXES and f.name not in _KUSTOMIZATIONS)
    except OSError as error:
        raise BadDocument(f"{path}: {error.strerror}; expected a directory of manifests") from None
    if not files:
        raise BadDocument(f"{path}: no .yaml, .yml or .json file in this directory; expected manifests of a cluster")
    return files


def _has_allocatable(nodes: Iterable[Node]) -> bool:
    return any(node.status and node.status.allocatable for node in nodes)


def _is_virt_launcher(pod: Pod) -> bool:
    return pod.metadata.label(LABEL_APP) == VIRT_LAUNCHER
