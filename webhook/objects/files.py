"""Files -> the objects in them, and the ObjectStore of a cluster that they describe."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from webhook.core.api.meta import CLUSTER_AUTOSCALER_STATUS, NamespacedName
from webhook.core.placement.replica_share import REPLICA_LABELS
from webhook.objects.documents import BadDocument, Document, field_at, read_documents
from webhook.objects.kinds import CONFIG_MAP, POD, WEBHOOK_POD, find_kind
from webhook.objects.objects import BUNDLE, ClusterBundle, ObjectStore, key_of

_GZIP: Final = b"\x1f\x8b"  # RFC 1952
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml")


def read_file(path: Path) -> Iterator[Document]:
    """Yield the objects of one file.

    Raises:
        BadDocument: the file can't be read as UTF-8 text, or as `read_documents` says.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        if error.object.startswith(_GZIP):
            raise BadDocument(f"{path}: compressed by gzip; expected text: gunzip it first") from None
        raise BadDocument(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from None
    except OSError as error:
        raise BadDocument(f"{path}: {error.strerror}; expected a YAML or JSON file") from None
    yield from read_documents(text, str(path))


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

    objects = read_objects(documents(), problems)
    objects.files = str(path)
    return objects


def read_objects(documents: Iterable[Document], problems: list[str] | None = None) -> ObjectStore:
    """Return the objects that these documents describe. `problems`: what is wrong before them.

    Raises:
        BadDocument: fields of a wrong type, objects without a name, or two objects of one kind and name. The error has
            a message for each.
    """
    objects = ObjectStore()
    places: dict[tuple[str, NamespacedName], str] = {}
    wrong: list[str] = []
    for document in documents:
        try:
            _take(objects, document, places)
        except BadDocument as error:
            wrong += error.problems
    if problems or wrong:
        raise BadDocument(*(problems or ()), *wrong)
    return objects


def _take(objects: ObjectStore, document: Document, places: dict[tuple[str, NamespacedName], str]) -> None:
    stated = document.api_version, document.kind
    if stated == BUNDLE:
        objects.bundle = document.read(ClusterBundle)
        return
    kind = find_kind(*stated)
    name = field_at(document.value, "metadata", "name")
    if kind is None or (kind is CONFIG_MAP and name != CLUSTER_AUTOSCALER_STATUS):  # users have many ConfigMaps
        objects.ignored[" ".join(stated)] += 1
        return
    found = document.read(kind.type)
    meta = found.metadata
    if not meta.name:
        raise BadDocument(f"{document.place}: {document.kind}: metadata.name: got nothing, expected a name")
    key = key_of(kind, meta)
    if key in places:
        shown = "/".join(filter(None, key[1]))
        raise BadDocument(f"{document.place}: {document.kind} {shown} is described twice, first in {places[key]}")
    places[key] = document.place
    objects.add(kind, found)
    if kind is POD and REPLICA_LABELS.items() <= (meta.labels or {}).items():
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
