"""Views of a replica that answer wrongly: planted faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from webhook.core import refs
from webhook.core.api.longhorn import ShareManager
from webhook.core.api.node import Node
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.scheduler.state.snapshot import AnySnapshot, SnapshotUnavailable
from webhook.core.view import Kind, NoObject, ObjectRef
from webhook.kube.cache.view import CallView

Get = Callable[[ObjectRef[Any]], Any]


def _view(get_wrongly: Callable[[Get, ObjectRef[Any]], Any]) -> type[CallView]:
    """Return a view whose answers are wrong."""

    class Wrong(CallView):
        def get(self, ref: ObjectRef[Any]) -> Any:
            return get_wrongly(super().get, ref)

    return Wrong


def _runs(get: Get, ref: ObjectRef[Any]) -> Any:
    found = get(ref)
    if not isinstance(found, ShareManager) or found.status is None:
        return found
    return replace(found, status=replace(found.status, state="running"))


def _uncordoned(get: Get, ref: ObjectRef[Any]) -> Any:
    found = get(ref)
    return replace(found, spec=None) if isinstance(found, Node) else found


def _of_the_next_volume(get: Get, ref: ObjectRef[Any]) -> Any:
    if ref.kind is not Kind.SHARE_MANAGER_POD:
        return get(ref)
    number = int(ref.name.rpartition("-")[2])
    return get(refs.share_manager_pod(f"disk-{(number + 1) % 10:02}"))


OWNER_BELIEVED = _view(lambda get, ref: NoObject.NOT_FOUND if ref.kind is Kind.SHARE_MANAGER_POD else get(ref))
STATE_IGNORED = _view(_runs)
CORDON_IGNORED = _view(_uncordoned)
POD_OF_ANOTHER_VOLUME = _view(_of_the_next_volume)


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
