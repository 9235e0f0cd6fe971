"""Parts: what the commands read of a cluster, for webhook.kube.collect."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

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
    return [Part(kind=kind) for kind in kinds.KINDS]


def parts_of_rows(namespace: str, labels: str = "") -> list[Part]:
    """Return what the rows of the VMs in a namespace are made of, in all namespaces if it is empty.

    Of pods only those of VMs and share-managers, and no nodes. `labels`: a selector of the VMs' pods.
    """
    in_namespace = (
        kinds.PERSISTENT_VOLUME_CLAIM,
        kinds.VIRTUAL_MACHINE,
        kinds.VIRTUAL_MACHINE_INSTANCE,
        kinds.EVENT,
    )
    return [
        Part(kind=kinds.VIRT_LAUNCHER_POD, namespace=namespace, selector=labels),
        *(Part(kind=kind, namespace=namespace) for kind in in_namespace),
        *(Part(kind=kind) for kind in (kinds.SHARE_MANAGER_POD, kinds.PERSISTENT_VOLUME, kinds.SHARE_MANAGER)),
        Part(kind=kinds.NAMESPACE, name=namespace),
        Part(kind=kinds.WEBHOOK_CONFIGURATION, name=CONFIGURATION),
    ]


def parts_of_nodes() -> list[Part]:
    """Return what the nodes of a cluster are evaluated by, and which KubeVirt runs."""
    found = (kinds.NODE, kinds.LONGHORN_NODE, kinds.CSI_NODE, kinds.UNFINISHED_POD, kinds.KUBEVIRT)
    return [Part(kind=kind) for kind in found]
