"""ClusterView: the questions core asks of a cluster, and the three ways an answer can be missing.

A view answers from memory and never waits. What it does not hold it calls NOT_CACHED; core then returns `NeedObjects`
with every such reference at once, and the caller reads them and asks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, StrEnum
from typing import NamedTuple, Protocol

from msgspec import Struct

from webhook.core.api.longhorn import LonghornNode, ShareManager, VolumeAttachment
from webhook.core.api.meta import NamespacedName
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume, PersistentVolumeClaim
from webhook.core.scheduler.state.snapshot import AnySnapshot


class Kind(StrEnum):
    """The kinds core reads. LONGHORN_NODE is longhorn.io's Node, NODE the core one.

    A Ref to VIRT_LAUNCHERS_ON_NODE names a namespace and a node: those pods of the one that are on the other.
    """

    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    PERSISTENT_VOLUME = "PersistentVolume"
    SHARE_MANAGER = "ShareManager"
    SHARE_MANAGER_POD = "share-manager Pod"
    NODE = "Node"
    LONGHORN_NODE = "Longhorn Node"
    VOLUME_ATTACHMENT = "Longhorn VolumeAttachment"
    CSI_NODE = "CSINode"
    VIRT_LAUNCHER_POD = "virt-launcher Pod"
    VIRT_LAUNCHERS_ON_NODE = "virt-launcher Pods on a node"


class Ref(NamedTuple):
    """One object that core asked for. For Longhorn's kinds the view knows the namespace: it stays empty."""

    kind: Kind
    key: NamespacedName


class NoObject(Enum):
    """Why a view gives no object."""

    ABSENT = "the cluster has no such object"
    NOT_CACHED = "not read yet: a caller that can should read it and ask again"
    UNAVAILABLE = "it was asked for, and no answer came in time"


class ClusterView(Protocol):
    """What core may ask. Every method returns at once; none raises."""

    def read_error(self, ref: Ref) -> str:
        """Why the answer to `ref` was UNAVAILABLE, in a few words."""
        ...

    def staleness(self) -> str | None:
        """What this view answered, though it may have changed since and nobody could be asked; None for nothing.

        Such an answer is good for a preference, and not for a hard pin.
        """
        ...

    def persistent_volume_claim(self, key: NamespacedName) -> PersistentVolumeClaim | NoObject:
        """The claim of that namespace and name."""
        ...

    def persistent_volume(self, name: str) -> PersistentVolume | NoObject:
        """The volume of that name."""
        ...

    def share_manager(self, volume: str) -> ShareManager | NoObject:
        """The ShareManager of a Longhorn volume (PersistentVolume `spec.csi.volumeHandle`)."""
        ...

    def share_manager_pod(self, volume: str) -> Pod | NoObject:
        """The pod share-manager-<volume> in Longhorn's namespace."""
        ...

    def node(self, name: str) -> Node | NoObject:
        """The Kubernetes node of that name."""
        ...

    def has_longhorn_nodes(self) -> bool:
        """Whether the cluster shows any nodes.longhorn.io at all; where not, they are not asked for."""
        ...

    def longhorn_node(self, name: str) -> LonghornNode | NoObject:
        """Longhorn's object for the Kubernetes node of that name."""
        ...

    def node_names(self) -> Sequence[str]:
        """The Kubernetes nodes, in no order that means anything; none where they can't be known without asking."""
        ...

    def usable_nodes(self) -> int:
        """How many of `node_names` are Ready and not cordoned."""
        ...

    def snapshot(self) -> AnySnapshot:
        """Return the nodes and pods; or why there is no snapshot now, or that this process counts no pods."""
        ...

    def volume_claims(self, volume: str) -> Sequence[NamespacedName] | NoObject:
        """The claims (`spec.claimRef`) of the PersistentVolumes that have this CSI volume handle.

        NOT_CACHED is settled by reading the PersistentVolume that is called as the handle, as provisioned ones are.
        """
        ...

    def virt_launchers(self, claim: NamespacedName) -> Sequence[Pod] | NoObject:
        """Every virt-launcher pod that uses this claim; UNAVAILABLE where no cache knows them all."""
        ...

    def virt_launchers_on(self, namespace: str, node: str) -> Sequence[Pod] | NoObject:
        """The virt-launcher pods of a namespace that are on a node, as the API server has them; never from a cache."""
        ...

    def volume_attachment(self, volume: str) -> VolumeAttachment | NoObject:
        """Longhorn's VolumeAttachment of a volume, as the API server has it; never from a cache."""
        ...


class NeedObjects(Struct, frozen=True):
    """Core can't decide before these were read. Never empty; an answer of UNAVAILABLE counts as read."""

    refs: tuple[Ref, ...]


def unread(*asked: tuple[Ref, object]) -> NeedObjects:
    """Those references among `asked` whose answer was NOT_CACHED; at least one must be."""
    return NeedObjects(tuple(ref for ref, answer in asked if answer is NoObject.NOT_CACHED))
