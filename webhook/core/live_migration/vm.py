"""VM: one VM as `reunite` sees it, and what else goes on with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.core.api.affinity import Affinity
from webhook.core.api.kubevirt import ANNOTATION_MIGRATION, LABEL_MIGRATION_JOB_UID
from webhook.core.api.pod import Pod, Toleration
from webhook.core.api.virtual_machine import VMIStatus
from webhook.core.observe.remedy import restart_command, restart_without_owner
from webhook.core.observe.vm_status import VMStatus

PAUSED: Final = "Paused"
CHANGES: Final = ("VolumesChange", "HotMemoryChange", "HotVCPUChange", "MigrationRequired")
"""Conditions of a change that KubeVirt makes by a migration of its own (workload-updater.go, doesRequireMigration)."""
_NOT_BY_MIGRATION: Final = ("None", "External")
_READY: Final = "Ready"
_DUMPED: Final = "MemoryDumpInProgress"


class Placement(Struct, frozen=True, kw_only=True):
    """What the VirtualMachineInstance says now of the nodes for its pods."""

    node_selector: Mapping[str, str] = {}
    affinity: Affinity | None = None
    tolerations: Sequence[Toleration] = ()
    host_model: bool = True
    priority_class: str | None = None


class VM(Struct, frozen=True, kw_only=True):
    """One VM.

    Attributes:
        row: where the VM and its share-managers are.
        known: whether the VMI was read. Else nothing is known of the fields that come from it.
        uid: of the VMI.
        started: when the VMI was created (RFC 3339): each start of a VM creates one.
        status: of the VMI.
        answers: the values of the annotation `kubevirt-scheduler/reunite` on VM, template and VMI.
        deleted: whether the VMI or its namespace is being deleted.
        eviction_strategy: of the VMI; empty if the cluster's counts.
        copying: what copies the VM's disks now, as KubeVirt says it at the VirtualMachine: a snapshot or a restore.
        pod: the VM's pod as it is; None if it could not be read.
        placement: what KubeVirt makes pods of the VM of now.
        owner: the name of the VirtualMachine that owns the VMI; None if none owns it.
        run_strategy: of the VirtualMachine; None if it could not be read.
    """

    row: VMStatus
    known: bool = False
    uid: str = ""
    started: str = ""
    status: VMIStatus = VMIStatus()
    answers: tuple[str, ...] = ()
    deleted: bool = False
    eviction_strategy: str = ""
    copying: str = ""
    pod: Pod | None = None
    placement: Placement = Placement()
    owner: str | None = None
    run_strategy: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.row.namespace, self.row.name

    @property
    def home(self) -> str:
        """The first node of its share-managers."""
        return self.row.share_manager_nodes[0]

    @property
    def arrived_by(self) -> tuple[str, str] | None:
        """Uid and name of the migration that made the VM's pod; None if a start made it."""
        uid = self.pod.metadata.label(LABEL_MIGRATION_JOB_UID) if self.pod else None
        name = self.pod.metadata.annotation(ANNOTATION_MIGRATION) if self.pod else None
        return None if uid is None else (uid, name or "")

    @property
    def says_yes(self) -> bool:
        """Whether the VM itself lets `reunite` move it."""
        return bool(self.answers) and set(self.answers) == {"true"}

    @property
    def restart(self) -> str:
        """How its user restarts it."""
        if self.owner:
            return restart_command(self.owner, self.row.namespace, self.run_strategy)
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
        status, where = self.status, f"{self.row.name} -n {self.row.namespace}"
        change = next((type_ for type_ in CHANGES if status.condition(type_)), None)
        paused = status.condition(PAUSED)
        tracking = status.changed_block_tracking
        backup = tracking.backup_status if tracking else None
        volumes = status.volume_status or ()
        plugged = next((each for each in volumes if each.hotplug_volume is not None and each.phase != _READY), None)
        plugged = plugged or next((each for each in volumes if each.phase == _DUMPED), None)
        leaves = status.evacuation_node_name
        aborted = status.migration_state
        checks = (
            (not self.known, "its VirtualMachineInstance was not read"),
            (self.deleted, "it is being deleted"),
            (status.phase != "Running", f"its phase is {status.phase or 'not known'}"),
            (self.row.held, self.row.remedy.sentence if self.row.remedy else ""),
            (
                leaves and leaves == self.row.node,
                f"KubeVirt moves it away from {leaves}; without a drain of it: virtctl evacuate-cancel vmi {where}",
            ),
            (aborted and aborted.abort_requested and not aborted.end_timestamp, "a migration of it is being cancelled"),
            (status.unmigratable, status.unmigratable),
            (self.eviction_strategy in _NOT_BY_MIGRATION, f"its evictionStrategy is {self.eviction_strategy}"),
            (status.migrated_volumes, "its volumes move to other claims"),
            (change, f"KubeVirt changes it: condition {change}"),
            (backup and not (backup.completed or backup.failed), "a backup of it runs"),
            (self.copying, self.copying),
            (status.fs_freeze_status, f"its file systems are {status.fs_freeze_status}"),
            (paused and paused.status == "True", f"it is paused: {paused.reason if paused else ''}"),
            (plugged, f"volume {plugged.name if plugged else ''} is {plugged.phase if plugged else ''}"),
        )
        return next((sentence for holds, sentence in checks if holds), "")
