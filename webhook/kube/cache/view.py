"""CallView: the ClusterView (webhook.core.view) of one admission."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from webhook.core import refs
from webhook.core.api.longhorn import ASSIGNED_STATES, SHARE_MANAGER_POD_PREFIX, Need, ShareManager
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume, claim_of
from webhook.core.scheduler.cache import AnySnapshot
from webhook.core.view import KINDS_OF_VMS, USERS_MAX, Kind, NoObject, ObjectRef, ObjectT, Ref, VolumeUsers
from webhook.kube.cache.caches import Caches
from webhook.kube.informer.store import namespaced_key
from webhook.kube.records.objects import vm_of
from webhook.kube.records.pods import unread_claims
from webhook.kube.scheduler_cache.assumed_pods import PodIndex

_OF_USERS: Final = (*KINDS_OF_VMS, Kind.PERSISTENT_VOLUME, Kind.VIRT_LAUNCHER_POD)


class LiveRead(Struct, frozen=True):
    """The result of a live read.

    Attributes:
        value: core's object, or why there is none.
        problem: why the object could not be read; empty if it could.
        staleness: why `value` may be out of date; empty if it is not.
    """

    value: Any
    problem: str = ""
    staleness: str = ""


class CallView:
    """The live reads of this admission, and the caches for all other objects."""

    def __init__(self, caches: Caches, now: float, reads: Mapping[Ref, LiveRead]) -> None:
        self._caches = caches
        self._now = now
        self._fresh: dict[Kind, bool] = {}
        self._snapshot: AnySnapshot | None = None
        self.reads = reads
        self.missing: dict[Ref, None] = {}

    @property
    def longhorn_namespace(self) -> str:
        """Return the namespace in which Longhorn's kinds are watched."""
        return self._caches[Kind.SHARE_MANAGER].resource.namespace

    def get(self, ref: ObjectRef[ObjectT]) -> ObjectT | NoObject:
        """Return this object, as it was read live or as a fresh cache has it. What neither has is `missing`."""
        known: ObjectT | NoObject | None = self._known(ref)
        if known is not None:
            return known
        return self._missing(ref)

    def why_no_owner(self, ref: Ref, uid: str) -> NoObject | None:
        """Return None if a live read or a fresh cache has this object with this uid.

        A VM that starts again has an instance with the same name and another uid, which the cache may not have yet.
        """
        read = self.reads.get(ref)
        found = self._cached(ref) if read is None else read.value
        if not isinstance(found, NoObject | None) and found.metadata.uid == uid:
            return None
        if read is None:
            return self._missing(ref)
        return NoObject.UNAVAILABLE if read.problem or read.staleness else NoObject.NOT_FOUND

    def _missing(self, ref: Ref) -> NoObject:
        self.missing[ref] = None
        return NoObject.UNAVAILABLE

    def without_reads(self) -> CallView:
        """Return this view with a `missing` of its own."""
        view = copy(self)
        view.missing = {}
        return view

    def read_error(self, ref: Ref) -> str:
        """Return why this object could not be read, or is not."""
        read, cache = self.reads.get(ref), self._caches.get(ref.kind)
        if read is not None:
            return read.problem or read.staleness
        return cache.problem if cache else "it is never listed"

    def staleness(self) -> str | None:
        """Return the staleness of the first object that has one; None if there is none."""
        return next((read.staleness for read in self.reads.values() if read.staleness), None)

    def has_longhorn_nodes(self) -> bool:
        """Return whether the cluster has nodes.longhorn.io, had some before, or may have some."""
        return self._caches.may_have_longhorn_nodes(self._now)

    def all_longhorn_nodes_lack(self, need: Need) -> bool:
        """Return whether each nodes.longhorn.io says so; False if their cache is not up to date."""
        kind = Kind.LONGHORN_NODE
        return self._follows(kind) and len(self._caches.keys_of(kind, need)) == len(self._caches[kind].objects)

    def node_names(self) -> Sequence[str]:
        """Return the names of all Kubernetes nodes; none if their cache is not fresh."""
        return self._caches.nodes.keys if self._is_fresh(Kind.NODE) else ()

    def usable_nodes(self) -> int:
        """Return how many nodes are Ready and not cordoned; 0 if their cache is not fresh."""
        return self._caches.nodes.usable if self._is_fresh(Kind.NODE) else 0

    def has_autoscaler(self) -> bool:
        """Return whether an autoscaler is seen, or its cache is not fresh. No other answer depends on that cache."""
        if self._caches.nodes.from_karpenter:
            return True
        kind = Kind.CLUSTER_AUTOSCALER_STATUS
        return not self._is_fresh(kind) or bool(self._caches[kind].objects)

    def snapshot(self) -> AnySnapshot:
        """Return the cached nodes and pods; SnapshotUnavailable if a cache is not up to date."""
        if self._snapshot is None:
            self._snapshot = self._caches.snapshot(self._now)
        return self._snapshot

    def volume_claims(self, volume: str) -> Sequence[NamespacedName] | NoObject:
        """Return the claims of the PersistentVolumes that have this CSI volume handle."""
        ref = refs.persistent_volume(volume)
        named = self._known(ref)
        cache, others = self._caches[Kind.PERSISTENT_VOLUME], self._caches.keys_of(Kind.PERSISTENT_VOLUME, volume)
        claims = [claim for name in others if (claim := claim_of(cache.get(NamespacedName("", name)), volume))]
        if named is None:
            return claims if claims and self._is_fresh(Kind.PERSISTENT_VOLUME) else self._missing(ref)
        if isinstance(named, NoObject):
            return claims or named
        claim = claim_of(named, volume)
        return [claim, *claims] if claim else claims

    def virt_launchers(self, claim: NamespacedName) -> Sequence[Pod] | NoObject:
        """Return the virt-launcher pods that use this claim; UNAVAILABLE if their cache is not fresh."""
        if not self._is_fresh(Kind.VIRT_LAUNCHER_POD):
            return NoObject.UNAVAILABLE
        known = self._caches.pods.virt_launchers
        keys = self._caches.pods.by_claim.index_keys(namespaced_key(*claim))
        return [known[key] for key in keys if key in known]

    def users_of(self, volume: str, claim: NamespacedName) -> VolumeUsers:
        """Return who uses this volume by way of the claim, as the caches have it, up to date or not."""
        vms, claim_key, pods = set[str](), namespaced_key(*claim), self._caches.pods
        for kind in KINDS_OF_VMS:
            objects, keys = self._caches[kind].objects, islice(self._caches.keys_of(kind, claim_key), USERS_MAX)
            vms.update(vm_of(objects[key]) for key in keys if key in objects)  # the first list may be in progress
        return VolumeUsers(
            self._volumes(volume),
            sorted(vms)[:USERS_MAX],
            pods.users_of(claim_key, USERS_MAX),
            next((self._why_not_known(kind) for kind in _OF_USERS if not self._follows(kind)), _unread(pods, claim)),
        )

    def _volumes(self, volume: str) -> list[str]:
        """Return the names of the PersistentVolumes in the cache that have this CSI volume handle."""
        names = list(islice(self._caches.keys_of(Kind.PERSISTENT_VOLUME, volume), USERS_MAX))
        named: PersistentVolume | None = self._caches[Kind.PERSISTENT_VOLUME].objects.get(volume)
        csi = named.longhorn_csi if named else None
        return [volume, *names] if csi and csi.volume_handle == volume else names

    def _why_not_known(self, kind: Kind) -> str:
        cache = self._caches[kind]
        return f"{cache.resource.title}: {cache.problem or 'not up to date'}"

    def _known(self, ref: Ref) -> Any:
        """Return the answer of `get`; None if the object must be read first."""
        if self.reads:
            read = self.reads.get(ref)
            if read is not None:
                return read.value
        kind = ref.kind
        if kind in KINDS_OF_VMS and not self._follows(kind):
            return NoObject.UNAVAILABLE  # objects of a kind that no cache follows are not read live
        cached = self._cached(ref)
        if cached is None and kind is Kind.SHARE_MANAGER_POD and self._has_no_pod(ref.name):
            return NoObject.NOT_FOUND
        return cached

    def _cached(self, ref: Ref) -> Any:
        """Return what the cache has of this object; None if it has nothing, or is not fresh."""
        kind, key = ref
        cache = self._caches.get(kind)
        if cache is None:
            return None
        counts = self._caches.lookups[kind]
        if not self._is_fresh(kind):
            counts.stale += 1
            return None
        stored = cache.get(key)
        counts.miss += stored is None
        counts.hit += stored is not None
        return stored

    def _is_fresh(self, kind: Kind) -> bool:
        """Return whether a fresh cache has this kind: the same for the whole call."""
        fresh = self._fresh.get(kind)
        if fresh is None:
            cache = self._caches.get(kind)
            fresh = self._fresh[kind] = cache is not None and cache.fresh(self._now)
        return fresh

    def _follows(self, kind: Kind) -> bool:
        """Return whether a fresh cache has this kind, and the API server has the kind at all."""
        return self._is_fresh(kind) and self._caches[kind].installed

    def _has_no_pod(self, pod: str) -> bool:
        """Return whether two fresh caches show that there is no share-manager pod of this name."""
        if not (self._is_fresh(Kind.SHARE_MANAGER_POD) and self._is_fresh(Kind.SHARE_MANAGER)):
            return False
        share_managers = self._caches[Kind.SHARE_MANAGER].objects
        found: ShareManager | None = share_managers.get(pod.removeprefix(SHARE_MANAGER_POD_PREFIX))
        status = found.status if found else None
        return status is not None and (status.state or "absent") not in ASSIGNED_STATES


def _unread(pods: PodIndex, claim: NamespacedName) -> str:
    """Return which pod of the claim's namespace can have any claim, because its volumes are not read; empty if none."""
    return "".join(
        f"the volumes of pod {name} are too long to be read"
        for name in pods.users_of(unread_claims(claim.namespace), 1)
    )
