"""ObjectStore: the objects of a cluster that was read once, by kind and name; and what could not be read.

webhook.kube.collect reads them at an API server, and `read_objects` from files. Invariant: an object is there
once.
"""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from webhook.core.api.meta import CLUSTER_AUTOSCALER_STATUS, NamespacedName, ObjectMeta, utc_text
from webhook.objects.api.webhooks import CONFIGURATION, POD_LABELS
from webhook.objects.bundle import BUNDLE_API_VERSION, BUNDLE_KIND, ClusterBundle
from webhook.objects.documents import BadDocument, Document, read_file
from webhook.objects.kinds import (
    CONFIG_MAP,
    KINDS,
    POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    WEBHOOK_CONFIGURATION,
    WEBHOOK_POD,
    APIResource,
    find_kind,
)

_T = TypeVar("_T")
_PODS: Final = "Pod"
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_VMS: Final[tuple[APIResource[Any], ...]] = (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE)
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml")


class _Named(Struct, frozen=True):
    """An object of which only the name is read here."""

    metadata: ObjectMeta


class ObjectStore:
    """The objects of a cluster.

    Attributes:
        bundle: where, when and how completely the objects were read; None for files that the command bundle did not
            make.
        ignored: how many objects of files nothing reads, by kind.
        files: the file or directory from which they were read; empty for an API server.
        unreadable: the error of each object that has a field of a wrong type, of kinds that core can do without.
    """

    def __init__(self, bundle: ClusterBundle | None = None) -> None:
        self.bundle = bundle
        self.files = ""
        self.ignored: Counter[str] = Counter()
        self.unreadable: dict[tuple[str, NamespacedName], BadDocument] = {}
        self._found: dict[str, dict[NamespacedName, Any]] = defaultdict(dict)

    @property
    def at(self) -> str:
        """When the objects were read (RFC 3339); now for files that the command bundle did not make."""
        return self.bundle.at if self.bundle else utc_text(time.time())

    def add(self, kind: APIResource[Any], found: Any) -> None:
        """Add an object, in place of an earlier one of this name. Without a namespace it is in `default`."""
        meta = found.metadata
        self._found[_key(kind)][NamespacedName(_namespace(kind, meta), meta.name or "")] = found

    def of(self, kind: APIResource[_T]) -> Mapping[NamespacedName, _T]:
        """Return the objects of a kind. The namespace of a cluster-wide object is empty."""
        return self._found[_key(kind)]

    def get(self, kind: APIResource[_T], name: str, namespace: str = "") -> _T | None:
        """Return the object of that name, or None."""
        found: _T | None = self._found[_key(kind)].get(NamespacedName(namespace, name))
        return found

    def within(self, kind: APIResource[_T], namespace: str) -> dict[str, _T]:
        """Return the objects of a kind in one namespace, by name."""
        return {key.name: found for key, found in self.of(kind).items() if key.namespace == namespace}

    @property
    def size(self) -> int:
        """How many objects there are of the kinds that a decision needs, and of KubeVirt's."""
        return sum(len(self.of(kind)) for kind in KINDS if kind.for_core or kind.product == "KubeVirt")

    def configuration(self) -> Mapping[str, Any]:
        """Return the configuration of the installed webhook, as JSON; empty if there is none."""
        found = self.get(WEBHOOK_CONFIGURATION, CONFIGURATION)
        return msgspec.to_builtins(found) if found else {}

    def unread(self, kind: APIResource[Any]) -> str:
        """Return why the objects of a kind could not be read; empty if they were, and for other files than bundles."""
        return self.bundle.problem(kind) if self.bundle else ""

    def problem(self, kind: APIResource[Any]) -> str:
        """Return why it is unknown which objects of this kind exist; empty if it is known.

        Files that are no bundle are taken as complete if they have an object of the kind. VirtualMachines and their
        instances count as one kind: a stopped VM has no instance, and an instance need not have a VM.
        """
        if self.bundle:
            return self.bundle.problem(kind)
        keys = {_key(each) for each in (_VMS if kind in _VMS else (kind,))}
        known = any(map(self._found.get, keys)) or any(key in keys for key, _ in self.unreadable)
        return "" if known else f"no {kind.kind} is described"

    @property
    def origin(self) -> str:
        """The cluster in words: its API server; or the files, and for a bundle from which cluster and when."""
        if self.bundle is None:
            return self.files
        return f"{self.files}, made of {self.bundle.cluster} at {self.bundle.at}" if self.files else self.bundle.cluster


