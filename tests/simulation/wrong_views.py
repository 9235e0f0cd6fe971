"""Views of a replica that answer wrongly: planted faults."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from webhook.core import refs
from webhook.core.api.longhorn import ShareManager
from webhook.core.api.node import Node
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.scheduler.state.snapshot import AnySnapshot, SnapshotUnavailable
from webhook.core.view import Kind, NoObject, ObjectRef, ObjectT
from webhook.kube.cache.view import CallView


class OwnerBelieved(CallView):
    """The share-manager's pod is never seen, so that the ownerID decides."""

    def get(self, ref: ObjectRef[ObjectT]) -> ObjectT | NoObject:
        """Answer wrongly."""
        return NoObject.NOT_FOUND if ref.kind is Kind.SHARE_MANAGER_POD else super().get(ref)


class StateIgnored(CallView):
    """Every share-manager seems to run."""

    def get(self, ref: ObjectRef[ObjectT]) -> Any:
        """Answer wrongly."""
        found = super().get(ref)
        if not isinstance(found, ShareManager) or found.status is None:
            return found
        return replace(found, status=replace(found.status, state="running"))


class CordonIgnored(CallView):
    """No node seems to be cordoned or tainted."""

    def get(self, ref: ObjectRef[ObjectT]) -> Any:
        """Answer wrongly."""
        found = super().get(ref)
        return replace(found, spec=None) if isinstance(found, Node) else found


class PodsUncounted(CallView):
    """Other pods are not counted."""

    def snapshot(self) -> AnySnapshot:
        """Answer wrongly."""
        found = super().snapshot()
        if isinstance(found, SnapshotUnavailable):
            return found
        infos = {name: found.node_info(name) for name in self.node_names()}
        nodes = {name: info.node for name, info in infos.items()}
        return ListedSnapshot((), nodes, {name: info.csi_drivers for name, info in infos.items()})


class PodsOfAnotherVolume(CallView):
    """The share-manager pod of the next first disk is taken for the one of this volume."""

    def get(self, ref: ObjectRef[ObjectT]) -> Any:
        """Answer wrongly."""
        if ref.kind is not Kind.SHARE_MANAGER_POD:
            return super().get(ref)
        number = int(ref.name.rpartition("-")[2])
        return super().get(refs.share_manager_pod(f"disk-{(number + 1) % 10:02}"))
