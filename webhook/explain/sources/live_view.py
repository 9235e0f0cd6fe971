"""LiveView: what explain has read of a live cluster, as core asks for it; Listings: what of it was listed.

A server has caches behind its view; here lists stand in for them, read once. Invariant: what was listed is answered as
webhook.kube.cache.view.View answers it from a cache that is fresh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod, uses
from webhook.core.api.storage import claim_of
from webhook.core.scheduler.state.snapshot import NOT_COUNTED, ListedSnapshot, NotCounted, SnapshotUnavailable
from webhook.core.view import NoObject, Ref
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.cache.view import CallView, LiveRead


class Listings(Struct, frozen=True, kw_only=True):
    """What was listed.

    Attributes:
        nodes: every node by name; None where they were not listed.
        longhorn_nodes: whether there are any nodes.longhorn.io; None where they were not listed.
        volumes: Longhorn volume -> its PersistentVolume, where that is called otherwise.
        launchers: namespace -> its virt-launcher pods.
        snapshot: the nodes and every pod; or why they could not be listed, or that they were not asked for.
    """

    nodes: Sequence[str] | None = None
    longhorn_nodes: bool | None = None
    volumes: Mapping[str, str] = {}
    launchers: Mapping[str, Sequence[Pod]] = {}
    snapshot: ListedSnapshot | SnapshotUnavailable | NotCounted = NOT_COUNTED


class LiveView(CallView):
    """What was read so far, without any cache."""

    def __init__(self, store: ClusterCache, reads: Mapping[Ref, LiveRead], listings: Listings) -> None:
        super().__init__(store, 0.0, reads)
        self._listings = listings

    def has_longhorn_nodes(self) -> bool:
        """Whether any were listed; where they were not, as the Store says."""
        there = self._listings.longhorn_nodes
        return super().has_longhorn_nodes() if there is None else there

    def node_names(self) -> Sequence[str]:
        """The nodes, where they were listed."""
        return self._listings.nodes or ()

    def usable_nodes(self) -> int:
        """How many of them are Ready and not cordoned."""
        nodes = (self.node(name) for name in self.node_names())
        return sum(not isinstance(node, NoObject) and node.usable for node in nodes)

    def snapshot(self) -> ListedSnapshot | SnapshotUnavailable | NotCounted:
        """What the pods leave of the nodes, where they were listed."""
        return self._listings.snapshot

    def volume_claims(self, volume: str) -> Sequence[NamespacedName] | NoObject:
        """The claim of the PersistentVolume that is called as the volume, and of the one that Longhorn names."""
        named = super().volume_claims(volume)
        other = self._listings.volumes.get(volume)
        found = NoObject.NOT_FOUND if other is None else self.persistent_volume(other)
        claim = None if isinstance(found, NoObject) else claim_of(found, volume)
        if claim is None:
            return named
        return [claim] if isinstance(named, NoObject) else [*named, claim]

    def virt_launchers(self, claim: NamespacedName) -> Sequence[Pod] | NoObject:
        """The pods that use this claim, where those of its namespace were listed."""
        pods = self._listings.launchers.get(claim.namespace)
        return NoObject.UNAVAILABLE if pods is None else [pod for pod in pods if uses(pod, claim.name)]
