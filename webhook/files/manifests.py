"""Manifests: a ClusterView of YAML files, for `--manifests` of all commands and for the demo.

All files are read at the start. Either every object can be read, or an error names each object that can't.
Invariant: nothing is ever NOT_CACHED here. An object that no file describes is absent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.longhorn import (
    LONGHORN_API_VERSION,
    SHARE_MANAGER_POD_PREFIX,
    LonghornNode,
    ShareManager,
    VolumeAttachment,
)
from webhook.core.api.meta import NamespacedName
from webhook.core.api.node import CSINode, Node
from webhook.core.api.pod import Pod, uses
from webhook.core.api.storage import PersistentVolume, PersistentVolumeClaim, claim_of
from webhook.core.decision import Pin
from webhook.core.scheduler.state.node_info import NO_HEADROOM, volume_limits_of
from webhook.core.scheduler.state.snapshot import NOT_COUNTED, ListedSnapshot, NotCounted
from webhook.core.view import ClusterView, NoObject, Ref
from webhook.files.documents import BadDocument, Document, read_file

_T = TypeVar("_T")
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml")
_TYPES: Final[Mapping[tuple[str, str], type[Any]]] = {
    ("v1", "PersistentVolumeClaim"): PersistentVolumeClaim,
    ("v1", "PersistentVolume"): PersistentVolume,
    ("v1", "Node"): Node,
    ("v1", "Pod"): Pod,
    (LONGHORN_API_VERSION, "ShareManager"): ShareManager,
    (LONGHORN_API_VERSION, "Node"): LonghornNode,
    (LONGHORN_API_VERSION, "VolumeAttachment"): VolumeAttachment,
    ("storage.k8s.io/v1", "CSINode"): CSINode,
}
_NAMESPACED: Final = (PersistentVolumeClaim, Pod, ShareManager, LonghornNode, VolumeAttachment)


class Manifests:
    """The cluster that documents describe; a ClusterView (webhook.core.view).

    `ignored` counts, by kind, the objects that no rule reads; `size` counts the others.
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
            BadDocument: fields of a wrong type, objects without a name, or two objects of one kind and name. The
                error has a message for each.
        """
        self.ignored: Counter[str] = Counter()
        taken: dict[type[Any], dict[NamespacedName, tuple[Any, str]]] = {type_: {} for type_ in _TYPES.values()}
        problems: list[str] = []
        for document in documents:
            try:
                self._take(document, taken)
            except BadDocument as error:
                problems += error.problems
        if problems:
            raise BadDocument(*problems)

        def within(type_: type[_T], namespace: str) -> dict[str, _T]:
            return {key.name: found for key, (found, _) in taken[type_].items() if key.namespace == namespace}

        claims: dict[NamespacedName, PersistentVolumeClaim] = {
            k: found for k, (found, _) in taken[PersistentVolumeClaim].items()
        }
        self.size = sum(map(len, taken.values()))
        self._claims = claims
        self._volumes = within(PersistentVolume, "")
        self._nodes = within(Node, "")
        self._share_managers = within(ShareManager, longhorn_namespace)
        self._pods = within(Pod, longhorn_namespace)
        self._longhorn_nodes = within(LonghornNode, longhorn_namespace)
        self._attachments = within(VolumeAttachment, longhorn_namespace)
        every: list[Pod] = [pod for pod, _ in taken[Pod].values()]
        self._virt_launchers = [pod for pod in every if _is_virt_launcher(pod)]
        limits_of = {name: volume_limits_of(node.spec) for name, node in within(CSINode, "").items()}
        counts_pods = headroom is not None and _has_allocatable(self._nodes.values())
        self._snapshot: ListedSnapshot | NotCounted = NOT_COUNTED
        if counts_pods:
            self._snapshot = ListedSnapshot(every, self._nodes, limits_of, headroom or NO_HEADROOM)

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

    def _take(self, document: Document, taken: dict[type[Any], dict[NamespacedName, tuple[Any, str]]]) -> None:
        type_ = _TYPES.get((document.api_version, document.kind))
        if type_ is None:
            self.ignored[f"{document.api_version} {document.kind}"] += 1
            return
        found = document.read(type_)
        name, namespace = found.metadata.name, found.metadata.namespace or "default"
        if not name:
            raise BadDocument(f"{document.place}: {document.kind}: metadata.name: got nothing, expected a name")
        key = NamespacedName(namespace if type_ in _NAMESPACED else "", name)
        if key in taken[type_]:
            shown, first = "/".join(filter(None, key)), taken[type_][key][1]
            raise BadDocument(f"{document.place}: {document.kind} {shown} is described twice, first in {first}")
        taken[type_][key] = found, document.place

    def node_names(self) -> list[str]:
        """Return the names of all nodes, sorted."""
        return sorted(self._nodes)

    def claims(self, namespace: str) -> list[PersistentVolumeClaim]:
        """Return the claims of a namespace, by name."""
        return [claim for key, claim in sorted(self._claims.items()) if key.namespace == namespace]

    def all_virt_launchers(self) -> Sequence[Pod]:
        """Return all virt-launcher pods."""
        return self._virt_launchers

    def usable_nodes(self) -> int:
        """Count the nodes that are Ready and not cordoned."""
        return sum(node.usable for node in self._nodes.values())

    def view(self) -> Manifests:
        """Return itself: files do not change, so the cluster is its own view."""
        return self

    async def read(self, view: ClusterView, refs: Sequence[Ref], deadline: float) -> Manifests:
        """Raise TypeError: nothing is NOT_CACHED, so core never needs to read an object."""
        raise TypeError(f"files hold everything, and core needs {refs} of {view} by {deadline}")

    def read_error(self, ref: Ref) -> str:
        """Raise LookupError: nothing here is ever UNAVAILABLE."""
        raise LookupError(f"{ref} was never unavailable")

    def staleness(self) -> None:
        """Return None: files are never out of date."""

    def persistent_volume_claim(self, key: NamespacedName) -> PersistentVolumeClaim | NoObject:
        """Return the claim of that namespace and name."""
        return self._claims.get(key, NoObject.NOT_FOUND)

    def persistent_volume(self, name: str) -> PersistentVolume | NoObject:
        """Return the PersistentVolume of that name."""
        return self._volumes.get(name, NoObject.NOT_FOUND)

    def share_manager(self, volume: str) -> ShareManager | NoObject:
        """Return the ShareManager of a Longhorn volume."""
        return self._share_managers.get(volume, NoObject.NOT_FOUND)

    def share_manager_pod(self, volume: str) -> Pod | NoObject:
        """Return the pod share-manager-<volume> of Longhorn's namespace."""
        return self._pods.get(SHARE_MANAGER_POD_PREFIX + volume, NoObject.NOT_FOUND)

    def node(self, name: str) -> Node | NoObject:
        """Return the Kubernetes node of that name."""
        return self._nodes.get(name, NoObject.NOT_FOUND)

    def has_longhorn_nodes(self) -> bool:
        """Return whether any nodes.longhorn.io exist in Longhorn's namespace."""
        return bool(self._longhorn_nodes)

    def longhorn_node(self, name: str) -> LonghornNode | NoObject:
        """Return Longhorn's Node for the Kubernetes node of that name."""
        return self._longhorn_nodes.get(name, NoObject.NOT_FOUND)

    def snapshot(self) -> ListedSnapshot | NotCounted:
        """Return the snapshot of pods and nodes; NOT_COUNTED if no node has status.allocatable."""
        return self._snapshot

    def assume(self, pod: Pod, namespace: str, drawn: Pin) -> None:
        """Do nothing: an admitted pod does not change the files."""

    def forget(self, pod: Pod, namespace: str) -> None:
        """Do nothing, as `assume`."""

    def volume_claims(self, volume: str) -> list[NamespacedName]:
        """Return the claims of the PersistentVolumes that have this CSI volume handle."""
        return [claim for found in self._volumes.values() if (claim := claim_of(found, volume))]

    def virt_launchers(self, claim: NamespacedName) -> list[Pod]:
        """Return the virt-launcher pods that use this claim."""
        return [
            pod for pod in self._virt_launchers if pod.metadata.namespace == claim.namespace and uses(pod, claim.name)
        ]

    def virt_launchers_on(self, namespace: str, node: str) -> list[Pod]:
        """Return the virt-launcher pods of a namespace that are on a node."""
        return [p for p in self._virt_launchers if p.metadata.namespace == namespace and p.spec.node_name == node]

    def volume_attachment(self, volume: str) -> VolumeAttachment | NoObject:
        """Return Longhorn's VolumeAttachment of a volume."""
        return self._attachments.get(volume, NoObject.NOT_FOUND)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise BadDocument(f"{path}: no such file or directory; expected manifests of a cluster")
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
