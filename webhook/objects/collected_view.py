"""CollectedView: a ClusterView of objects that were read once, from files or at an API server.

Invariant: nothing is ever missing here. An object that was not read is absent, unless it is known of its kind that it
could not be listed. webhook.kube.live_cluster reads on where something is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from webhook.core import refs
from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.longhorn import Need
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod, uses
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.scheduler.state.snapshot import SnapshotUnavailable
from webhook.core.view import KINDS_OF_VMS, ClusterView, Kind, NoObject, ObjectRef, ObjectT, Ref, VolumeUsers
from webhook.objects.indexes import UserIndex, count_pods, index_users, nodes_max
from webhook.objects.kinds import (
    CONFIG_MAP,
    CSI_NODE,
    LONGHORN_NODE,
    NODE,
    OF_CORE,
    PERSISTENT_VOLUME,
    POD,
    VIRT_LAUNCHER_POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    APIResource,
)
from webhook.objects.objects import ObjectStore


class CollectedView:
    """The objects that were read, as core asks for them (webhook.core.view.ClusterView)."""

    def __init__(self, objects: ObjectStore, *, longhorn_namespace: str) -> None:
        """Take what was read; `longhorn_namespace` is that of Longhorn's objects."""
        self.objects = objects
        self.longhorn_namespace = longhorn_namespace
        self._snapshot: ListedSnapshot | SnapshotUnavailable | None = None
        self._virt_launchers: list[Pod] | None = None
        self._users: UserIndex | None = None

    def all_virt_launchers(self) -> Sequence[Pod]:
        """Return all virt-launcher pods."""
        if self._virt_launchers is None:
            pods = self.objects.of(POD).values()
            self._virt_launchers = [pod for pod in pods if pod.metadata.label(LABEL_APP) == VIRT_LAUNCHER]
        return self._virt_launchers

    def forget_indexes(self) -> None:
        """Make the indexes again at the next question, because objects were added."""
        self._virt_launchers = self._users = None

    @property
    def missing(self) -> Collection[Ref]:
        """Return no object: everything was read."""
        return ()

    def without_reads(self) -> ClusterView:
        """Return itself: nothing is read here."""
        return self

    def get(self, ref: ObjectRef[ObjectT]) -> ObjectT | NoObject:
        """Return this object."""
        found: Any
        if ref.kind is Kind.VIRT_LAUNCHERS_ON_NODE:
            found = self._virt_launchers_on(ref)
        else:
            kind = OF_CORE[ref.kind]
            found = self.objects.get(kind, ref.name, self._namespace(kind, ref))
            if found is None:
                found = self._absent(ref, kind)
        known: ObjectT | NoObject = found
        return known

    def why_no_owner(self, ref: Ref, uid: str) -> NoObject | None:
        """Return None if this object has this uid, or if the files do not say which objects of its kind exist."""
        if self.assumes(ref.kind):
            return None
        found: Any = self.get(ref)
        if isinstance(found, NoObject):
            return found
        return None if found.metadata.uid == uid else NoObject.NOT_FOUND

    def assumes(self, kind: Kind) -> bool:
        """Whether any owner of this kind counts as existing: the files have no object of the kind."""
        return not self.objects.bundle and bool(self.objects.problem(OF_CORE[kind]))

    def _namespace(self, kind: APIResource[Any], ref: Ref) -> str:
        return self.longhorn_namespace if kind.of_longhorn else ref.key.namespace

    def _virt_launchers_on(self, ref: Ref) -> Sequence[Pod] | NoObject:
        if self._unread(VIRT_LAUNCHER_POD):
            return NoObject.UNAVAILABLE
        namespace, node = ref.key
        pods = self.all_virt_launchers()
        return [pod for pod in pods if pod.metadata.namespace == namespace and pod.spec.node_name == node]

    def _absent(self, ref: Ref, kind: APIResource[Any]) -> NoObject:  # noqa: ARG002 - for a live cluster
        """Why this object is not there."""
        return NoObject.UNAVAILABLE if self.read_error(ref) else NoObject.NOT_FOUND

    def _unread(self, kind: APIResource[Any], namespace: str = "") -> str:  # noqa: ARG002 - for a live cluster
        """Why the objects of a kind were not all read; empty if they were."""
        return self.objects.unread(kind)

    def read_error(self, ref: Ref) -> str:
        """Return why the objects of this kind could not be listed."""
        kind = OF_CORE[ref.kind]
        return self._vms_unread(kind, "") if ref.kind in KINDS_OF_VMS else self._unread(kind)

    def staleness(self) -> None:
        """Return None: what was read once is not out of date."""

    def has_longhorn_nodes(self) -> bool:
        """Return whether any nodes.longhorn.io exist in Longhorn's namespace, or may exist."""
        namespace = self.longhorn_namespace
        return bool(self.objects.within(LONGHORN_NODE, namespace) or self._unread(LONGHORN_NODE))

    def all_longhorn_nodes_lack(self, need: Need) -> bool:
        """Return whether each nodes.longhorn.io says so; False if they could not all be read."""
        nodes = self.objects.within(LONGHORN_NODE, self.longhorn_namespace).values()
        return not self._unread(LONGHORN_NODE) and all(node.certainly_lacks(need) for node in nodes)

    def node_names(self) -> list[str]:
        """Return the names of all nodes, sorted."""
        return sorted(key.name for key in self.objects.of(NODE))

    def usable_nodes(self) -> int:
        """Count the nodes that are Ready and not cordoned."""
        return sum(node.usable for node in self.objects.of(NODE).values())

    def has_autoscaler(self) -> bool:
        """Return whether Karpenter made any of the nodes, or cluster-autoscaler writes its status or may do so."""
        seen = any(node.from_karpenter for node in self.objects.of(NODE).values()) or self.objects.of(CONFIG_MAP)
        return bool(seen or self._unread(CONFIG_MAP))

    def snapshot(self) -> ListedSnapshot | SnapshotUnavailable:
        """Return the snapshot of pods and nodes; SnapshotUnavailable if no node has status.allocatable."""
        if self._snapshot is None:
            self._snapshot = self._count()
        return self._snapshot

    def _count(self) -> ListedSnapshot | SnapshotUnavailable:
        counted: tuple[APIResource[Any], ...] = (NODE, POD, CSI_NODE)
        unread = next(filter(None, map(self._unread, counted)), "")
        if unread:
            return SnapshotUnavailable(unread)
        return count_pods(self.objects, partial(nodes_max, self, self.longhorn_namespace))

    def volume_claims(self, volume: str) -> list[NamespacedName] | NoObject:
        """Return the claims of the PersistentVolumes that have this CSI volume handle."""
        claims = self._index().claims_of(volume)
        if not claims and self.get(refs.persistent_volume(volume)) is NoObject.UNAVAILABLE:
            return NoObject.UNAVAILABLE
        return claims

    def virt_launchers(self, claim: NamespacedName) -> list[Pod] | NoObject:
        """Return the virt-launcher pods that use this claim."""
        if self._unread(VIRT_LAUNCHER_POD, claim.namespace):
            return NoObject.UNAVAILABLE
        pods = self.all_virt_launchers()
        return [pod for pod in pods if pod.metadata.namespace == claim.namespace and uses(pod, claim.name)]

    def users_of(self, volume: str, claim: NamespacedName) -> VolumeUsers:
        """Return who uses this volume by way of the claim, of what was read."""
        vms = (self._vms_unread(kind, claim.namespace) for kind in (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE))
        unknown = next(filter(None, vms), "") or self._unread(PERSISTENT_VOLUME) or self._unread(POD, claim.namespace)
        return self._index().users_of(volume, claim, unknown)

    def _index(self) -> UserIndex:
        if self._users is None:
            self._users = index_users(self.objects)
        return self._users

    def _vms_unread(self, kind: APIResource[Any], namespace: str) -> str:  # noqa: ARG002 - for a live cluster
        """Why it is unknown which objects of this kind of KubeVirt's exist; empty if it is known."""
        return self.objects.problem(kind)
