"""The virt-launcher pod of a VM and its objects of KubeVirt, as virt-controller writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulation.api_server import VMS, Object
from support.objects import builders
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance

if TYPE_CHECKING:
    from simulation.vm import VM


def machine_of(vm: VM) -> Object:
    """Return the VirtualMachine."""
    return virtual_machine(vm.name, _claims(vm), namespace=VMS, start_failures=vm.failed_starts)


def instance_of(vm: VM, node: str) -> Object:
    """Return the VirtualMachineInstance of a start of the VM, which runs on `node`, or on none yet."""
    return virtual_machine_instance(vm.name, _claims(vm), namespace=VMS, uid=vm.uid, node=node or None)


def virt_launcher_pod(vm: VM, **more: Object) -> Object:
    """Return the pod that virt-controller creates for a start of the VM."""
    resources = {"requests": {"cpu": "100m", "memory": f"{vm.memory_mib + 256}Mi"}}
    pod = builders.virt_launcher_pod(
        claims=_claims(vm),
        namespace=VMS,
        nodeSelector={"kubevirt.io/schedulable": "true", "kubernetes.io/arch": "amd64"},
        containers=[{"name": "compute", "resources": resources}],
        **more,
    )
    meta = pod["metadata"]
    meta["generateName"] = f"virt-launcher-{vm.name}-"
    meta["labels"]["kubevirt.io/created-by"] = vm.uid
    meta["ownerReferences"][0] |= {"name": vm.name, "uid": vm.uid}
    return pod


def _claims(vm: VM) -> list[str]:
    return [f"{volume}-claim" for volume in vm.volumes]
