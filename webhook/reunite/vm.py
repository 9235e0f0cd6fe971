"""VM: one VM as `reunite` sees it, with what else goes on with it; and what a run reads of a cluster for all VMs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.kubevirt import (
    ANNOTATION_MIGRATION,
    HOSTNAME,
    LABEL_MIGRATION_JOB_UID,
    is_finished,
)
from webhook.core.api.meta import NamespacedName
from webhook.core.api.migration import CHANGES, LABEL_REUNITE, PAUSED, Migration
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.virtual_machine import VMIStatus
from webhook.core.observe.events import ReuniteEvent
from webhook.core.observe.remedy import restart_command, restart_without_owner
from webhook.core.observe.vm_status import VMStatus
from webhook.objects import kinds
from webhook.objects.cluster import Cluster
from webhook.objects.kubevirt import VirtualMachine, VirtualMachineInstance, VMISpec
from webhook.objects.objects import Part, parts_of_nodes, parts_of_rows
from webhook.objects.vm_rows import owner_of_vm

_NOT_BY_MIGRATION: Final = ("None", "External")
_READY: Final = "Ready"
_DUMPED: Final = "MemoryDumpInProgress"


class VM(Struct, frozen=True, kw_only=True):
    """One VM, and what was read about it.

    Attributes:
        row: where the VM and its share-managers are.
        vmi: its VirtualMachineInstance: each start has another one; None if it was not read.
        owner: the name of the VirtualMachine that owns the VMI; None if none owns it.
        vm: this VirtualMachine; None if it was not read.
        pod: the VM's pod as it is; None if it was not read.
        deleted: whether the VMI or its namespace is being deleted.
        migrations: those of the VM that KubeVirt still has.
        names: of all migrations of the namespace.
        events: of `reunite` on the VMI, in its namespace.
        node_at_home: the node of the share-managers; None if it was not read.
        hostname_at_home: its label kubernetes.io/hostname; empty if it has none, or one that another node has, too. A
            kubelet may set that of its own node (NodeRestriction): a migration that names it could lead to any of them.
        oldest_at_home: when the oldest VM's pod on that node was created (RFC 3339); empty if there is none.
    """

    row: VMStatus
    vmi: VirtualMachineInstance | None = None
    owner: str | None = None
    vm: VirtualMachine | None = None
    pod: Pod | None = None
    deleted: bool = False
    migrations: Sequence[Migration] = ()
    names: AbstractSet[str] = frozenset()
    events: Sequence[ReuniteEvent] = ()
    node_at_home: Node | None = None
    hostname_at_home: str = ""
    oldest_at_home: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.row.namespace, self.row.name

    @property
    def home(self) -> str:
        """The first node of its share-managers; empty if they are on none."""
        return next(iter(self.row.share_manager_nodes), "")

    @property
    def arrived_by(self) -> tuple[str, str] | None:
        """Uid and name of the migration that made the VM's pod; None if a start made it."""
        uid = self.pod.metadata.label(LABEL_MIGRATION_JOB_UID) if self.pod else None
        name = self.pod.metadata.annotation(ANNOTATION_MIGRATION) if self.pod else None
        return None if uid is None else (uid, name or "")

    @property
    def uid(self) -> str:
        """The uid of the VMI; empty if it is not known."""
        return (self.vmi.metadata.uid if self.vmi else None) or ""

    @property
    def started(self) -> str:
        """When the VMI was created (RFC 3339)."""
        return (self.vmi.metadata.creation_timestamp if self.vmi else None) or ""

    @property
    def status(self) -> VMIStatus:
        """The status of the VMI."""
        return (self.vmi.status if self.vmi else None) or VMIStatus()

    @property
    def spec(self) -> VMISpec:
        """The spec of the VMI as it is now."""
        return self.vmi.spec if self.vmi else VMISpec()

    @property
    def answers(self) -> list[str]:
        """The values of the annotation `kubevirt-scheduler/reunite` on VMI, VirtualMachine and template."""
        metas = [
            self.vmi and self.vmi.metadata,
            *([self.vm.metadata, self.vm.spec.template.metadata] if self.vm else []),
        ]
        answers = (meta.annotation(LABEL_REUNITE) for meta in metas if meta)
        return [each for each in answers if each is not None]

    @property
    def says_yes(self) -> bool:
        """Whether the VM itself lets `reunite` move it."""
        return set(self.answers) == {"true"}

    @property
    def restart(self) -> str:
        """How its user restarts it."""
        if self.owner:
            return restart_command(self.owner, self.row.namespace, self.vm.run_strategy if self.vm else None)
        return restart_without_owner(self.row.name)

    @property
    def forbids(self) -> str:
        """The command that keeps the VM where it is."""
        kind, name = ("virtualmachine", self.owner) if self.owner else ("virtualmachineinstance", self.row.name)
        return f"kubectl annotate {kind} {name} -n {self.row.namespace} --overwrite kubevirt-scheduler/reunite=false"

    @property
    def busy(self) -> str:
        """Why it can't be migrated now, or what is done with it, or what its user does not allow; empty for nothing.

        A migration would fail, carry the change or the copy along, or wait for it.
        """
        return next(filter(None, self._goes_on()), "")

    def _goes_on(self) -> Iterator[str | None]:
        """Yield a sentence for each thing that goes on with it, and nothing or an empty text for others."""
        row, status, copies = self.row, self.status, self.vm.status if self.vm else None
        yield "its VirtualMachineInstance was not read" if self.vmi is None else ""
        yield "it is being deleted" if self.deleted else ""
        yield f"its phase is {status.phase or 'not known'}" if status.phase != "Running" else ""
        yield row.remedy if row.held else ""
        if row.node and status.evacuation_node_name == row.node:
            cure = f"virtctl evacuate-cancel vmi {row.name} -n {row.namespace}"
            yield f"KubeVirt moves it away from {row.node}; without a drain of it: {cure}"
        aborted = status.migration_state
        if aborted and aborted.abort_requested and not aborted.end_timestamp:
            yield "a migration of it is being cancelled"
        yield status.unmigratable
        if self.spec.eviction_strategy in _NOT_BY_MIGRATION:
            yield f"its evictionStrategy is {self.spec.eviction_strategy}"
        yield "its volumes move to other claims" if status.migrated_volumes else ""
        yield from (f"KubeVirt changes it: condition {change}" for change in CHANGES if status.condition(change))
        backup = status.changed_block_tracking.backup_status if status.changed_block_tracking else None
        yield "a backup of it runs" if backup and not (backup.completed or backup.failed) else ""
        if copies and copies.snapshot_in_progress:
            yield f"snapshot {copies.snapshot_in_progress} of it runs"
        if copies and copies.restore_in_progress:
            yield f"{copies.restore_in_progress} restores it"
        yield f"its file systems are {status.fs_freeze_status}" if status.fs_freeze_status else ""
        paused = status.condition(PAUSED)
        yield f"it is paused: {paused.reason}" if paused and paused.status == "True" else ""
        for volume in status.volume_status or ():
            if volume.phase == _DUMPED or (volume.hotplug_volume is not None and volume.phase != _READY):
                yield f"volume {volume.name} is {volume.phase}"


