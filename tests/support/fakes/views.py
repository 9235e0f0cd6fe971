"""Clusters for core, made of dicts: complete ones, and ones that lack some objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, Final, TypeAlias

from support.objects.builders import OWNER_UID
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance

from webhook.core import refs
from webhook.core.api.longhorn import Need
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.api.virtual_machine import KUBEVIRT_API_VERSION
from webhook.core.scheduler.cache import AnySnapshot
from webhook.core.view import ClusterView, Kind, NoObject, ObjectRef, ObjectT, Ref, VolumeUsers
from webhook.objects.cluster import Cluster
from webhook.objects.documents import Document
from webhook.objects.files import read_objects

LONGHORN_NAMESPACE = "longhorn-system"


def cluster(*objects: dict[str, Any], vms: bool = True) -> Cluster:
    """A cluster with these objects, and with VM db01, unless they have VMs; without `vms` with none in any case."""
    if vms and not any(each["apiVersion"] == KUBEVIRT_API_VERSION for each in objects):
        objects = (*objects, virtual_machine("db01", ()), virtual_machine_instance("db01", (), uid=OWNER_UID))
    return Cluster(read_objects(Document("-", value, 1) for value in objects), longhorn_namespace=LONGHORN_NAMESPACE)


MISSING: Final = None
"""The gap of an object that was not read yet."""
Gap: TypeAlias = NoObject | None


def missing_after(view: ClusterView, ask: Callable[[ClusterView], object]) -> list[Ref]:
    """Return the objects that must be read before the answer of `ask` counts."""
    ask(view)
    return list(view.missing)


class ViewWithGaps:
    """A view of a complete cluster that lacks an object if `gaps` has it."""

    def __init__(self, whole: Cluster, gaps: Mapping[Ref, Gap], *, staleness: str | None = None) -> None:
        self._whole = whole
        self._gaps = gaps
        self._doubt = staleness
        self.missing: dict[Ref, None] = {}

    def get(self, ref: ObjectRef[ObjectT]) -> ObjectT | NoObject:
        """Implement ClusterView."""
        return self._gap(ref) or self._whole.get(ref)

    def why_no_owner(self, ref: Ref, uid: str) -> NoObject | None:
        """Implement ClusterView."""
        return self._gap(ref) or self._whole.why_no_owner(ref, uid)

    def without_reads(self) -> ViewWithGaps:
        """Implement ClusterView."""
        view = copy(self)
        view.missing = {}
        return view

    def read_error(self, ref: Ref) -> str:
        """Implement ClusterView, for UNAVAILABLE objects only."""
        assert self._gaps[ref] in (NoObject.UNAVAILABLE, MISSING)
        return "503 for a test"

    def staleness(self) -> str | None:
        """Implement ClusterView."""
        return self._doubt

    @property
    def longhorn_namespace(self) -> str:
        """Implement ClusterView."""
        return self._whole.longhorn_namespace

    def has_longhorn_nodes(self) -> bool:
        """Implement ClusterView."""
        return self._whole.has_longhorn_nodes()

    def all_longhorn_nodes_lack(self, need: Need) -> bool:
        """Implement ClusterView."""
        return self._whole.all_longhorn_nodes_lack(need)

    def node_names(self) -> Sequence[str]:
        """Implement ClusterView."""
        return self._whole.node_names()

    def usable_nodes(self) -> int:
        """Implement ClusterView."""
        return self._whole.usable_nodes()

    def has_autoscaler(self) -> bool:
        """Implement ClusterView."""
        return self._whole.has_autoscaler()

    def snapshot(self) -> AnySnapshot:
        """Implement ClusterView."""
        return self._whole.snapshot()

    def volume_claims(self, volume: str) -> Sequence[NamespacedName] | NoObject:
        """Implement ClusterView."""
        return self._gap(refs.persistent_volume(volume)) or self._whole.volume_claims(volume)

    def virt_launchers(self, claim: NamespacedName) -> Sequence[Pod] | NoObject:
        """Implement ClusterView. A NoObject for a claim is the NoObject of the pods that use it."""
        return self._gap(ObjectRef(Kind.VIRT_LAUNCHER_POD, claim)) or self._whole.virt_launchers(claim)

    def users_of(self, volume: str, claim: NamespacedName) -> VolumeUsers:
        """Implement ClusterView."""
        return self._whole.users_of(volume, claim)

    def _gap(self, ref: Ref) -> NoObject | None:
        if ref in self._gaps and self._gaps[ref] is MISSING:
            self.missing[ref] = None
            return NoObject.UNAVAILABLE
        return self._gaps.get(ref)


class Asked(ViewWithGaps):
    """Such a view that keeps which objects core asked for, except those that are worth no read."""

    def __init__(self, whole: Cluster, gaps: Mapping[Ref, Gap]) -> None:
        super().__init__(whole, gaps)
        self.asked: set[Ref] = set()

    def without_reads(self) -> ViewWithGaps:
        """Implement ClusterView."""
        return ViewWithGaps(self._whole, self._gaps)

    def _gap(self, ref: Ref) -> NoObject | None:
        self.asked.add(ref)
        return super()._gap(ref)
