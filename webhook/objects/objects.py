"""DescribedObjects: what the documents of a cluster describe, by type and by kind.

Core reads objects as types. `explain` and `status` look some kinds up by name, and get the documents. Invariant: an
object is described once, and an object that can't be read is an error.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.longhorn import LONGHORN_API_VERSION, LonghornNode, ShareManager, VolumeAttachment
from webhook.core.api.meta import CLUSTER_AUTOSCALER_STATUS, ConfigMap, Namespace, NamespacedName, ObjectMeta
from webhook.core.api.node import CSINode, Node
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume, PersistentVolumeClaim
from webhook.core.api.virtual_machine import KUBEVIRT_API_VERSION, VirtualMachine, VirtualMachineInstance
from webhook.objects import bundle
from webhook.objects.bundle import ClusterBundle
from webhook.objects.documents import BadDocument, Document

_T = TypeVar("_T")
TYPES: Final[Mapping[tuple[str, str], type[Any]]] = {
    ("v1", "PersistentVolumeClaim"): PersistentVolumeClaim,
    ("v1", "PersistentVolume"): PersistentVolume,
    ("v1", "Node"): Node,
    ("v1", "Pod"): Pod,
    (LONGHORN_API_VERSION, "ShareManager"): ShareManager,
    (LONGHORN_API_VERSION, "Node"): LonghornNode,
    (LONGHORN_API_VERSION, "VolumeAttachment"): VolumeAttachment,
    ("storage.k8s.io/v1", "CSINode"): CSINode,
    ("v1", "Namespace"): Namespace,
    ("v1", "ConfigMap"): ConfigMap,
    ("kubevirt.io/v1alpha3", "VirtualMachine"): VirtualMachine,
    ("kubevirt.io/v1alpha3", "VirtualMachineInstance"): VirtualMachineInstance,
    (KUBEVIRT_API_VERSION, "VirtualMachine"): VirtualMachine,
    (KUBEVIRT_API_VERSION, "VirtualMachineInstance"): VirtualMachineInstance,
}
"""The kinds that core reads."""

_KIND_OF: Final = {type_: kind for kind, type_ in TYPES.items()}
_ADMISSION: Final = "admissionregistration.k8s.io"
CONFIGURATION: Final = (f"{_ADMISSION}/v1", "MutatingWebhookConfiguration")
_LOOKED_UP: Final = (  # groups and kinds
    ("", "Pod"),
    ("", "Event"),
    ("", "PersistentVolume"),
    ("kubevirt.io", "VirtualMachine"),
    ("kubevirt.io", "VirtualMachineInstance"),
    ("longhorn.io", "Volume"),
    ("longhorn.io", "Setting"),
    ("storage.k8s.io", "StorageClass"),
    (_ADMISSION, "MutatingWebhookConfiguration"),
)
_CLUSTER_WIDE: Final = (
    ("", "Namespace"),
    ("", "Node"),
    ("", "PersistentVolume"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "StorageClass"),
    (_ADMISSION, "MutatingWebhookConfiguration"),
)


class _Named(Struct, frozen=True):
    """An object of which only the name is read here."""

    metadata: ObjectMeta


class _Taken(NamedTuple):
    """One object: as its type, as its document if it can be looked up, and its place for an error."""

    value: Any
    document: Document | None
    place: str


class DescribedObjects:
    """What documents describe.

    `ignored` counts, by kind, the objects that nothing reads; `size` counts those that core reads. `bundle` is None
    for files that the command bundle did not make.
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        """Read all documents.

        Raises:
            BadDocument: fields of a wrong type, objects without a name, or two objects of one kind and name. The
                error has a message for each.
        """
        self.ignored: Counter[str] = Counter()
        self.bundle: ClusterBundle | None = None
        self._taken: dict[tuple[str, str], dict[NamespacedName, _Taken]] = defaultdict(dict)
        problems: list[str] = []
        for document in documents:
            try:
                self._take(document)
            except BadDocument as error:
                problems += error.problems
        if problems:
            raise BadDocument(*problems)
        self.size = sum(len(self.of(type_)) for type_ in _KIND_OF)

    def of(self, type_: type[_T]) -> dict[NamespacedName, _T]:
        """Return the objects of a type that core reads. The namespace of a cluster-wide object is empty."""
        taken = self._taken[_group_and_kind(*_KIND_OF[type_])]
        return {key: each.value for key, each in taken.items() if isinstance(each.value, type_)}

    def within(self, type_: type[_T], namespace: str) -> dict[str, _T]:
        """Return the objects of a type in one namespace, by name."""
        return {key.name: found for key, found in self.of(type_).items() if key.namespace == namespace}

    def all_of(self, type_: type[_T]) -> dict[NamespacedName, _T] | None:
        """As `of`; but None where it is not known which objects of this type exist (`problem`)."""
        return None if self.problem(*_KIND_OF[type_]) else self.of(type_)

    def documents(self, api_version: str, kind: str) -> dict[NamespacedName, Document]:
        """Return the documents of a kind that is looked up, whatever the version of its group."""
        taken = self._taken[_group_and_kind(api_version, kind)]
        return {key: each.document for key, each in taken.items() if each.document}

    def configuration(self) -> Mapping[str, Any]:
        """Return the configuration of the installed webhook; empty if the files have none."""
        found = self.documents(*CONFIGURATION).get(NamespacedName("", "kubevirt-coschedule"))
        return found.value if found else {}

    def problem(self, api_version: str, kind: str) -> str | None:
        """Return why it is unknown which objects of this kind exist; None if it is known.

        A bundle says so of each kind. Other files are taken as complete if they have an object of the kind.
        """
        if self.bundle:
            return self.bundle.problem(api_version, kind) or None
        return None if self._taken[_group_and_kind(api_version, kind)] else f"no {kind} is described"

    def origin(self, files: str) -> str:
        """Return the cluster in words: the files, and for a bundle from which cluster and when."""
        return f"{files}, made of {self.bundle.cluster} at {self.bundle.at}" if self.bundle else files

    def unread(self, type_: type[Any]) -> str:
        """Return why `bundle` could not list the objects of a type; empty if it could, and for other files."""
        return self.bundle.problem(*_KIND_OF[type_]) if self.bundle else ""

    def _take(self, document: Document) -> None:
        kind = document.api_version, document.kind
        type_, looked_up = TYPES.get(kind), _group_and_kind(*kind)
        if kind == (bundle.BUNDLE_API_VERSION, bundle.BUNDLE_KIND):
            self.bundle = document.read(ClusterBundle)
        elif (type_ is None and looked_up not in _LOOKED_UP) or _is_other_config_map(document):
            self.ignored[f"{document.api_version} {document.kind}"] += 1
        else:
            self._add(document, _read(document, type_ or _Named), looked_up)

    def _add(self, document: Document, value: Any, kind: tuple[str, str]) -> None:
        name, namespace = value.metadata.name, value.metadata.namespace or "default"
        if not name:
            raise BadDocument(f"{document.place}: {document.kind}: metadata.name: got nothing, expected a name")
        key = NamespacedName("" if kind in _CLUSTER_WIDE else namespace, name)
        earlier = self._taken[kind].get(key)
        if earlier:
            shown = "/".join(filter(None, key))
            raise BadDocument(f"{document.place}: {document.kind} {shown} is described twice, first in {earlier.place}")
        kept = replace(document, text=b"") if kind in _LOOKED_UP else None
        self._taken[kind][key] = _Taken(value, kept, document.place)


def _read(document: Document, type_: type[Any]) -> Any:
    """Read a document. A VM with a field of a wrong type is left out, as from a cache."""
    try:
        return document.read(type_)
    except BadDocument:
        if type_ not in (VirtualMachine, VirtualMachineInstance):
            raise
        return document.read(_Named)


def _is_other_config_map(document: Document) -> bool:
    """Whether this is a ConfigMap that nothing reads, as users have in their files."""
    metadata = document.value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return (document.api_version, document.kind) == _KIND_OF[ConfigMap] and name != CLUSTER_AUTOSCALER_STATUS


def _group_and_kind(api_version: str, kind: str) -> tuple[str, str]:
    return (api_version.rpartition("/")[0], kind)
