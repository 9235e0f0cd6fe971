"""Views of a replica that answer wrongly: planted faults."""

from __future__ import annotations

from msgspec.structs import replace

from webhook.core.api.longhorn import ShareManager
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.scheduler.state.snapshot import NOT_COUNTED, AnySnapshot
from webhook.core.view import NoObject
from webhook.kube.cache.view import CallView


class OwnerBelieved(CallView):
    """The share-manager's pod is never seen, so that the ownerID decides."""

    def share_manager_pod(self, _: str) -> Pod | NoObject:
        """Answer wrongly."""
        return NoObject.NOT_FOUND


class StateIgnored(CallView):
    """Every share-manager seems to run."""

    def share_manager(self, volume: str) -> ShareManager | NoObject:
        """Answer wrongly."""
        found = super().share_manager(volume)
        if isinstance(found, NoObject) or found.status is None:
            return found
        return replace(found, status=replace(found.status, state="running"))


class CordonIgnored(CallView):
    """No node seems to be cordoned or tainted."""

    def node(self, name: str) -> Node | NoObject:
        """Answer wrongly."""
        found = super().node(name)
        return found if isinstance(found, NoObject) else replace(found, spec=None)


class PodsUncounted(CallView):
    """Other pods are not counted."""

    def snapshot(self) -> AnySnapshot:
        """Answer wrongly."""
        return NOT_COUNTED


class PodsOfAnotherVolume(CallView):
    """The share-manager pod of the next first disk is taken for the one of this volume."""

    def share_manager_pod(self, volume: str) -> Pod | NoObject:
        """Answer wrongly."""
        number = int(volume.rpartition("-")[2])
        return super().share_manager_pod(f"disk-{(number + 1) % 10:02}")
