"""Manifests: a ClusterView over YAML files, the embedded cluster of `serve --manifests`, explain and demo.

Read whole before anything starts: it either holds every object that was written, or names each that it could not
read. Nothing is ever NOT_CACHED here: what no file describes is absent.
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
    """The cluster that some documents describe; a ClusterView (webhook.core.view).

    `ignored` counts, by kind, the objects that no rule reads.
    """

    def __init__(
        self,
        documents: Iterable[Document],
        *,
        longhorn_namespace: str,
        headroom: Mapping[str, int] | None = NO_HEADROOM,
    ) -> None:
        """Take in every document. With `headroom` None nobody is to ask about room on nodes.

        Raises:
            BadDocument: fields of a wrong type, objects without a name, or two of one kind and name; all of them.
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
        self._launchers = [pod for pod in every if _is_launcher(pod)]
        limits_of = {name: volume_limits_of(node.spec) for name, node in within(CSINode, "").items()}
        told = headroom is not None and _tells_room(self._nodes.values())
        self._snapshot: ListedSnapshot | NotCounted = NOT_COUNTED
        if told:
            self._snapshot = ListedSnapshot(every, self._nodes, limits_of, headroom or NO_HEADROOM)

    @classmethod
    def load(
        cls, path: Path, *, longhorn_namespace: str, headroom: Mapping[str, int] | None = NO_HEADROOM
    ) -> Manifests:
        """The cluster in a file, or in a directory's .yaml, .yml and .json files (not in directories below it).

        Raises:
            BadDocument: there is nothing to read, or something could not be read; each with file and line.
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
        """Every node, by name."""
        return sorted(self._nodes)

    def claims(self, namespace: str) -> list[PersistentVolumeClaim]:
        """Every claim of a namespace, by name."""
        return [claim for key, claim in sorted(self._claims.items()) if key.namespace == namespace]

    def launchers(self) -> Sequence[Pod]:
        """Every virt-launcher pod."""
        return self._launchers

    def usable_nodes(self) -> int:
        """How many of them are Ready and not cordoned."""
        return sum(node.usable for node in self._nodes.values())

    def view(self) -> Manifests:
        """The cluster is its own view: it does not change."""
        return self

    async def read(self, view: ClusterView, refs: Sequence[Ref], deadline: float) -> Manifests:
        """Never asked for: nothing is NOT_CACHED."""
        raise TypeError(f"files hold everything, and core needs {refs} of {view} by {deadline}")

    def read_error(self, ref: Ref) -> str:
        """Nothing here is ever UNAVAILABLE."""
        raise LookupError(f"{ref} was never unavailable")

    def staleness(self) -> None:
        """Files are as they were written."""

    def persistent_volume_claim(self, key: NamespacedName) -> PersistentVolumeClaim | NoObject:
        """The claim of that namespace and name."""
        return self._claims.get(key, NoObject.NOT_FOUND)

    def persistent_volume(self, name: str) -> PersistentVolume | NoObject:
        """The volume of that name."""
        return self._volumes.get(name, NoObject.NOT_FOUND)

    def share_manager(self, volume: str) -> ShareManager | NoObject:
        """The ShareManager of a Longhorn volume."""
        return self._share_managers.get(volume, NoObject.NOT_FOUND)

    def share_manager_pod(self, volume: str) -> Pod | NoObject:
        """The pod share-manager-<volume> in Longhorn's namespace."""
        return self._pods.get(SHARE_MANAGER_POD_PREFIX + volume, NoObject.NOT_FOUND)

    def node(self, name: str) -> Node | NoObject:
        """The Kubernetes node of that name."""
        return self._nodes.get(name, NoObject.NOT_FOUND)

    def has_longhorn_nodes(self) -> bool:
        """Whether any nodes.longhorn.io is described in Longhorn's namespace."""
        return bool(self._longhorn_nodes)

    def longhorn_node(self, name: str) -> LonghornNode | NoObject:
        """Longhorn's object for the Kubernetes node of that name."""
        return self._longhorn_nodes.get(name, NoObject.NOT_FOUND)

    def snapshot(self) -> ListedSnapshot | NotCounted:
        """Return the nodes and pods of the files; NOT_COUNTED if no node shows what it has for pods."""
        return self._snapshot

    def assume(self, pod: Pod, namespace: str, drawn: Pin) -> None:
        """Files are as they were written: a pod that is admitted does not come into them."""

    def forget(self, pod: Pod, namespace: str) -> None:
        """As `assume`."""

    def volume_claims(self, volume: str) -> list[NamespacedName]:
        """The claims of the PersistentVolumes that have this CSI volume handle."""
        return [claim for found in self._volumes.values() if (claim := claim_of(found, volume))]

    def virt_launchers(self, claim: NamespacedName) -> list[Pod]:
        """Every virt-launcher pod that uses this claim."""
        return [pod for pod in self._launchers if pod.metadata.namespace == claim.namespace and uses(pod, claim.name)]

    def virt_launchers_on(self, namespace: str, node: str) -> list[Pod]:
        """The virt-launcher pods of a namespace that are on a node."""
        return [p for p in self._launchers if p.metadata.namespace == namespace and p.spec.node_name == node]

    def volume_attachment(self, volume: str) -> VolumeAttachment | NoObject:
        """Longhorn's VolumeAttachment of a volume."""
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


def _tells_room(nodes: Iterable[Node]) -> bool:
    return any(node.status and node.status.allocatable for node in nodes)


def _is_launcher(pod: Pod) -> bool:
    return pod.metadata.label(LABEL_APP) == VIRT_LAUNCHER