def parts(*, of_webhook: bool = False) -> list[Part]:
    """Return what a run reads, with all of it in all namespaces. `of_webhook`: also which pods are the webhook's."""
    left_out = () if of_webhook else (kinds.WEBHOOK_CONFIGURATION,)
    rows = [part for part in parts_of_rows("", others=False) if part.kind not in left_out]
    return [*rows, *parts_of_nodes(), Part(kind=kinds.MIGRATION)]


def is_terminating(cluster: Cluster, namespace: str) -> bool:
    """Whether the namespace is being deleted: the API server takes no new object in it."""
    found = cluster.objects.get(kinds.NAMESPACE, namespace)
    return found is not None and found.metadata.deletion_timestamp is not None


def vms_of(cluster: Cluster, rows: Iterable[VMStatus]) -> list[VM]:
    """Return the VMs of these rows."""
    oldest: dict[str, str] = {}
    for pod in cluster.all_virt_launchers():
        node, created = pod.spec.node_name, pod.metadata.creation_timestamp
        if node and created and not is_finished(pod):
            oldest[node] = min(created, oldest.get(node, created))
    objects = cluster.objects
    nodes = {key.name: node for key, node in objects.of(kinds.NODE).items()}
    vms = [_vm_of(cluster, row) for row in rows]
    return with_past(vms, objects.of(kinds.MIGRATION).values(), objects.of(kinds.EVENT).values(), nodes, oldest)


def _vm_of(cluster: Cluster, row: VMStatus) -> VM:
    objects = cluster.objects
    owner = owner_of_vm(cluster, NamespacedName(row.namespace, row.name))
    vmi = objects.get(kinds.VIRTUAL_MACHINE_INSTANCE, row.name, row.namespace)
    return VM(
        row=row,
        vmi=vmi,
        owner=owner,
        vm=objects.get(kinds.VIRTUAL_MACHINE, owner, row.namespace) if owner else None,
        pod=objects.get(kinds.POD, row.pod or "", row.namespace),
        deleted=bool(vmi and vmi.metadata.deletion_timestamp) or is_terminating(cluster, row.namespace),
    )


def with_past(
    vms: Iterable[VM],
    migrations: Iterable[Migration],
    events: Iterable[ReuniteEvent],
    nodes: Mapping[str, Node],
    oldest_on: Mapping[str, str],
) -> list[VM]:
    """Return the VMs, each with what these objects say of it. `oldest_on`: as `VM.oldest_at_home`, by the node."""
    of_vm: dict[tuple[str, str], list[Migration]] = defaultdict(list)
    names: dict[str, set[str]] = defaultdict(set)
    told: dict[tuple[str, str], list[ReuniteEvent]] = defaultdict(list)
    hostnames = {name: node.metadata.label(HOSTNAME) or "" for name, node in nodes.items()}
    nodes_of = Counter(hostnames.values())
    own = {name: label for name, label in hostnames.items() if nodes_of[label] == 1}
    for each in migrations:
        of_vm[each.vm].append(each)
        names[each.vm[0]].add(each.name)
    for event in events:
        told[event.metadata.namespace or "", event.involved_object.uid].append(event)
    return [
        replace(
            vm,
            migrations=of_vm[vm.key],
            names=names[vm.key[0]],
            events=told[vm.row.namespace, vm.uid],
            node_at_home=nodes.get(vm.home),
            hostname_at_home=own.get(vm.home, ""),
            oldest_at_home=oldest_on.get(vm.home, ""),
        )
        for vm in vms
    ]
