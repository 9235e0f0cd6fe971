"""View: one call's ClusterView."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from webhook.core.api.longhorn import (
    ASSIGNED_STATES,
    SHARE_MANAGER_POD_PREFIX,
    LonghornNode,
    ShareManager,
    ShareManagerStatus,
    VolumeAttachment,
)
from webhook.core.api.meta import NamespacedName
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume, PersistentVolumeClaim, claim_of
from webhook.core.scheduler.state.snapshot import Snapshot
from webhook.core.view import Kind, NoObject, ObjectRef, Ref, VirtLaunchersOnNode
from webhook.kube.informer.index import Indexer
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.informer.resource import namespaced_key
from webhook.kube.records.nodes import Nodes
from webhook.kube.records.virt_launchers import build
from webhook.kube.scheduler_cache.assumed_pods import Pods

if TYPE_CHECKING:
    from webhook.kube.cache.cluster_cache import ClusterCache


_UNKNOWN: Final = object()


class LiveRead(Struct, frozen=True):
    """What asking the API server for one object came to."""

    value: Any
    problem: str = ""
    staleness: str = ""


class CallView:
    """One call's ClusterView (webhook.core.view): the caches as they are, and over them what was read for this call."""

    def __init__(self, store: ClusterCache, now: float, reads: Mapping[Ref, LiveRead]) -> None:
        self._store = store
        self._now = now
        self._fresh: dict[Kind, bool] = {}
        self._crowd: Snapshot | str | None = None
        self.reads = reads

    def read_error(self, ref: Ref) -> str:
        """Why it could not be read."""
        return self.reads[ref].problem

    def staleness(self) -> str | None:
        """The first answer that could not be confirmed."""
        return next((read.staleness for read in self.reads.values() if read.staleness), None)

    def persistent_volume_claim(self, key: NamespacedName) -> PersistentVolumeClaim | NoObject:
        """The claim of that namespace and name."""
        found: PersistentVolumeClaim | NoObject = self._find(Kind.PERSISTENT_VOLUME_CLAIM, key)
        return found

    def persistent_volume(self, name: str) -> PersistentVolume | NoObject:
        """The volume of that name."""
        found: PersistentVolume | NoObject = self._find(Kind.PERSISTENT_VOLUME, NamespacedName("", name))
        return found

    def share_manager(self, volume: str) -> ShareManager | NoObject:
        """The ShareManager of a Longhorn volume."""
        found: ShareManager | NoObject = self._find(Kind.SHARE_MANAGER, NamespacedName("", volume))
        return found

    def share_manager_pod(self, volume: str) -> Pod | NoObject:
        """The pod share-manager-<volume> in Longhorn's namespace."""
        found: Pod | NoObject = self._find(
            Kind.SHARE_MANAGER_POD, NamespacedName("", SHARE_MANAGER_POD_PREFIX + volume)
        )
        return NoObject.NOT_FOUND if found is NoObject.NOT_CACHED and self._has_no_pod(volume) else found

    def node(self, name: str) -> Node | NoObject:
        """The Kubernetes node of that name."""
        found: Node | NoObject = self._find(Kind.NODE, NamespacedName("", name))
        return found

    def has_longhorn_nodes(self) -> bool:
        """Whether the cluster shows any nodes.longhorn.io, or ever has, or can't be said to have none."""
        return self._store.may_have_longhorn_nodes(self._now)

    def longhorn_node(self, name: str) -> LonghornNode | NoObject:
        """Longhorn's object for the Kubernetes node of that name."""
        found: LonghornNode | NoObject = self._find(Kind.LONGHORN_NODE, NamespacedName("", name))
        return found

    def node_names(self) -> Sequence[str]:
        """The Kubernetes nodes; none while their cache is not fresh."""
        nodes = self._store.caches[Kind.NODE]
        return nodes.index.all if nodes.fresh(self._now) and isinstance(nodes.index, Nodes) else ()

    def usable_nodes(self) -> int:
        """How many of them are Ready and not cordoned."""
        nodes = self._store.caches[Kind.NODE]
        return nodes.index.usable if nodes.fresh(self._now) and isinstance(nodes.index, Nodes) else 0

    def snapshot(self) -> Snapshot | str | None:
        """What the pods leave of the nodes; why that is not known; None where they are not all watched."""
        if self._crowd is None:
            self._crowd = self._store.snapshot(self._now)
        return self._crowd

    def volume_claims(self, volume: str) -> Sequence[NamespacedName] | NoObject:
        """The claims of the PersistentVolumes that have this CSI volume handle."""
        named = self._find(Kind.PERSISTENT_VOLUME, NamespacedName("", volume))
        cache = self._store.caches[Kind.PERSISTENT_VOLUME]
        others = cache.index.of(volume) if isinstance(cache.index, Indexer) else ()
        claims = [claim for name in others if (claim := claim_of(_held(cache, NamespacedName("", name)), volume))]
        if named is NoObject.NOT_CACHED and not cache.fresh(self._now):
            return named
        if isinstance(named, NoObject):
            return claims or named
        claim = claim_of(named, volume)
        return [claim, *claims] if claim else claims

    def virt_launchers(self, claim: NamespacedName) -> Sequence[Pod] | NoObject:
        """Every virt-launcher pod that uses this claim; UNAVAILABLE while their cache is not fresh."""
        cache = self._store.caches.get(Kind.VIRT_LAUNCHER_POD)
        if not (cache and cache.fresh(self._now) and isinstance(cache.index, Pods)):
            return NoObject.UNAVAILABLE
        known = cache.index.launchers
        return [build(key, known[key]) for key in cache.index.by_claim.of(namespaced_key(*claim))]

    def virt_launchers_on(self, namespace: str, node: str) -> Sequence[Pod] | NoObject:
        """The virt-launcher pods of a namespace that are on a node, as they were read for this view."""
        read = self.reads.get(VirtLaunchersOnNode(namespace, node))
        found: Sequence[Pod] | NoObject = NoObject.NOT_CACHED if read is None else read.value
        return found

    def volume_attachment(self, volume: str) -> VolumeAttachment | NoObject:
        """Longhorn's VolumeAttachment of a volume, as it was read for this view."""
        found: VolumeAttachment | NoObject = self._find(Kind.VOLUME_ATTACHMENT, NamespacedName("", volume))
        return found

    def _find(self, kind: Kind, key: NamespacedName) -> Any:
        if self.reads:
            read = self.reads.get(ObjectRef(kind, key))
            if read is not None:
                return read.value
        cache = self._store.caches.get(kind)
        if cache is None:
            return NoObject.NOT_CACHED
        counts = self._store.lookups[kind]
        fresh = self._fresh.get(kind)
        if fresh is None:
            fresh = self._fresh[kind] = cache.fresh(self._now)
        if not fresh:
            counts.stale += 1
            return NoObject.NOT_CACHED
        held = _held(cache, key)
        if held is None:
            counts.miss += 1
            return NoObject.NOT_CACHED
        counts.hit += 1
        return held

    def _has_no_pod(self, volume: str) -> bool:
        """Whether two fresh caches agree that this share-manager has no pod."""
        pods, managers = self._store.caches[Kind.SHARE_MANAGER_POD], self._store.caches[Kind.SHARE_MANAGER]
        if not (pods.fresh(self._now) and managers.fresh(self._now)):
            return False
        status: ShareManagerStatus | None = managers.objects.get(volume)
        return status is not None and (status.state or "absent") not in ASSIGNED_STATES


def _held(cache: ListWatch, key: NamespacedName) -> Any | None:
    """Core's object as the cache has it, None where it has none. A record itself may be None: it had no status."""
    cache_key = cache.resource.key(key)
    record = cache.objects.get(cache_key, _UNKNOWN)
    return None if record is _UNKNOWN else cache.resource.build(cache_key, record)
