"""Parts: what the commands read of a cluster; and the record of how completely that was read (webhook.kube.collect)."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

from webhook.objects import kinds
from webhook.objects.installed import CONFIGURATION
from webhook.objects.kinds import APIResource

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

    def problem(self, kind: APIResource[Any]) -> str:
        """Return why the objects of a kind, or of a part of it, could not be listed; empty if they were."""
        listed = {each.resource: each.problem for each in self.lists}
        lacking = f"the bundle has no list of {kind.kind}"
        return listed.get(kind.title, listed.get(kind.resource, lacking))
