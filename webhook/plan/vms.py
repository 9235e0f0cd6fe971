"""What the objects of a cluster tell of one VM."""

from __future__ import annotations

from msgspec.structs import replace

from webhook.core.api.meta import NamespacedName
from webhook.core.api.virtual_machine import VMIStatus
from webhook.core.live_migration.migration import LABEL_REUNITE
from webhook.core.live_migration.vm import VM, Placement
from webhook.core.observe.vm_status import VMStatus
from webhook.objects.api.kubevirt import VirtualMachine, VMISpec
from webhook.objects.kinds import POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
from webhook.objects.manifests import Manifests
from webhook.objects.vm_rows import owner_of_vm


def vm_from(cluster: Manifests, row: VMStatus) -> VM:
    """Return the VM of a row. What its VirtualMachineInstance would tell is as by default if that was not read."""
    objects = cluster.objects
    owner = owner_of_vm(cluster, NamespacedName(row.namespace, row.name))
    vm = objects.get(VIRTUAL_MACHINE, owner, row.namespace) if owner else None
    found = VM(
        row=row,
        pod=objects.get(POD, row.pod, row.namespace),
        owner=owner,
        run_strategy=vm.run_strategy if vm else None,
        failed_starts=vm.start_failures if vm else 0,
        copying=_copying(vm),
    )
    vmi = objects.get(VIRTUAL_MACHINE_INSTANCE, row.name, row.namespace)
    if vmi is None:
        return found
    return replace(
        found,
        started=vmi.metadata.creation_timestamp or "",
        status=vmi.status or VMIStatus(),
        reunite=vmi.metadata.annotation(LABEL_REUNITE),
        deleted=vmi.metadata.deletion_timestamp is not None,
        eviction_strategy=vmi.spec.eviction_strategy or "",
        start_strategy=vmi.spec.start_strategy,
        placement=_placement(vmi.spec),
    )


def _placement(spec: VMISpec) -> Placement:
    return Placement(node_selector=spec.node_selector or {}, affinity=spec.affinity, tolerations=spec.tolerations or ())


def _copying(vm: VirtualMachine | None) -> str:
    """What copies the disks of a VM now; empty if nothing does."""
    status = vm.status if vm else None
    if status and status.snapshot_in_progress:
        return f"snapshot {status.snapshot_in_progress} of it runs"
    return f"{status.restore_in_progress} restores it" if status and status.restore_in_progress else ""
