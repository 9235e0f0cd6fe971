"""ObjectStore: the objects of a cluster that was read once; what is read (Part), and what could not be.

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
from msgspec import Struct, field
from msgspec.structs import replace

from webhook.component_base.errors import did_you_mean
from webhook.core.api.meta import NamespacedName, ObjectMeta, time_or_none, utc_text
from webhook.objects import kinds
from webhook.objects.documents import BadDocument
from webhook.objects.installed import CONFIGURATION
from webhook.objects.kinds import KINDS, POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, WEBHOOK_POD, APIResource

_T = TypeVar("_T")
_VMS: Final[tuple[APIResource[Any], ...]] = (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE)
BUNDLE: Final = ("kubevirt-scheduler/v1", "Bundle")
"""Version and kind of a ClusterBundle."""


class Part(Struct, frozen=True, kw_only=True):
    """What is read of one kind.

    Attributes:
        kind: the kind, with its selectors.
        namespace: the only namespace that is read; empty for all. Longhorn's kinds are read in Longhorn's namespace.
        name: of the only object that is read, by a GET: a Role may allow that, and not a list. Empty for all objects.
    """

    kind: APIResource[Any]
    namespace: str = ""
    name: str = ""


def parts_of_all() -> list[Part]:
    """Return every kind, as a bundle has them."""
    return [Part(kind=kind) for kind in (*kinds.KINDS, kinds.WEBHOOK_POD)]


def parts_of_rows(namespace: str, *, others: bool = True) -> list[Part]:
    """Return what the rows of the VMs in a namespace are made of, in all namespaces if it is empty.

    `others`: whether pods of no VM are in it. They can use a VM's volume, too.
    """
    in_namespace = (
        *((kinds.OTHER_POD,) if others else ()),
        kinds.VIRT_LAUNCHER_POD,
        kinds.PERSISTENT_VOLUME_CLAIM,
        kinds.VIRTUAL_MACHINE,
        kinds.VIRTUAL_MACHINE_INSTANCE,
        kinds.EVENT,
    )
    return [
        *(Part(kind=kind, namespace=namespace) for kind in in_namespace),
        *(Part(kind=kind) for kind in (kinds.SHARE_MANAGER_POD, kinds.PERSISTENT_VOLUME, kinds.SHARE_MANAGER)),
        Part(kind=kinds.NODE),
        Part(kind=kinds.NAMESPACE, name=namespace),
        Part(kind=kinds.WEBHOOK_CONFIGURATION, name=CONFIGURATION),
        Part(kind=kinds.WEBHOOK_POD),
    ]


def parts_of_nodes() -> list[Part]:
    """Return what else the nodes of a cluster are evaluated by, and which KubeVirt runs."""
    found = (kinds.LONGHORN_NODE, kinds.CSI_NODE, kinds.UNFINISHED_POD, kinds.KUBEVIRT)
    return [Part(kind=kind) for kind in found]


class BundleList(Struct, rename="camel", frozen=True, kw_only=True):
    """One kind that the program listed.

    Attributes:
        resource: the kind as in an RBAC rule, or what a part of it is called.
        objects: how many objects are in the bundle.
        problem: why the objects could not be listed; empty if they were.
    """

    resource: str
    objects: int = 0
    problem: str = ""


class ClusterBundle(Struct, rename="camel", frozen=True, kw_only=True):
    """The record that says where, when and how completely the objects of a cluster were read.

    It is in the file that `bundle` writes. With it what did not exist differs from what could not be read.

    Attributes:
        cluster: the API server, as the commands name it.
        at: the time, as RFC 3339.
        namespace: the default namespace of the user who made the bundle.
        longhorn_namespace: the namespace from which Longhorn's objects were listed.
        lists: each kind.
    """

    api_version: str = BUNDLE[0]
    kind: str = BUNDLE[1]
    metadata: dict[str, str] = field(default_factory=lambda: {"name": "bundle"})
    cluster: str
    at: str
    namespace: str
    longhorn_namespace: str
    lists: list[BundleList]

    def __post_init__(self) -> None:
        """Refuse a time from which no age can be counted: this raises ValueError."""
        if time_or_none(self.at) is None:
            raise ValueError("at: expected a time such as 2026-11-28T09:30:00Z")

    def problem(self, kind: APIResource[Any]) -> str:
        """Return why the objects of a kind, or of a part of it, could not be listed; empty if they were."""
        listed = {each.resource: each.problem for each in self.lists}
        lacking = f"the bundle has no list of {kind.kind}"
        return listed.get(kind.title, listed.get(kind.resource, lacking))


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
        found = self.get(kinds.WEBHOOK_CONFIGURATION, CONFIGURATION)
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
