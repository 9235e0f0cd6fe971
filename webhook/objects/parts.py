"""Parts: what the commands read of a cluster, for webhook.kube.collect."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.objects import kinds
from webhook.objects.api.webhooks import CONFIGURATION
from webhook.objects.kinds import APIResource


class Part(Struct, frozen=True, kw_only=True):
    """What is read of one kind.

    Attributes:
        kind: the kind. Its own selectors hold, too.
        namespace: the only namespace that is read; empty for all. Longhorn's kinds are read in Longhorn's namespace.
        selector: a label selector; empty for all objects.
        fields: a field selector; empty for all objects.
        name: of the only object that is read, by a GET: a Role may allow that, and not a list. Empty for all objects.
    """

    kind: APIResource[Any]
    namespace: str = ""
    selector: str = ""
    fields: str = ""
    name: str = ""


def parts_of_all() -> list[Part]:
    """Return every kind, as a bundle has them."""
    return [Part(kind=kind) for kind in (*kinds.KINDS, kinds.WEBHOOK_POD)]


def parts_of_rows(namespace: str, *, others: bool = True) -> list[Part]:
    """Return what the rows of the VMs in a namespace are made of, in all namespaces if it is empty.

    `others`: whether pods of no VM are in it. They can use a VM's volume, too.
    """
    pods = Part(kind=kinds.UNFINISHED_POD, namespace=namespace, selector=f"{LABEL_APP}!={VIRT_LAUNCHER}")
    in_namespace = (
        kinds.VIRT_LAUNCHER_POD,
        kinds.PERSISTENT_VOLUME_CLAIM,
        kinds.VIRTUAL_MACHINE,
        kinds.VIRTUAL_MACHINE_INSTANCE,
        kinds.EVENT,
    )
    return [
        *([pods] if others else []),
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
