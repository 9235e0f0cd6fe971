"""LiveView: the objects that explain has read of a live cluster; Listings: the part of them that it has listed.

The webhook has caches behind its view. Here lists that were read once take their place. Invariant: LiveView answers
from a list as webhook.kube.cache.view.CallView answers from a cache that is up to date.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from webhook.core import refs
from webhook.core.api.meta import ConfigMap, NamespacedName
from webhook.core.api.pod import Pod, uses
from webhook.core.api.storage import claim_of
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.scheduler.state.snapshot import NOT_COUNTED, NotCounted, SnapshotUnavailable
from webhook.core.view import NoObject, Ref
from webhook.core.virtual_machines import KINDS_OF_VMS, ListedVirtualMachines
from webhook.explain.sources.cluster_reader import Listed
from webhook.kube.cache.caches import Caches
from webhook.kube.cache.view import CallView, LiveRead


class Listings(Struct, frozen=True, kw_only=True):
    """The lists that were read.

    Attributes:
        nodes: the names of all nodes; None if they were not listed.
        longhorn_nodes: whether any nodes.longhorn.io exist; None if they were not listed.
        volumes: Longhorn volume -> its PersistentVolume, if that has another name.
        virt_launchers: namespace -> its virt-launcher pods.
        autoscalers: the ConfigMaps in which a cluster-autoscaler writes its status; None if they were not listed.
        vms: namespace -> its VMs.
        snapshot: all pods and nodes; SnapshotUnavailable if they could not be listed, NotCounted if nothing asked.
    """

    nodes: Sequence[str] | None = None
    longhorn_nodes: bool | None = None
    volumes: Mapping[str, str] = {}
    virt_launchers: Mapping[str, Sequence[Pod]] = {}
    autoscalers: Listed[ConfigMap] | None = None
    vms: Mapping[str, ListedVirtualMachines] = {}
    snapshot: ListedSnapshot | SnapshotUnavailable | NotCounted = NOT_COUNTED


class LiveView(CallView):
    """The objects that were read so far. No cache is behind this view."""

    def __init__(self, caches: Caches, reads: Mapping[Ref, LiveRead], listings: Listings) -> None:
        super().__init__(caches, 0.0, reads)
        self._listings = listings

    def _known(self, ref: Ref) -> Any:
        if ref.kind in KINDS_OF_VMS:
            return self._vms(ref.key.namespace).get(ref)
        return super()._known(ref)

    def has_longhorn_nodes(self) -> bool:
        """Return whether any nodes.longhorn.io were listed; the answer of the cache if nothing was listed."""
        listed = self._listings.longhorn_nodes
        return super().has_longhorn_nodes() if listed is None else listed

    def node_names(self) -> Sequence[str]:
        """Return the names of the listed nodes."""
        return self._listings.nodes or ()

    def usable_nodes(self) -> int:
        """Count the listed nodes that are Ready and not cordoned."""
        nodes = (self.get(refs.node(name)) for name in self.node_names())
        return sum(not isinstance(node, NoObject) and node.usable for node in nodes)

    def has_autoscaler(self) -> bool:
        """Return whether an autoscaler is seen, or the list that would show cluster-autoscaler was not read."""
        nodes = (self.get(refs.node(name)) for name in self.node_names())
        if any(not isinstance(node, NoObject) and node.from_karpenter for node in nodes):
            return True
        listed = self._listings.autoscalers
        return listed is None or bool(listed.items or listed.problem)

    def snapshot(self) -> ListedSnapshot | SnapshotUnavailable | NotCounted:
        """Return the snapshot of the listed pods and nodes."""
        return self._listings.snapshot

    def volume_claims(self, volume: str) -> Sequence[NamespacedName] | NoObject:
        """Return the claims of the PersistentVolume named as the volume, and of the one that Longhorn names."""
        named = super().volume_claims(volume)
        other = self._listings.volumes.get(volume)
        found = NoObject.NOT_FOUND if other is None else self.get(refs.persistent_volume(other))
        claim = None if isinstance(found, NoObject) else claim_of(found, volume)
        if claim is None:
            return named
        return [claim] if isinstance(named, NoObject) else [*named, claim]

    def virt_launchers(self, claim: NamespacedName) -> Sequence[Pod] | NoObject:
        """Return the virt-launcher pods that use this claim; UNAVAILABLE if those of its namespace were not listed."""
        pods = self._listings.virt_launchers.get(claim.namespace)
        return NoObject.UNAVAILABLE if pods is None else [pod for pod in pods if uses(pod, claim.name)]

    def virtual_machines_of(self, claim: NamespacedName) -> Sequence[str] | NoObject:
        """Return the names of the listed VMs that name this claim."""
        return self._vms(claim.namespace).virtual_machines_of(claim)

    def _vms(self, namespace: str) -> ListedVirtualMachines:
        return self._listings.vms.get(namespace) or ListedVirtualMachines(None, None)
