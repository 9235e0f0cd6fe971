"""StoredView: what the API server has at this moment, as `webhook.core.observe.vm_status` asks for it."""

from __future__ import annotations

from collections.abc import Mapping
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
from webhook.core.view import Kind, NoObject, ObjectRef, VolumeUsers

_T = TypeVar("_T")
_STORED: Final[Mapping[Kind, tuple[Kind, str, type[Any]]]] = {  # where the API server has each, and its type
    Kind.PERSISTENT_VOLUME_CLAIM: (Kind.PERSISTENT_VOLUME_CLAIM, "", PersistentVolumeClaim),
    Kind.PERSISTENT_VOLUME: (Kind.PERSISTENT_VOLUME, "", PersistentVolume),
    Kind.SHARE_MANAGER: (Kind.SHARE_MANAGER, LONGHORN, ShareManager),
    Kind.SHARE_MANAGER_POD: (POD, LONGHORN, Pod),
    Kind.NODE: (Kind.NODE, "", Node),
    Kind.VIRTUAL_MACHINE: (Kind.VIRTUAL_MACHINE, "", VirtualMachine),
    Kind.VIRTUAL_MACHINE_INSTANCE: (Kind.VIRTUAL_MACHINE_INSTANCE, "", VirtualMachineInstance),
}
_POLICY: Final = Policy()


class StoredView:
    """The methods of a ClusterView that lead from a claim to its share-manager, and to a node."""

    missing: tuple[()] = ()

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._made: dict[tuple[Kind, str], tuple[str, Any]] = {}  # with the resourceVersion

    def row(self, uid: str, at: str) -> VMStatus | None:
        """Return the row of `status` at this time for the VirtualMachineInstance of this uid."""
        keys = self._api.pods_of_vmi.get(uid, {})
        pods = [pod for key in keys if not isinstance(pod := self._find(POD, key, Pod), NoObject)]
        return vm_status_of(pods, self, _POLICY, at)  # type: ignore[arg-type]  # these methods are enough

    def get(self, ref: ObjectRef[_T]) -> _T | NoObject:
        """Return the object."""
        if ref.kind not in _STORED:
            return NoObject.UNAVAILABLE
        kind, namespace, type_ = _STORED[ref.kind]
        key = "/".join(filter(None, (namespace or ref.key.namespace, ref.name)))
        found: _T | NoObject = self._find(kind, key, type_)
        return found

    def users_of(self, volume: str, claim: NamespacedName) -> VolumeUsers:
        """Return the VMs that name the claim. In this cluster no other pod has a claim."""
        vms = (self._find(Kind.VIRTUAL_MACHINE, key, VirtualMachine) for key in self._api.objects[Kind.VIRTUAL_MACHINE])
        return VolumeUsers([volume], [vm.metadata.name for vm in vms if claim.name in {one.name for one in vm.claims}])

    def _find(self, kind: Kind, key: str, type_: type[Any]) -> Any:
        stored = self._api.objects[kind].get(key)
        if stored is None:
            return NoObject.NOT_FOUND
        version = stored["metadata"]["resourceVersion"]
        made = self._made.get((kind, key))
        if made is None or made[0] != version:
            made = self._made[kind, key] = version, convert(stored, type_)
        return made[1]
