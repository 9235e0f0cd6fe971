"""ListedVirtualMachines: the VirtualMachines and VirtualMachineInstances that were listed, by name and by claim."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from webhook.core.api.meta import NamespacedName
from webhook.core.api.virtual_machine import VirtualMachine, VirtualMachineInstance, VMClaim
from webhook.core.view import Kind, NoObject, ObjectRef, ObjectT

KINDS_OF_VMS: Final = (Kind.VIRTUAL_MACHINE, Kind.VIRTUAL_MACHINE_INSTANCE)


class ListedVirtualMachines:
    """What a ClusterView answers about VMs. A kind that is None could not be listed, and is UNAVAILABLE."""

    def __init__(
        self,
        vms: Mapping[NamespacedName, VirtualMachine] | None,
        vmis: Mapping[NamespacedName, VirtualMachineInstance] | None,
    ) -> None:
        self._vms, self._vmis = vms, vmis
        self._by_claim: dict[NamespacedName, set[str]] = defaultdict(set)
        for key, vm in (vms or {}).items():
            self._add(key.namespace, key.name, vm.claims)
        for key, vmi in (vmis or {}).items():
            self._add(key.namespace, vmi.virtual_machine or key.name, vmi.claims)

    def _add(self, namespace: str, vm: str, claims: Iterable[VMClaim]) -> None:
        for claim in claims:
            self._by_claim[NamespacedName(namespace, claim.name)].add(vm)

    def get(self, ref: ObjectRef[ObjectT]) -> ObjectT | NoObject:
        """Return the VirtualMachine or VirtualMachineInstance."""
        listed: Mapping[NamespacedName, Any] | None = self._vms if ref.kind is Kind.VIRTUAL_MACHINE else self._vmis
        found: ObjectT | NoObject = NoObject.UNAVAILABLE if listed is None else listed.get(ref.key, NoObject.NOT_FOUND)
        return found

    def virtual_machines_of(self, claim: NamespacedName) -> Sequence[str] | NoObject:
        """Return the names of the VMs that name this claim."""
        if self._vms is None and self._vmis is None:
            return NoObject.UNAVAILABLE
        return sorted(self._by_claim.get(claim, ()))
