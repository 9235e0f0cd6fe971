"""StoredView: what the API server has at this moment, as `webhook.core.observe.vm_status` asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from msgspec import convert
from simulation.api_server import LONGHORN, POD, ApiServer

from webhook.core.api.longhorn import ShareManager
from webhook.core.api.meta import NamespacedName
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume, PersistentVolumeClaim
from webhook.core.api.virtual_machine import VirtualMachine, VirtualMachineInstance
from webhook.core.observe.vm_status import VMStatus, vm_status_of
from webhook.core.opt_in import Policy
from webhook.core.view import Kind, NoObject

_T = TypeVar("_T")
_POLICY: Final = Policy()


class StoredView:
    """The methods of a ClusterView that lead from a claim to its share-manager, and to a node. No VM is listed."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._made: dict[tuple[Kind, str], tuple[str, Any]] = {}  # with the resourceVersion

    def row(self, uid: str) -> VMStatus | None:
        """Return the row of `status` for the VirtualMachineInstance of this uid."""
        keys = self._api.pods_of_vmi.get(uid, {})
        pods = [pod for key in keys if not isinstance(pod := self._find(POD, key, Pod), NoObject)]
        return vm_status_of(pods, self, _POLICY)  # type: ignore[arg-type]  # these methods are enough

    def persistent_volume_claim(self, key: NamespacedName) -> PersistentVolumeClaim | NoObject:
        """Return the claim."""
        return self._find(Kind.PERSISTENT_VOLUME_CLAIM, "/".join(key), PersistentVolumeClaim)

    def persistent_volume(self, name: str) -> PersistentVolume | NoObject:
        """Return the PersistentVolume."""
        return self._find(Kind.PERSISTENT_VOLUME, name, PersistentVolume)

    def share_manager(self, volume: str) -> ShareManager | NoObject:
        """Return the ShareManager."""
        return self._find(Kind.SHARE_MANAGER, f"{LONGHORN}/{volume}", ShareManager)

    def share_manager_pod(self, volume: str) -> Pod | NoObject:
        """Return the share-manager's pod."""
        return self._find(POD, f"{LONGHORN}/share-manager-{volume}", Pod)

    def node(self, name: str) -> Node | NoObject:
        """Return the node."""
        return self._find(Kind.NODE, name, Node)

    def virtual_machine(self, _: NamespacedName) -> VirtualMachine | NoObject:
        """Return that VMs are not listed."""
        return NoObject.UNAVAILABLE

    def virtual_machine_instance(self, _: NamespacedName) -> VirtualMachineInstance | NoObject:
        """Return that VirtualMachineInstances are not listed."""
        return NoObject.UNAVAILABLE

    def virtual_machines_of(self, _: NamespacedName) -> Sequence[str] | NoObject:
        """Return that VMs are not listed."""
        return NoObject.UNAVAILABLE

    def _find(self, kind: Kind, key: str, type_: type[_T]) -> _T | NoObject:
        stored = self._api.objects[kind].get(key)
        if stored is None:
            return NoObject.NOT_FOUND
        version = stored["metadata"]["resourceVersion"]
        made = self._made.get((kind, key))
        if made is None or made[0] != version:
            made = self._made[kind, key] = version, convert(stored, type_)
        found: _T = made[1]
        return found
