"""What a run of `reunite` knows of a cluster that was read once, and whether the share-managers' node takes a VM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec.structs import replace

from webhook.core import refs
from webhook.core.api.kubevirt import HOSTNAME, is_finished
from webhook.core.api.meta import NamespacedName
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.virtual_machine import VMIStatus
from webhook.core.evidence import share_managers
from webhook.core.observe.vm_status import VMStatus
from webhook.core.placement import feasibility
from webhook.core.reunite.decide import Situation
from webhook.core.reunite.migration import LABEL_REUNITE
from webhook.core.reunite.vm import VM, Placement, start_pod, target_pod
from webhook.core.reunite.waits import NotYet, ReuniteLimits, Rule
from webhook.core.scheduler.cache import SnapshotUnavailable
from webhook.core.scheduler.cycle_state import CycleState, why_never_required
from webhook.core.scheduler.node_rules import taint_text, tolerates
from webhook.core.view import NoObject
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
        pod=objects.get(kinds.POD, row.pod or "", row.namespace),
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


_SERVES: Final = (None, "running")
_NOT_READY: Final = ("Ready", "False")  # of a share-manager that starts, or that ends again and again


def why_not_home(vm: VM, cluster: Cluster) -> NotYet | None:
    """Return why the VM can't be migrated to its share-managers now; None if it can, as far as is known.

    kube-scheduler judges what is not evaluated here: rules between pods and the like. It places the target on that node
    only, or the migration fails after a minute. It might evict other pods for a VM that has a priority.
    """
    source = cluster.get(refs.node(vm.row.node or ""))
    pod = vm.pod and target_pod(vm, vm.pod, None if isinstance(source, NoObject) else source)
    if pod is None or vm.pod is None:
        return NotYet(Rule.NOT_PLACEABLE, f"pod {vm.row.pod} is not there any more")
    why = next(_against(vm, pod, cluster), "")
    if not why:
        return None
    start = start_pod(vm, vm.pod)
    if not next(_against(vm, start, cluster), ""):
        why += f"; its next start can bring it there: {vm.restart}"
    return NotYet(Rule.NOT_PLACEABLE, why)


def hostname_of(name: str, cluster: Cluster) -> str:
    """Return the label kubernetes.io/hostname of a node; empty if it has none."""
    node = cluster.get(refs.node(name))
    return "" if isinstance(node, NoObject) else node.metadata.label(HOSTNAME) or ""


def _against(vm: VM, pod: Pod, cluster: Cluster) -> Iterator[str]:
    """Yield what is against the pod on the node of the share-managers, the first thing first."""
    home, snapshot = cluster.get(refs.node(vm.home)), cluster.snapshot()
    yield from _not_served(vm, cluster)
    if isinstance(snapshot, SnapshotUnavailable):
        yield "the pods and resources of the nodes are not known"
    volumes = share_managers.bound_volumes(share_managers.find_share_managers(pod, vm.row.namespace, cluster))
    cycle = CycleState(pod, vm.row.namespace, snapshot, volumes)
    verdict = feasibility.evaluate(vm.home, cycle, cluster)
    if not verdict.feasible:
        yield verdict.why.sentence
    if not isinstance(home, NoObject):
        yield from _tainted(pod, home)
    if not hostname_of(vm.home, cluster):
        yield f"node {vm.home} has no label {HOSTNAME}"
    ruled = why_never_required(cycle)
    if ruled and vm.placement.priority_class:
        yield f"only kube-scheduler can tell, and it may evict pods for {vm.placement.priority_class}: {ruled.sentence}"


def _not_served(vm: VM, cluster: Cluster) -> Iterator[str]:
    """Yield each share-manager that does not serve its volume."""
    for volume in vm.row.volumes:
        if volume.together is False and volume.share_manager not in _SERVES:
            yield f"the share-manager of claim {volume.claim} is {volume.share_manager}"
        pod = cluster.get(refs.share_manager_pod(volume.volume or ""))
        conditions = None if isinstance(pod, NoObject) or pod.status is None else pod.status.conditions
        if volume.together is False and any((each.type, each.status) == _NOT_READY for each in conditions or ()):
            yield f"the pod of the share-manager of claim {volume.claim} is not Ready"


def _tainted(pod: Pod, node: Node) -> Iterator[str]:
    """Yield each taint for which the VM would leave the node again soon, soft ones among them."""
    for taint in node.taints:
        if not tolerates(pod.spec.tolerations or (), taint):
            yield f"node {node.metadata.name} has the taint {taint_text(taint)}, so the VM would be moved again soon"
