"""Longhorn's objects of longhorn.io/v1beta2 with the fields that a rule reads, its labels, names and pod affinity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct, field

from webhook.core.api.meta import ObjectMeta
from webhook.core.api.node import NodeStatus

LONGHORN_API_VERSION: Final = "longhorn.io/v1beta2"
LONGHORN_CSI_DRIVER: Final = "driver.longhorn.io"
LABEL_LONGHORN_COMPONENT: Final = "longhorn.io/component"
LABEL_LONGHORN_NODE: Final = "longhorn.io/node"
LABEL_LONGHORN_SHARE_MANAGER: Final = "longhorn.io/share-manager"
SHARE_MANAGER: Final = "share-manager"
NFS_CLIENT_INSTALLED: Final = "NFSClientInstalled"  # of nodes.longhorn.io: k8s/pkg/apis/longhorn/v1beta2/node.go
SHARE_MANAGER_NODE_SELECTOR: Final = "shareManagerNodeSelector"  # a StorageClass parameter, and so of its volumes
SHARE_MANAGER_KIND: Final = "ShareManager"  # the owner of a share-manager pod: longhorn-manager datastore/longhorn.go
INSTANCE_MANAGER: Final = "instance-manager"
SHARE_MANAGER_POD_PREFIX: Final = "share-manager-"


class ShareManagerStatus(Struct, rename="camel", frozen=True, kw_only=True, weakref=True):
    """longhorn.io/v1beta2 ShareManagerStatus."""

    owner_id: str | None = field(name="ownerID", default=None)
    state: str | None = None


class ShareManager(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """longhorn.io/v1beta2 ShareManager; its name is Longhorn's volume name."""

    metadata: ObjectMeta
    status: ShareManagerStatus | None = None


class AttachmentTicket(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """longhorn.io/v1beta2 AttachmentTicket: who wants the volume attached, and on which node."""

    type: str | None = None
    node_id: str | None = field(name="nodeID", default=None)


class VolumeAttachmentSpec(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """longhorn.io/v1beta2 VolumeAttachmentSpec."""

    attachment_tickets: dict[str, AttachmentTicket] | None = None


class VolumeAttachment(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """longhorn.io/v1beta2 VolumeAttachment; its name is Longhorn's volume name."""

    metadata: ObjectMeta
    spec: VolumeAttachmentSpec | None = None


class LonghornNode(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """longhorn.io/v1beta2 Node; its name is the Kubernetes node's name."""

    metadata: ObjectMeta
    status: NodeStatus | None = None


ASSIGNED_STATES: Final = ("running", "starting", "absent")  # absent: a ShareManager without a state


def near(node: str, weight: int) -> dict[str, Any]:
    """Return the preferred pod affinity term to the instance-manager pod of a node: a preference for the node.

    Longhorn runs this pod on each of its nodes, and labels it with the node (longhorn-manager types.go,
    GetInstanceManagerLabels). Without such a pod the term has no effect, and the node gets a node affinity, too. A
    label's value has at most 63 characters, and kube-apiserver rejects a pod with a longer one.

    The term names no namespace, so it is about the namespace of the pod that has it. A ResourceQuota with the scope
    CrossNamespacePodAffinity counts each pod whose terms name a namespace, also if they are preferred
    (pkg/quota/v1/evaluator/core/pods.go). At its limit kube-apiserver rejects such a pod.
    """
    labels = {LABEL_LONGHORN_COMPONENT: INSTANCE_MANAGER, LABEL_LONGHORN_NODE: node}
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    return {"weight": weight, "podAffinityTerm": term}


def near_nodes(terms: Iterable[Any]) -> Iterator[str]:
    """Yield the node of each term that `near` returned; `terms` are any JSON."""
    for term in terms:
        try:
            node, weight = term["podAffinityTerm"]["labelSelector"]["matchLabels"][LABEL_LONGHORN_NODE], term["weight"]
        except (KeyError, TypeError):
            continue
        if term == near(node, weight):
            yield node
