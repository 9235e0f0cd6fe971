"""Cluster: what was collected of a cluster, and what could not be read. Commands ask it, and core sees it as its view.

Invariant: nothing is ever missing here. An object that was not read is absent, unless it is known of its kind that it
could not be listed. webhook.kube.live_cluster is a cluster that reads on where a kind could not be listed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from webhook.core import refs
from webhook.core.api import kubevirt
from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.longhorn import Need
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod, uses
from webhook.core.decision import Pin
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.scheduler.cache import SnapshotUnavailable
from webhook.core.view import KINDS_OF_VMS, ClusterView, Kind, NoObject, ObjectRef, ObjectT, Ref, VolumeUsers
from webhook.objects import kinds
from webhook.objects.files import load_objects
from webhook.objects.indexes import UserIndex, count_pods, index_users, nodes_max
from webhook.objects.kinds import OF_CORE, APIResource
from webhook.objects.objects import ObjectStore, Part

_T = TypeVar("_T")


class Cluster:
    """A cluster that was read once (webhook.core.view.ClusterView)."""

    def __init__(self, objects: ObjectStore, *, longhorn_namespace: str) -> None:
        """Take what was read; `longhorn_namespace` is that of Longhorn's objects."""
        self.objects = objects
        self.longhorn_namespace = longhorn_namespace
        self._snapshot: ListedSnapshot | SnapshotUnavailable | None = None
        self._virt_launchers: list[Pod] | None = None
        self._of_vms: dict[NamespacedName, list[Pod]] | None = None
        self._users: UserIndex | None = None

    @classmethod
    def load(cls, path: Path, *, longhorn_namespace: str) -> Cluster:
        """Return the cluster of a file, or of the .yaml, .yml and .json files of a directory and of those in it.

        A bundle says itself where Longhorn is.

        Raises:
            BadDocument: there is no file, or objects can't be read. Each message has file and line.
        """
        objects = load_objects(path)
        made = objects.bundle
        return cls(objects, longhorn_namespace=made.longhorn_namespace if made else longhorn_namespace)

    @property
    def origin(self) -> str:
        """From where the objects were read, in words."""
        return self.objects.origin

    @property
    def namespace(self) -> str:
        """The namespace of objects that name none: that of the user who read them."""
        return self.objects.bundle.namespace if self.objects.bundle else "default"

    def ask(self, question: Callable[[ClusterView], _T]) -> _T:
        """Return the answer to a question about what was read."""
        return question(self)

    def collect(self, parts: Sequence[Part]) -> None:
        """Have these parts: all that was described is there."""

    # What was not read.

    def unread(self, *wanted: APIResource[Any]) -> str:
        """Return why the objects of these kinds were not all read; empty if they were."""
        return next(filter(None, map(self.objects.unread, wanted)), "")

    def users_unread(self) -> str:
        """Return why it is unknown who uses the volumes; as `unread`."""
        vms = kinds.VIRTUAL_MACHINE, kinds.VIRTUAL_MACHINE_INSTANCE
        return self.unread(*vms, kinds.PERSISTENT_VOLUME, kinds.OTHER_POD, kinds.VIRT_LAUNCHER_POD)

    def find(self, kind: APIResource[_T], name: str, namespace: str, named: str) -> _T:
        """Return the object of that name. `named`: as the user called it.

        Raises:
            UserError: the object does not exist or can't be read.
        """
        return self.objects.find(kind, name, namespace, named)

    # The ClusterView.

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
                found = self._absent(ref)
        known: ObjectT | NoObject = found
        return known

    def _namespace(self, kind: APIResource[Any], ref: Ref) -> str:
        return self.longhorn_namespace if kind.of_longhorn else ref.key.namespace

    def _virt_launchers_on(self, ref: Ref) -> Sequence[Pod] | NoObject:
        if self.unread(kinds.VIRT_LAUNCHER_POD):
            return NoObject.UNAVAILABLE
        namespace, node = ref.key
        pods = self.all_virt_launchers()
        return [pod for pod in pods if pod.metadata.namespace == namespace and pod.spec.node_name == node]

    def _absent(self, ref: Ref) -> NoObject:
        """Why this object is not there."""
        return NoObject.UNAVAILABLE if self.read_error(ref) else NoObject.NOT_FOUND

    def read_error(self, ref: Ref) -> str:
        """Return why the objects of this kind could not be listed."""
        kind = OF_CORE[ref.kind]
        return self.objects.problem(kind) if ref.kind in KINDS_OF_VMS else self.objects.unread(kind)

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

    def staleness(self) -> None:
        """Return None: what was read once is not out of date."""

    def has_longhorn_nodes(self) -> bool:
        """Return whether any nodes.longhorn.io exist in Longhorn's namespace, or may exist."""
        found = self.objects.within(kinds.LONGHORN_NODE, self.longhorn_namespace)
        return bool(found or self.unread(kinds.LONGHORN_NODE))

    def all_longhorn_nodes_lack(self, need: Need) -> bool:
        """Return whether each nodes.longhorn.io says so; False if they could not all be read."""
        nodes = self.objects.within(kinds.LONGHORN_NODE, self.longhorn_namespace).values()
        return not self.unread(kinds.LONGHORN_NODE) and all(node.certainly_lacks(need) for node in nodes)

    def node_names(self) -> list[str]:
        """Return the names of all nodes, sorted."""
        return sorted(key.name for key in self.objects.of(kinds.NODE))

    def usable_nodes(self) -> int:
        """Count the nodes that are Ready and not cordoned."""
        return sum(node.usable for node in self.objects.of(kinds.NODE).values())

    def has_autoscaler(self) -> bool:
        """Return whether Karpenter made any of the nodes, or cluster-autoscaler writes its status or may do so."""
        from_karpenter = any(node.from_karpenter for node in self.objects.of(kinds.NODE).values())
        return from_karpenter or bool(self.objects.of(kinds.CONFIG_MAP) or self.unread(kinds.CONFIG_MAP))

    def snapshot(self) -> ListedSnapshot | SnapshotUnavailable:
        """Return the snapshot of pods and nodes; SnapshotUnavailable if no node has status.allocatable."""
        if self._snapshot is None:
            unread = self.unread(kinds.NODE, kinds.POD, kinds.CSI_NODE)
            rule = partial(nodes_max, self, self.longhorn_namespace)
            self._snapshot = SnapshotUnavailable(unread) if unread else count_pods(self.objects, rule)
        return self._snapshot

    def all_virt_launchers(self) -> Sequence[Pod]:
        """Return all virt-launcher pods."""
        if self._virt_launchers is None:
            pods = self.objects.of(kinds.POD).values()
            self._virt_launchers = [pod for pod in pods if pod.metadata.label(LABEL_APP) == VIRT_LAUNCHER]
        return self._virt_launchers

    def virt_launchers_of_vms(self) -> Mapping[NamespacedName, Sequence[Pod]]:
        """Return the virt-launcher pods of each VM that has one."""
        if self._of_vms is None:
            self._of_vms = {}
            for pod in self.all_virt_launchers():
                vm = NamespacedName(pod.metadata.namespace or "", kubevirt.vm_name(pod))
                self._of_vms.setdefault(vm, []).append(pod)
        return self._of_vms

    def _index(self) -> UserIndex:
        if self._users is None:
            self._users = index_users(self.objects)
        return self._users

    def add(self, kind: APIResource[Any], found: Any) -> None:
        """Add an object, and make the indexes again at the next question."""
        self.objects.add(kind, found)
        self._virt_launchers = self._of_vms = self._users = None

    def volume_claims(self, volume: str) -> list[NamespacedName] | NoObject:
        """Return the claims of the PersistentVolumes that have this CSI volume handle."""
        claims = self._index().claims_of(volume)
        if not claims and self.get(refs.persistent_volume(volume)) is NoObject.UNAVAILABLE:
            return NoObject.UNAVAILABLE
        return claims

    def virt_launchers(self, claim: NamespacedName) -> list[Pod] | NoObject:
        """Return the virt-launcher pods that use this claim."""
        if self.unread(kinds.VIRT_LAUNCHER_POD):
            return NoObject.UNAVAILABLE
        pods = self.all_virt_launchers()
        return [pod for pod in pods if pod.metadata.namespace == claim.namespace and uses(pod, claim.name)]

    def users_of(self, volume: str, claim: NamespacedName) -> VolumeUsers:
        """Return who uses this volume by way of the claim, of what was read."""
        described = self.objects.problem(kinds.VIRTUAL_MACHINE)  # that of both kinds of VMs, for files
        return self._index().users_of(volume, claim, described or self.users_unread())

    # What `serve` asks.

    def view(self) -> Cluster:
        """Return itself: what was read does not change, so the cluster is its own view."""
        return self

    async def read(self, *_: object) -> Cluster:
        """Return itself: nothing is missing, so there is nothing to read."""
        return self

    def assume(self, pod: Pod, namespace: str, pin: Pin) -> None:
        """Do nothing: an admitted pod does not change the files."""

    def forget(self, pod: Pod, namespace: str) -> None:
        """Do nothing, as `assume`."""

    def has_vm(self, namespace: str, name: str) -> bool:
        """Return whether there is a VirtualMachineInstance of this name, or may be one."""
        if self.objects.bundle or self.objects.of(kinds.VIRTUAL_MACHINE_INSTANCE):
            return self.get(refs.virtual_machine_instance(NamespacedName(namespace, name))) is not NoObject.NOT_FOUND
        return NamespacedName(namespace, name) in self.virt_launchers_of_vms()
