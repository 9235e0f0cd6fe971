"""VM: one VM as `reunite` and a plan see it; what else goes on with it, and what its migration is judged by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.affinity import Affinity, InterPodTerms, NodeAffinity
from webhook.core.api.kubevirt import HOSTNAME, LABEL_MIGRATION_JOB_UID, without_target_rule
from webhook.core.api.node_selector import NodeSelector
from webhook.core.api.pod import Pod, Toleration
from webhook.core.api.virtual_machine import CHANGES, PAUSED, VMIStatus
from webhook.core.observe.vm_status import VMStatus
from webhook.core.patch.decision_patch import as_created

_NOT_BY_MIGRATION: Final = ("None", "External")
_READY: Final = "Ready"
_DUMPED: Final = "MemoryDumpInProgress"
_BY_KUBERNETES: Final = "node.kubernetes.io/"  # tolerations that admission plugins add to every pod
_BY_KUBEVIRT: Final = "kubevirt.io/"  # requirements of labels that KubeVirt adds to the VM's own


class Placement(Struct, frozen=True, kw_only=True):
    """What the VirtualMachineInstance says now of the nodes for its pods."""

    node_selector: Mapping[str, str] = {}
    affinity: Affinity | None = None
    tolerations: Sequence[Toleration] = ()


class VM(Struct, frozen=True, kw_only=True):
    """One VM.

    Attributes:
        row: where the VM and its share-managers are.
        started: when the VMI was created (RFC 3339): each start of a VM creates one.
        status: of the VMI.
        reunite: the value of the annotation `kubevirt-scheduler/reunite`, None without it.
        deleted: whether the VMI is being deleted.
        eviction_strategy: of the VMI; empty if the cluster's counts.
        copying: what copies the VM's disks now, as KubeVirt says it at the VirtualMachine: a snapshot or a restore.
        pod: the VM's pod as it is; None if it could not be read.
        placement: what KubeVirt makes the target pod of now; None if the VMI could not be read.
        start_strategy: of the VMI.
        owner: the name of the VirtualMachine that owns the VMI; None if none owns it.
        run_strategy: of the VirtualMachine; None if it could not be read.
        failed_starts: status.startFailure.consecutiveFailCount. KubeVirt counts each VMI that failed before it ran, a
            deleted pod's VMI among them, and begins again at 0 once a VMI of the VM runs.
    """

    row: VMStatus
    started: str = ""
    status: VMIStatus = VMIStatus()
    reunite: str | None = None
    deleted: bool = False
    eviction_strategy: str = ""
    copying: str = ""
    pod: Pod | None = None
    placement: Placement | None = None
    start_strategy: str | None = None
    owner: str | None = None
    run_strategy: str | None = None
    failed_starts: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.row.namespace, self.row.name

    @property
    def pod_at_create(self) -> Pod | None:
        """The pod from which KubeVirt makes the target pod of a migration; None if the VM's pod could not be read.

        It is the pod without its node, and without what the webhook and an earlier migration have added. A migration
        adds a node selector, and KubeVirt's rule that keeps the target off the VM's node.
        """
        if self.pod is None or self.pod.metadata.label(LABEL_MIGRATION_JOB_UID) is None:
            return self.pod and as_created(self.pod)
        pod = without_target_rule(as_created(self.pod))
        if self.placement and HOSTNAME in self.placement.node_selector:
            return pod
        left = {key: wanted for key, wanted in (pod.spec.node_selector or {}).items() if key != HOSTNAME}
        return replace(pod, spec=replace(pod.spec, node_selector=left))

    @property
    def must_leave(self) -> str | None:
        """The node that the VM must leave; None if it is on another (evacuation.go, hasMigratedOnEviction)."""
        leaves = self.status.evacuation_node_name
        return leaves if leaves and leaves == self.row.node else None

    @property
    def busy(self) -> str:
        """What is done with the VM now, or what its user does not allow; empty if nothing stands against a migration.

        A migration would carry the change or the copy along, or wait for it.
        """
        status = self.status
        change = next((type_ for type_ in CHANGES if status.condition(type_)), None)
        paused = status.condition(PAUSED)
        tracking = status.changed_block_tracking
        backup = tracking.backup_status if tracking else None
        volumes = status.volume_status or ()
        plugged = next((each for each in volumes if each.hotplug_volume is not None and each.phase != _READY), None)
        plugged = plugged or next((each for each in volumes if each.phase == _DUMPED), None)
        checks = (
            (self.deleted, "it is being deleted"),
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

    @property
    def changed(self) -> str:
        """What of the VMI's placement differs from the running pod, which the target pod has; empty if nothing does.

        KubeVirt renders the target pod from the VMI as it is now (services/template.go, RenderMigrationManifest).
        """
        pod, now = self.pod_at_create, self.placement
        if pod is None or now is None:
            return ""
        spec = pod.spec
        selector = (spec.node_selector or {}).items()
        tolerations = [each for each in spec.tolerations or () if not (each.key or "").startswith(_BY_KUBERNETES)]
        wanted = [each for each in now.tolerations if not (each.key or "").startswith(_BY_KUBERNETES)]
        checks = (
            ("nodeSelector", now.node_selector.items() <= selector),
            ("affinity", _own(spec.affinity) == _own(now.affinity)),
            (
                "tolerations",
                all(each in wanted for each in tolerations) and all(each in tolerations for each in wanted),
            ),
        )
        return next((field for field, same in checks if not same), "")


def _own(affinity: Affinity | None) -> Affinity:
    """Return the affinity without the requirements that KubeVirt adds. Empty parts are absent."""
    affinity = affinity or Affinity()
    node = affinity.node_affinity or NodeAffinity()
    terms = []
    for term in (node.required.node_selector_terms if node.required else None) or ():
        expressions = [each for each in term.match_expressions or () if _BY_KUBEVIRT not in (each.key or "")]
        if expressions or term.match_fields:
            terms.append(replace(term, match_expressions=expressions or None))
    required = NodeSelector(node_selector_terms=terms) if terms else None
    own = NodeAffinity(required=required, preferred=node.preferred or None)
    return Affinity(
        node_affinity=None if own == NodeAffinity() else own,
        pod_affinity=None if affinity.pod_affinity == InterPodTerms() else affinity.pod_affinity,
        pod_anti_affinity=None if affinity.pod_anti_affinity == InterPodTerms() else affinity.pod_anti_affinity,
    )
