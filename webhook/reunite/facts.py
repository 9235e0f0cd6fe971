"""What a run of `reunite` knows: the situation, and the stuck VMs, of a cluster that was read once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from webhook.core.api.meta import NamespacedName
from webhook.core.api.virtual_machine import VMIStatus
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.opt_in import Policy
from webhook.core.reunite.decide import Situation
from webhook.core.reunite.limits import ReuniteLimits
from webhook.core.reunite.migration import LABEL_REUNITE
from webhook.core.reunite.stuck import StuckVM
from webhook.core.reunite.vm import VM, Placement
from webhook.objects import kinds
from webhook.objects.api.kubevirt import VirtualMachine, VirtualMachineInstance, VMISpec
from webhook.objects.kinds import APIResource
from webhook.objects.manifests import Manifests
from webhook.objects.parts import Part, parts_of_nodes, parts_of_rows
from webhook.objects.vm_rows import owner_of_vm, rows_from_manifests
from webhook.plan.created import pod_at_create


def parts() -> list[Part]:
    """Return what a run reads, with all of it in all namespaces."""
    rows = [part for part in parts_of_rows("") if part.kind is not kinds.WEBHOOK_CONFIGURATION]
    return [*rows, *parts_of_nodes(), Part(kind=kinds.MIGRATION)]


def first_unread(cluster: Manifests) -> tuple[APIResource[Any], str] | None:
    """Return the first kind that could not be read, and why; None if everything was read."""
    for part in parts():
        if problem := cluster.objects.unread(part.kind):
            return part.kind, problem
    return None


def situation_of(cluster: Manifests, policy: Policy, limits: ReuniteLimits, now: float) -> Situation:
    """Return the situation at `now` (seconds since 1970)."""
    vmis = cluster.objects.of(kinds.VIRTUAL_MACHINE_INSTANCE)
    rows = rows_from_manifests(cluster, policy)
    found = ((row, vmis.get(NamespacedName(row.namespace, row.name))) for row in rows)
    return Situation(
        now=now,
        vms=[_vm(cluster, row, vmi) for row, vmi in found if vmi],
        migrations=list(cluster.objects.of(kinds.MIGRATION).values()),
        kubevirt=next(iter(cluster.objects.of(kinds.KUBEVIRT).values()), None),
        limits=limits,
        nodes_of={
            (key.namespace, key.name): node
            for key, vmi in vmis.items()
            if (node := vmi.status and vmi.status.node_name)
        },
        nodes={key.name: node for key, node in cluster.objects.of(kinds.NODE).items()},
    )


def stuck_vms(cluster: Manifests, situation: Situation) -> Iterator[StuckVM]:
    """Yield the VMs that are stuck, those that wait longest first."""
    stuck = [vm.row for vm in situation.vms if vm.row.state is State.STUCK]
    for row in sorted(stuck, key=lambda row: (row.since or "", row.pod)):
        key = NamespacedName(row.namespace, row.name)
        vmi = cluster.objects.get(kinds.VIRTUAL_MACHINE_INSTANCE, row.name, row.namespace)
        pod = cluster.objects.get(kinds.POD, row.pod, row.namespace)
        owner = owner_of_vm(cluster, key)
        vm = cluster.objects.get(kinds.VIRTUAL_MACHINE, owner, row.namespace) if owner else None
        if vmi and pod:
            yield StuckVM(
                row=row,
                pod=pod,
                started=vmi.metadata.creation_timestamp or "",
                owner=owner,
                run_strategy=vm.run_strategy if vm else None,
                failed_starts=vm.start_failures if vm else 0,
                reunite=vmi.metadata.annotation(LABEL_REUNITE),
                start_strategy=vmi.spec.start_strategy,
            )


def _vm(cluster: Manifests, row: VMStatus, vmi: VirtualMachineInstance) -> VM:
    owner = vmi.virtual_machine
    vm = cluster.objects.get(kinds.VIRTUAL_MACHINE, owner, row.namespace) if owner else None
    pod = cluster.objects.get(kinds.POD, row.pod, row.namespace)
    spec = vmi.spec
    return VM(
        row=row,
        started=vmi.metadata.creation_timestamp or "",
        status=vmi.status or VMIStatus(),
        reunite=vmi.metadata.annotation(LABEL_REUNITE),
        deleted=vmi.metadata.deletion_timestamp is not None,
        eviction_strategy=spec.eviction_strategy or "",
        copying=_copying(vm),
        pod=pod_at_create(pod, spec.node_selector) if pod else None,
        placement=_placement(spec),
    )


def _placement(spec: VMISpec) -> Placement:
    return Placement(node_selector=spec.node_selector or {}, affinity=spec.affinity, tolerations=spec.tolerations or ())


def _copying(vm: VirtualMachine | None) -> str:
    """What copies the disks of a VM now; empty if nothing does."""
    status = vm.status if vm else None
    if status and status.snapshot_in_progress:
        return f"snapshot {status.snapshot_in_progress} of it runs"
    return f"{status.restore_in_progress} restores it" if status and status.restore_in_progress else ""