def load_objects(path: Path) -> ObjectStore:
    """Return the objects of a file, or of the .yaml, .yml and .json files of a directory and of those in it.

    Raises:
        BadDocument: there is no file, or objects can't be read. Each message has file and line.
    """
    problems: list[str] = []

    def documents() -> Iterator[Document]:
        for file in _files(path):
            try:
                yield from read_file(file)
            except BadDocument as error:
                problems.extend(error.problems)

    try:
        objects = read_objects(documents())
    except BadDocument as error:
        raise BadDocument(*problems, *error.problems) from None
    if problems:
        raise BadDocument(*problems)
    objects.files = str(path)
    return objects


def read_objects(documents: Iterable[Document]) -> ObjectStore:
    """Return the objects that these documents describe.

    Raises:
        BadDocument: fields of a wrong type, objects without a name, or two objects of one kind and name. The error has
            a message for each.
    """
    objects = ObjectStore()
    places: dict[tuple[str, NamespacedName], str] = {}
    problems: list[str] = []
    for document in documents:
        try:
            _take(objects, document, places)
        except BadDocument as error:
            problems += error.problems
    if problems:
        raise BadDocument(*problems)
    return objects


def _take(objects: ObjectStore, document: Document, places: dict[tuple[str, NamespacedName], str]) -> None:
    kind = find_kind(document.api_version, document.kind)
    if (document.api_version, document.kind) == (BUNDLE_API_VERSION, BUNDLE_KIND):
        objects.bundle = document.read(ClusterBundle)
        return
    if kind is None or _is_other_config_map(kind, document):
        objects.ignored[f"{document.api_version} {document.kind}"] += 1
        return
    try:
        found, error = document.read(kind.type), None
    except BadDocument as wrong:
        if kind.for_core:
            raise
        found, error = document.read(_Named), wrong
    meta = found.metadata
    if not meta.name:
        raise BadDocument(f"{document.place}: {document.kind}: metadata.name: got nothing, expected a name")
    key = _key(kind), NamespacedName(_namespace(kind, meta), meta.name)
    if key in places:
        shown = "/".join(filter(None, key[1]))
        raise BadDocument(f"{document.place}: {document.kind} {shown} is described twice, first in {places[key]}")
    places[key] = document.place
    if error:
        objects.unreadable[key] = error
    else:
        objects.add(kind, found)
    if kind is POD and POD_LABELS.items() <= (meta.labels or {}).items():
        objects.add(WEBHOOK_POD, document.read(WEBHOOK_POD.type))


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise BadDocument(f"{path}: no such file or directory; expected manifests of a cluster")
    if not path.is_dir():
        return [path]  # a file, or what a shell makes of <(...)
    try:
        files = sorted(f for f in _below(path) if f.suffix in _SUFFIXES and f.name not in _KUSTOMIZATIONS)
    except OSError as error:
        raise BadDocument(f"{path}: {error.strerror}; expected a directory of manifests") from None
    if not files:
        raise BadDocument(f"{path}: no .yaml, .yml or .json file in this directory; expected manifests of a cluster")
    return files


def _below(path: Path) -> Iterator[Path]:
    """The files of a directory and of its subdirectories, but those with a dot, as a mounted ConfigMap and git have."""

    def refuse(error: OSError) -> None:
        raise error

    for directory, below, names in os.walk(path, onerror=refuse):
        below[:] = [each for each in below if not each.startswith(".")]
        yield from (Path(directory, name) for name in names)


def _is_other_config_map(kind: APIResource[Any], document: Document) -> bool:
    """Whether this is a ConfigMap that nothing reads, as users have in their files."""
    metadata = document.value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return kind is CONFIG_MAP and name != CLUSTER_AUTOSCALER_STATUS


@cache
def _key(kind: APIResource[Any]) -> str:
    """Pods of all parts are stored together; those of the webhook also by themselves, with their arguments."""
    return POD.title if kind.kind == _PODS and kind is not WEBHOOK_POD else kind.title


def _namespace(kind: APIResource[Any], meta: ObjectMeta) -> str:
    return (meta.namespace or "default") if kind.namespaced else ""
