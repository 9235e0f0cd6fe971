"""Longhorn's objects of longhorn.io/v1beta2 with the fields that a rule reads, its labels, names and pod affinity.

Longhorn looks for packages, kernel modules and an NFS client on each of its nodes, and reports what it finds in
conditions beside Ready. The node stays Ready (longhorn-manager controller/monitor/environment_check_monitor.go).
Invariant: of these conditions only words of a closed set count, never a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from msgspec import field

from webhook.core.api.meta import ApiType, Condition, ObjectMeta

LONGHORN_API_VERSION: Final = "longhorn.io/v1beta2"
LONGHORN_CSI_DRIVER: Final = "driver.longhorn.io"
LABEL_LONGHORN_COMPONENT: Final = "longhorn.io/component"
LABEL_LONGHORN_NODE: Final = "longhorn.io/node"
LABEL_LONGHORN_SHARE_MANAGER: Final = "longhorn.io/share-manager"
SHARE_MANAGER: Final = "share-manager"
SHARE_MANAGER_NODE_SELECTOR: Final = "shareManagerNodeSelector"  # a StorageClass parameter, and so of its volumes
SHARE_MANAGER_KIND: Final = "ShareManager"  # the owner of a share-manager pod: longhorn-manager datastore/longhorn.go
VOLUME_ATTRIBUTES: Final = ("migratable", "dataEngine", "dataLocality", "encrypted", SHARE_MANAGER_NODE_SELECTOR)
"""The CSI attributes of a volume that are read."""
INSTANCE_MANAGER: Final = "instance-manager"
SHARE_MANAGER_POD_PREFIX: Final = "share-manager-"
_READY: Final = "Ready"
_WORD: Final = re.compile(r"[\w./-]+", re.ASCII)
_UNKNOWN: Final = "unknown"  # a reason that is not in the table


def is_share_manager(meta: ObjectMeta) -> bool:
    """Whether this is the metadata of a share-manager pod (longhorn-manager types.go, GetShareManagerLabels)."""
    return meta.label(LABEL_LONGHORN_COMPONENT) == SHARE_MANAGER


class ShareManagerStatus(ApiType):
    """longhorn.io/v1beta2 ShareManagerStatus."""

    owner_id: str | None = field(name="ownerID", default=None)
    state: str | None = None


class ShareManager(ApiType):
    """longhorn.io/v1beta2 ShareManager; its name is Longhorn's volume name."""

    metadata: ObjectMeta
    status: ShareManagerStatus | None = None


class AttachmentTicket(ApiType):
    """longhorn.io/v1beta2 AttachmentTicket: who wants the volume attached, and on which node."""

    type: str | None = None
    node_id: str | None = field(name="nodeID", default=None)


class VolumeAttachmentSpec(ApiType):
    """longhorn.io/v1beta2 VolumeAttachmentSpec."""

    attachment_tickets: dict[str, AttachmentTicket] | None = None


class VolumeAttachment(ApiType):
    """longhorn.io/v1beta2 VolumeAttachment; its name is Longhorn's volume name."""

    metadata: ObjectMeta
    spec: VolumeAttachmentSpec | None = None


class Need(StrEnum):
    """What the node of a VM needs: to mount what a share-manager serves, and to open an encrypted volume."""

    NFS_CLIENT = "an NFS client"
    ENCRYPTION = "cryptsetup and dm_crypt"


class Lack(NamedTuple):
    """What Longhorn says that a node lacks.

    Attributes:
        condition: the type of the condition that says it.
        word: the package, the kernel module, or the condition's reason.
        need: what the node can't do without it.
        certain: False if Longhorn could not look, or doubts what it found.
    """

    condition: str
    word: str
    need: Need
    certain: bool = True


def _lacks(condition: str, words: Iterable[str], need: Need, *, certain: bool = True) -> dict[str, Lack]:
    return {word: Lack(condition, word, need, certain) for word in words}


_NFS_PACKAGES: Final = ("nfs-common", "nfs-utils", "nfs-client", "net-fs/nfs-utils")
_CRYPT_PACKAGES: Final = ("cryptsetup", "sys-fs/cryptsetup")
_NOT_CHECKED: Final = ("CheckKernelConfigFailed", "NamespaceExecutorErr")
_LACKS: Final[Mapping[str, Mapping[str, Lack]]] = {
    "RequiredPackages": {
        **_lacks("RequiredPackages", _NFS_PACKAGES, Need.NFS_CLIENT),
        **_lacks("RequiredPackages", _CRYPT_PACKAGES, Need.ENCRYPTION),
        **_lacks("RequiredPackages", ["NamespaceExecutorErr"], Need.NFS_CLIENT, certain=False),
    },
    "KernelModulesLoaded": {
        **_lacks("KernelModulesLoaded", ["dm_crypt"], Need.ENCRYPTION),
        **_lacks("KernelModulesLoaded", _NOT_CHECKED, Need.ENCRYPTION, certain=False),
    },
    "NFSClientInstalled": {
        **_lacks("NFSClientInstalled", ["NFSClientIsNotFound"], Need.NFS_CLIENT),
        **_lacks(
            "NFSClientInstalled",
            [*_NOT_CHECKED, "NFSClientIsMisconfigured", _UNKNOWN],
            Need.NFS_CLIENT,
            certain=False,
        ),
    },
}


def _lacks_of(condition: Condition) -> list[Lack]:
    """Return what the node lacks by this condition: the condition's reason, or words of its message."""
    known = _LACKS.get(condition.type or "")
    if known is None or condition.status != "False":
        return []
    by_reason = known.get(condition.reason or "")
    if by_reason:
        return [by_reason]
    words = set(_WORD.findall(condition.message or ""))
    return [lack for word, lack in known.items() if word in words] or list(filter(None, [known.get(_UNKNOWN)]))


class LonghornNodeStatus(ApiType):
    """longhorn.io/v1beta2 NodeStatus."""

    conditions: list[Condition] | None = None

    @property
    def ready(self) -> bool:
        """Whether the condition Ready is True; a node without the condition is not ready."""
        return any(each.type == _READY and each.status == "True" for each in self.conditions or ())

    @property
    def lacks(self) -> list[Lack]:
        """What Longhorn says that the node lacks."""
        return [lack for each in self.conditions or () for lack in _lacks_of(each)]

    def known(self) -> LonghornNodeStatus:
        """Return the status with conditions that say the same as these, in as few words."""
        ready = [Condition(type=_READY, status="True")] if self.ready else []
        lacks = (Condition(type=each.condition, status="False", reason=each.word) for each in self.lacks)
        return LonghornNodeStatus(conditions=[*ready, *lacks])


class LonghornNode(ApiType):
    """longhorn.io/v1beta2 Node; its name is the Kubernetes node's name."""

    metadata: ObjectMeta
    status: LonghornNodeStatus | None = None

    @property
    def lacks(self) -> list[Lack]:
        """What Longhorn says that the node lacks."""
        return self.status.lacks if self.status else []

    def certainly_lacks(self, need: Need) -> bool:
        """Whether Longhorn is certain that the node lacks this."""
        return any(lack.need is need and lack.certain for lack in self.lacks)


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
