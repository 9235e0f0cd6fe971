"""The steps of a plan for the VMs of a cluster that was read once. It reads nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from webhook.core.api.pod import Pod
from webhook.core.api.virtual_machine import LIVE_MIGRATABLE
from webhook.core.observe.vm_status import VMStatus
from webhook.core.reunite.kubevirt import minor_version
from webhook.core.reunite.limits import FIRST_VERSION
from webhook.core.scheduler.state.snapshot import AnySnapshot
from webhook.objects.api.kubevirt import VirtualMachine, VirtualMachineInstance
from webhook.objects.kinds import KUBEVIRT, POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
from webhook.objects.manifests import Manifests
from webhook.plan.created import pod_at_create
from webhook.plan.step import Step, VMDetails, counted, step


def plan_steps(cluster: Manifests, rows: Sequence[VMStatus]) -> tuple[list[Step], str]:
    """Return a step for each of these rows; and the version of KubeVirt, empty if it is not known.

    A migration takes resources of its target node from the later ones. It stays in the snapshot of the cluster.
    """
    version = next((each.version for each in cluster.objects.of(KUBEVIRT).values()), "")
    snapshot, notes = counted(cluster.snapshot())
    return [_step(cluster, row, version, snapshot, notes) for row in rows], version


def _step(cluster: Manifests, row: VMStatus, version: str, snapshot: AnySnapshot, notes: Sequence[str]) -> Step:
    objects = cluster.objects
    vmi = objects.get(VIRTUAL_MACHINE_INSTANCE, row.name, row.namespace)
    owner = vmi.virtual_machine if vmi else row.name
    vm = objects.get(VIRTUAL_MACHINE, owner, row.namespace) if owner else None
    pod = objects.get(POD, row.pod, row.namespace)
    unread = objects.unread(VIRTUAL_MACHINE_INSTANCE)
    unknown = f"could not be read: {unread}" if unread else "is not known: no VMI is described"
    found = details_of(owner, pod, vmi, vm)
    details = replace(
        found,
        unmigratable=_too_old(version) or found.unmigratable,
        notes=[*notes, *([] if vmi else [f"the VM's condition {LIVE_MIGRATABLE} {unknown}"])],
    )
    return step(row, details, cluster, cluster, snapshot)


def details_of(
    owner: str | None, pod: Pod | None, vmi: VirtualMachineInstance | None, vm: VirtualMachine | None
) -> VMDetails:
    """Return what a plan needs of a VM's pod, VMI and VirtualMachine; each is None if it is not known."""
    return VMDetails(
        pod=pod_at_create(pod, vmi.spec.node_selector if vmi else None) if pod else None,
        owner=owner,
        run_strategy=vm.run_strategy if vm else None,
        unmigratable=_unmigratable(vmi),
    )


def _too_old(version: str) -> str:
    found = minor_version(version)
    old = found and found < FIRST_VERSION
    return f"KubeVirt {version} has no addedNodeSelector, 1.5 is the first" if old else ""


def _unmigratable(vmi: VirtualMachineInstance | None) -> str:
    """Why KubeVirt can't migrate the VM; empty if it can, or if that is not known."""
    because = vmi.status.unmigratable if vmi and vmi.status else ""
    return f"KubeVirt can't migrate it: {because}" if because else ""
