"""KubeVirt's VirtualMachine and VirtualMachineInstance (kubevirt.io/v1), with the fields that core reads of them.

The commands read more fields of the same objects: webhook.objects.kubevirt adds them. Upstream source:
staging/src/kubevirt.io/api/core/v1 (types.go, schema.go).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import field

from webhook.core.api.affinity import is_node_name
from webhook.core.api.kubevirt import MigrationState
from webhook.core.api.meta import ApiType, Condition, ObjectMeta, Present, condition_of

VM_KIND: Final = "VirtualMachine"
KUBEVIRT_API_VERSION: Final = "kubevirt.io/v1"
LIVE_MIGRATABLE: Final = "LiveMigratable"


class VMClaim(NamedTuple):
    """A claim that a VM names.

    Attributes:
        name: the claim's name, in the VM's namespace.
        hotpluggable: whether KubeVirt attaches the claim with a pod of its own, so that no virt-launcher pod has it.
        cdrom: whether the VM has the claim as a CD-ROM.
    """

    name: str
    hotpluggable: bool = False
    cdrom: bool = False


class ClaimSource(ApiType):
    """PersistentVolumeClaimVolumeSource. KubeVirt attaches a hotpluggable volume with a pod of its own."""

    claim_name: str | None = None
    hotpluggable: bool | None = None


class DataVolumeSource(ApiType):
    """DataVolumeSource. The claim has the name of the DataVolume."""

    name: str | None = None
    hotpluggable: bool | None = None


class EphemeralSource(ApiType):
    """EphemeralVolumeSource: a claim that the VM only reads. This is not Kubernetes' generic ephemeral volume."""

    persistent_volume_claim: ClaimSource | None = None


class Volume(ApiType):
    """Volume of a VirtualMachineInstance. A memoryDump has no field here, because no VM starts with one."""

    name: str | None = None
    persistent_volume_claim: ClaimSource | None = None
    data_volume: DataVolumeSource | None = None
    ephemeral: EphemeralSource | None = None

    @property
    def claim_name(self) -> str | None:
        """The name of this volume's claim; None if it has none."""
        base = self.ephemeral.persistent_volume_claim if self.ephemeral else None
        source = self.persistent_volume_claim or base
        if source:
            return source.claim_name
        return self.data_volume.name if self.data_volume else None

    @property
    def hotpluggable(self) -> bool:
        """Whether KubeVirt attaches the volume with a pod of its own. It never does so with an ephemeral volume."""
        return bool((self.persistent_volume_claim or self.data_volume or ClaimSource()).hotpluggable)

    @property
    def claim(self) -> str | None:
        """The name of the claim that the virt-launcher pod mounts for this volume; None if it mounts none."""
        return None if self.hotpluggable else self.claim_name


class Disk(ApiType):
    """Disk of a domain. Its volume has the same name. A volume of virtiofs has a filesystem instead of a disk."""

    name: str | None = None
    cdrom: Present | None = None


class Devices(ApiType):
    """Devices of a domain."""

    disks: list[Disk] | None = None


class Domain(ApiType):
    """DomainSpec of a VirtualMachineInstance."""

    devices: Devices | None = None


class VMISpec(ApiType):
    """VirtualMachineInstanceSpec, in part."""

    domain: Domain | None = None
    volumes: list[Volume] | None = None

    @property
    def claims(self) -> tuple[VMClaim, ...]:
        """The claims of all volumes that have one, in order."""
        devices = self.domain.devices if self.domain else None
        cdroms = {disk.name for disk in (devices.disks if devices else None) or () if disk.cdrom is not None}
        return tuple(
            VMClaim(name, each.hotpluggable, each.name in cdroms)
            for each in self.volumes or ()
            if (name := each.claim_name)
        )


class VMITemplateSpec(ApiType):
    """VirtualMachineInstanceTemplateSpec, in part."""

    metadata: ObjectMeta | None = None
    spec: VMISpec = field(default_factory=VMISpec)


class VirtualMachineSpec(ApiType):
    """VirtualMachineSpec, in part."""

    template: VMITemplateSpec = field(default_factory=VMITemplateSpec)


class StartFailure(ApiType):
    """VirtualMachineStartFailure: how many VirtualMachineInstances in a row ended without ever Running.

    KubeVirt clears it once one runs (pkg/virt-controller/watch/vm/vm.go, syncStartFailureStatus).
    """

    consecutive_fail_count: int | None = None


class VirtualMachineStatus(ApiType):
    """VirtualMachineStatus, in part."""

    start_failure: StartFailure | None = None


class VirtualMachine(ApiType):
    """VirtualMachine, in part."""

    metadata: ObjectMeta
    spec: VirtualMachineSpec = field(default_factory=VirtualMachineSpec)
    status: VirtualMachineStatus | None = None

    @property
    def claims(self) -> tuple[VMClaim, ...]:
        """The claims that the VM has from its next start on."""
        return self.spec.template.spec.claims

    @property
    def start_failures(self) -> int:
        """How many VirtualMachineInstances of this VM in a row ended without ever Running."""
        failure = self.status.start_failure if self.status else None
        return (failure.consecutive_fail_count if failure else None) or 0


class VMINode(ApiType):
    """VirtualMachineInstanceStatus, as far as the webhook reads it."""

    node_name: str | None = None
    conditions: list[Condition] | None = None

    def condition(self, type_: str) -> Condition | None:
        """Return the condition of this type; None if there is none."""
        return condition_of(self.conditions, type_)

    @property
    def unmigratable(self) -> str:
        """Why KubeVirt can't migrate the VM, by the condition that virt-handler sets; empty if it can."""
        found = self.condition(LIVE_MIGRATABLE)
        return f"{found.reason}: {found.message}" if found and found.status == "False" else ""


class VirtualMachineInstance(ApiType):
    """VirtualMachineInstance, in part."""

    metadata: ObjectMeta
    spec: VMISpec = field(default_factory=VMISpec)
    status: VMINode | None = None

    @property
    def node(self) -> str | None:
        """The node on which the VM runs, None if it is on none."""
        name = self.status.node_name if self.status else None
        return name if name and is_node_name(name) else None

    @property
    def claims(self) -> tuple[VMClaim, ...]:
        """The claims that the VM runs with, or starts with."""
        return self.spec.claims

    @property
    def virtual_machine(self) -> str | None:
        """The name of the VirtualMachine that owns this instance; None if none does."""
        return next((each.name for each in self.metadata.owner_references or () if each.kind == VM_KIND), None)


class Backup(ApiType):
    """VirtualMachineInstanceBackupStatus, in part."""

    completed: bool | None = None
    failed: bool | None = None


class ChangedBlockTracking(ApiType):
    """ChangedBlockTrackingStatus, in part."""

    state: str | None = None
    backup_status: Backup | None = None


class VMIVolumeStatus(ApiType):
    """VolumeStatus of a VMI. `hotplug_volume` is set if the volume was attached to the running VM."""

    name: str | None = None
    phase: str | None = None
    hotplug_volume: Present | None = None


class VMIStatus(VMINode):
    """VirtualMachineInstanceStatus, in part."""

    phase: str | None = None
    evacuation_node_name: str | None = None
    changed_block_tracking: ChangedBlockTracking | None = None
    volume_status: list[VMIVolumeStatus] | None = None
    migrated_volumes: list[Present] | None = None
    migration_state: MigrationState | None = None
    fs_freeze_status: str | None = field(default=None, name="fsFreezeStatus")
