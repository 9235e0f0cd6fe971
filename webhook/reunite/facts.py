"""What a run of `reunite` knows: the situation of a cluster that was read once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from webhook.core.api.kubevirt import is_finished
from webhook.core.api.meta import NamespacedName
from webhook.core.api.virtual_machine import VMIStatus
from webhook.core.live_migration.migration import LABEL_REUNITE
from webhook.core.live_migration.vm import VM, Placement
from webhook.core.observe.vm_status import VMStatus
from webhook.core.reunite.decide import Situation
from webhook.core.reunite.waits import ReuniteLimits
from webhook.objects import kinds
from webhook.objects.cluster import Cluster
from webhook.objects.kinds import APIResource
from webhook.objects.kubevirt import VirtualMachine, VMISpec
from webhook.objects.parts import Part, parts_of_nodes, parts_of_rows
from webhook.objects.vm_rows import owner_of_vm

_HOST_MODEL: Final = ("", "host-model")  # KubeVirt writes its default into each VMI


def parts() -> list[Part]:
    """Return what a run reads, with all of it in all namespaces."""
    rows = [part for part in parts_of_rows("", others=False) if part.kind is not kinds.WEBHOOK_CONFIGURATION]
    return [*rows, *parts_of_nodes(), Part(kind=kinds.MIGRATION)]


def first_unread(cluster: Cluster) -> tuple[APIResource[Any], str] | None:
    """Return the first kind that could not be read, and why; None if everything was read."""
    for part in parts():
        if problem := cluster.objects.unread(part.kind):
            return part.kind, problem
    return None


def situation_of(cluster: Cluster, rows: Iterable[VMStatus], limits: ReuniteLimits, now: float) -> Situation:
    """Return the situation of these VMs at `now` (seconds since 1970)."""
    objects = cluster.objects
    oldest: dict[str, str] = {}
    for pod in cluster.all_virt_launchers():
        node, created = pod.spec.node_name, pod.metadata.creation_timestamp
        if node and created and not is_finished(pod):
            oldest[node] = min(created, oldest.get(node, created))
    return Situation(
        now=now,
        vms=[vm_from(cluster, row) for row in rows],
        migrations=list(objects.of(kinds.MIGRATION).values()),
        events=list(objects.of(kinds.EVENT).values()),
        kubevirt=next(iter(objects.of(kinds.KUBEVIRT).values()), None),
        limits=limits,
        nodes={key.name: node for key, node in objects.of(kinds.NODE).items()},
        oldest_on=oldest,
    )


def is_terminating(cluster: Cluster, namespace: str) -> bool:
    """Whether the namespace is being deleted: the API server takes no new object in it."""
    found = cluster.objects.get(kinds.NAMESPACE, namespace)
    return found is not None and found.metadata.deletion_timestamp is not None


def vm_from(cluster: Cluster, row: VMStatus) -> VM:
    """Return the VM of a row."""
    objects = cluster.objects
    owner = owner_of_vm(cluster, NamespacedName(row.namespace, row.name))
    vm = objects.get(kinds.VIRTUAL_MACHINE, owner, row.namespace) if owner else None
    found = VM(
        row=row,
        pod=objects.get(kinds.POD, row.pod, row.namespace),
        owner=owner,
        run_strategy=vm.run_strategy if vm else None,
        copying=_copying(vm),
    )
    vmi = objects.get(kinds.VIRTUAL_MACHINE_INSTANCE, row.name, row.namespace)
    if vmi is None:
        return found
    metas = [vmi.metadata, *([vm.metadata, vm.spec.template.metadata] if vm else [])]
    answers = (meta.annotation(LABEL_REUNITE) for meta in metas if meta)
    return replace(
        found,
        known=True,
        uid=vmi.metadata.uid or "",
        started=vmi.metadata.creation_timestamp or "",
        status=vmi.status or VMIStatus(),
        answers=tuple(each for each in answers if each is not None),
        deleted=vmi.metadata.deletion_timestamp is not None or is_terminating(cluster, row.namespace),
        eviction_strategy=vmi.spec.eviction_strategy or "",
        placement=_placement(vmi.spec),
    )


def _placement(spec: VMISpec) -> Placement:
    cpu = spec.domain.cpu if spec.domain else None
    return Placement(
        node_selector=spec.node_selector or {},
        affinity=spec.affinity,
        tolerations=spec.tolerations or (),
        host_model=((cpu.model if cpu else None) or "") in _HOST_MODEL,
        priority_class=spec.priority_class_name,
    )


def _copying(vm: VirtualMachine | None) -> str:
    """What copies the disks of a VM now; empty if nothing does."""
    status = vm.status if vm else None
    if status and status.snapshot_in_progress:
        return f"snapshot {status.snapshot_in_progress} of it runs"
    return f"{status.restore_in_progress} restores it" if status and status.restore_in_progress else ""
