"""ObjectStore: the objects of a cluster that was read once, by kind and name; and what could not be read.

webhook.kube.collect reads them at an API server, and webhook.objects.files from files. Invariant: an object is there
once.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from webhook.component_base.errors import did_you_mean
from webhook.core.api.meta import NamespacedName, ObjectMeta, utc_text
from webhook.objects.documents import BadDocument
from webhook.objects.installed import CONFIGURATION
from webhook.objects.kinds import (
    KINDS,
    POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    WEBHOOK_CONFIGURATION,
    WEBHOOK_POD,
    APIResource,
)
from webhook.objects.parts import ClusterBundle

_T = TypeVar("_T")
_VMS: Final[tuple[APIResource[Any], ...]] = (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE)


class ObjectStore:
    """The objects of a cluster.

    Attributes:
        bundle: where, when and how completely the objects were read; None for files that the command bundle did not
            make.
        ignored: how many objects of files nothing reads, by kind.
        files: the file or directory from which they were read; empty for an API server.
    """

    def __init__(self, bundle: ClusterBundle | None = None) -> None:
        self.bundle = bundle
        self.files = ""
        self.ignored: Counter[str] = Counter()
        self._found: dict[str, dict[NamespacedName, Any]] = defaultdict(dict)

    @property
    def at(self) -> str:
        """When the objects were read (RFC 3339); now for files that the command bundle did not make."""
        return self.bundle.at if self.bundle else utc_text(time.time())

    def add(self, kind: APIResource[Any], found: Any) -> None:
        """Add an object, in place of an earlier one of this name. Without a namespace it is in `default`."""
        title, name = key_of(kind, found.metadata)
        if kind.namespaced and not found.metadata.namespace:
            found = replace(found, metadata=replace(found.metadata, namespace=name.namespace))
        self._found[title][name] = found

    def of(self, kind: APIResource[_T]) -> Mapping[NamespacedName, _T]:
        """Return the objects of a kind. The namespace of a cluster-wide object is empty."""
        return self._found[_title(kind)]

    def get(self, kind: APIResource[_T], name: str, namespace: str = "") -> _T | None:
        """Return the object of that name, or None."""
        found: _T | None = self._found[_title(kind)].get(NamespacedName(namespace, name))
        return found

    def within(self, kind: APIResource[_T], namespace: str) -> dict[str, _T]:
        """Return the objects of a kind in one namespace, by name."""
        return {key.name: found for key, found in self.of(kind).items() if key.namespace == namespace}

    @property
    def size(self) -> int:
        """How many objects there are."""
        return sum(len(self.of(kind)) for kind in KINDS)

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
        keys = {_title(each) for each in (_VMS if kind in _VMS else (kind,))}
        known = any(map(self._found.get, keys))
        return "" if known else f"no {kind.kind} is described"

    @property
    def origin(self) -> str:
        """The cluster in words: its API server; or the files, and for a bundle from which cluster and when."""
        if self.bundle is None:
            return self.files
        return f"{self.files}, made of {self.bundle.cluster} at {self.bundle.at}" if self.files else self.bundle.cluster

    def find(self, kind: APIResource[_T], name: str, namespace: str, named: str) -> _T:
        """Return the object of that name. `named`: as the user called it.

        Raises:
            BadDocument: the object is not described.
        """
        found = self.get(kind, name, namespace)
        if found is not None:
            return found
        if problem := self.problem(kind):
            raise BadDocument(
                f"{named}: {self.origin}: {problem}; expected the object in these files, or in one of its own: "
                "--filename FILE"
            )
        raise BadDocument(
            f"{named}: no {kind.kind} {name} in namespace {namespace} of {self.origin}"
            f"{self._elsewhere(kind, name, namespace) or '; check the name and --namespace'}"
        )

    def _elsewhere(self, kind: APIResource[Any], name: str, namespace: str) -> str:
        """Return where the object is, or the name that the user may have meant; empty if neither is known."""
        described, vmis = self.of(kind), self.of(VIRTUAL_MACHINE_INSTANCE)
        if kind is VIRTUAL_MACHINE and NamespacedName(namespace, name) in vmis:
            return f"; there is a VirtualMachineInstance without one: vmi/{name}"
        others = sorted(key.namespace for key in described if key.name == name)
        if others:
            return f"; there is one in namespace {others[0]}: -n {others[0]}"
        return did_you_mean(name, (key.name for key in described if key.namespace == namespace))


def key_of(kind: APIResource[Any], meta: ObjectMeta) -> tuple[str, NamespacedName]:
    """Return where an object of this kind is stored: by what, and by which name."""
    return _title(kind), NamespacedName((meta.namespace or "default") if kind.namespaced else "", meta.name or "")


@cache
def _title(kind: APIResource[Any]) -> str:
    """Pods of all parts are stored together; those of the webhook also by themselves, with their arguments."""
    return POD.title if kind.kind == POD.kind and kind is not WEBHOOK_POD else kind.title
