"""VM: one VM as `reunite` sees it, what else goes on with it, and the pods that KubeVirt can make of it next.

These are the target of a migration, and the pod of the VM's next start. Upstream:
pkg/virt-controller/watch/migration/migration.go (createTargetPod, prepareNodeSelectorForHostCpuModel) and
pkg/virt-controller/services/template.go. The target comes from the VirtualMachineInstance as it is now, and the node
that it leaves adds its CPU. A start has nothing that a migration added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.affinity import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from webhook.core.api.kubevirt import (
    ANNOTATION_MIGRATION,
    CPU_FEATURE,
    CPU_VENDOR,
    LABEL_MIGRATION_JOB_UID,
    MIGRATION_CPU_MODEL,
    is_kubevirts,
    start_node_selector,
)
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod, Toleration
from webhook.core.api.virtual_machine import VMIStatus
from webhook.core.observe.remedy import restart_command, restart_without_owner
from webhook.core.observe.vm_status import VMStatus
from webhook.core.patch.decision_patch import as_created

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
            (self.row.held, self.row.remedy),
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


_OF_NODE: Final = {
    "host-model-cpu.node.kubevirt.io/": MIGRATION_CPU_MODEL,
    "host-model-required-features.node.kubevirt.io/": CPU_FEATURE,
}
_OBSOLETE: Final = NodeSelectorRequirement(key="node-labeller.kubevirt.io/obsolete-host-model", operator="DoesNotExist")
_BY_KUBERNETES: Final = "node.kubernetes.io/"  # tolerations that admission plugins add to every pod


def start_pod(vm: VM, pod: Pod) -> Pod:
    """Return the pod of the VM's next start, before the webhook is asked."""
    return _with_selector(vm, pod, start_node_selector(pod))


def target_pod(vm: VM, pod: Pod, source: Node | None) -> Pod:
    """Return the target pod of a migration from the node `source`, without the node that the migration names.

    KubeVirt before 1.8 adds no CPU vendor. No migration to another vendor succeeds there either.
    """
    selector = dict(pod.spec.node_selector or {})
    labels = (source.metadata.labels if source else None) or {}
    if vm.placement.host_model and not any(key.startswith((MIGRATION_CPU_MODEL, CPU_FEATURE)) for key in selector):
        for old, new in _OF_NODE.items():
            selector |= {key.replace(old, new): value for key, value in labels.items() if key.startswith(old)}
    if not any(key.startswith(CPU_VENDOR) for key in selector):
        selector |= {key: "true" for key in labels if key.startswith(CPU_VENDOR)}
    return _with_selector(vm, pod, selector)


def _with_selector(vm: VM, pod: Pod, selector: Mapping[str, str]) -> Pod:
    """Return the pod as KubeVirt makes it, with KubeVirt's own part of this selector, and the VMI's rules."""
    before, now = as_created(pod), vm.placement
    own = {key: value for key, value in selector.items() if is_kubevirts(key)}
    tolerations = [each for each in before.spec.tolerations or () if (each.key or "").startswith(_BY_KUBERNETES)]
    spec = replace(
        before.spec,
        node_selector={**own, **now.node_selector},
        affinity=_not_obsolete(now.affinity) if now.host_model else now.affinity,
        tolerations=[*now.tolerations, *(each for each in tolerations if each not in now.tolerations)],
    )
    return replace(before, spec=spec)


def _not_obsolete(affinity: Affinity | None) -> Affinity:
    """Add what KubeVirt adds to each term of a host-model VM (template.go, modifyNodeAffintyToRejectLabel)."""
    affinity = affinity or Affinity()
    node = affinity.node_affinity or NodeAffinity()
    terms = (node.required.node_selector_terms if node.required else None) or [NodeSelectorTerm()]
    narrowed = [replace(each, match_expressions=[*(each.match_expressions or ()), _OBSOLETE]) for each in terms]
    return replace(affinity, node_affinity=replace(node, required=NodeSelector(node_selector_terms=narrowed)))
