"""The virt-launcher pod of a VM and its VirtualMachineInstance, as virt-controller creates them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulation.api_server import VMS, Object
from support.objects import builders
from support.objects.owners import owner_of

if TYPE_CHECKING:
    from simulation.virt_controller import VM


def instance_of(vm: VM) -> Object:
    """Return the VirtualMachineInstance of a start of the VM."""
    (instance,) = owner_of(virt_launcher_pod(vm), VMS)
    return instance


def virt_launcher_pod(vm: VM, **more: Object) -> Object:
    """Return the pod that virt-controller creates for a start of the VM."""
    resources = {"requests": {"cpu": "100m", "memory": f"{vm.memory_mib + 256}Mi"}}
    pod = builders.virt_launcher_pod(
        claims=[f"{volume}-claim" for volume in vm.volumes],
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
