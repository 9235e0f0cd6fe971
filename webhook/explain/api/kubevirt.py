"""The parts of KubeVirt's objects (kubevirt.io/v1 and v1alpha3) from which `derive` makes a virt-launcher pod.

The types have the fields that reach the pod and that a rule of core reads. Invariant: every field can be absent or
null, as in webhook.core.api. KubeVirt copies some fields unchanged: `derive` copies them from the JSON, and the types
only check them.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from webhook.core.api.affinity import Affinity, TopologySpreadConstraint
from webhook.core.api.meta import ObjectMeta
from webhook.core.api.pod import Toleration

API_VERSIONS: Final = ("kubevirt.io/v1", "kubevirt.io/v1alpha3")


class ClaimSource(Struct, rename="camel", frozen=True, kw_only=True):
    """PersistentVolumeClaimVolumeSource. KubeVirt attaches a hotpluggable volume with a pod of its own."""

    claim_name: str | None = None
    hotpluggable: bool | None = None


class DataVolumeSource(Struct, rename="camel", frozen=True, kw_only=True):
    """DataVolumeSource. The claim has the name of the DataVolume."""

    name: str | None = None
    hotpluggable: bool | None = None


class EphemeralSource(Struct, rename="camel", frozen=True, kw_only=True):
    """EphemeralVolumeSource: a claim that the VM only reads. This is not Kubernetes' generic ephemeral volume."""

    persistent_volume_claim: ClaimSource | None = None


class Volume(Struct, rename="camel", frozen=True, kw_only=True):
    """Volume of a VirtualMachineInstance. A memoryDump has no field here, because KubeVirt always hotplugs it."""

    name: str | None = None
    persistent_volume_claim: ClaimSource | None = None
    data_volume: DataVolumeSource | None = None
    ephemeral: EphemeralSource | None = None

    @property
    def claim(self) -> str | None:
        """The name of the claim that the virt-launcher pod mounts for this volume; None if it mounts none."""
        if self.persistent_volume_claim and not self.persistent_volume_claim.hotpluggable:
            return self.persistent_volume_claim.claim_name
        if self.data_volume and not self.data_volume.hotpluggable:
            return self.data_volume.name
        base = self.ephemeral.persistent_volume_claim if self.ephemeral else None
        return base.claim_name if base else None


class Cpu(Struct, rename="camel", frozen=True, kw_only=True):
    """CPU. The model is host-model, host-passthrough or the name of a model."""

    model: str | None = None


class Machine(Struct, rename="camel", frozen=True, kw_only=True):
    """Machine. The type is q35 or pc-q35-rhel9.6.0, for example."""

    type: str | None = None


class Tpm(Struct, rename="camel", frozen=True, kw_only=True):
    """TPMDevice. An absent `enabled` means true."""

    enabled: bool | None = None
    persistent: bool | None = None


class Efi(Struct, rename="camel", frozen=True, kw_only=True):
    """EFI of a bootloader."""

    persistent: bool | None = None


class Bootloader(Struct, rename="camel", frozen=True, kw_only=True):
    """Bootloader of a firmware."""

    efi: Efi | None = None


class Firmware(Struct, rename="camel", frozen=True, kw_only=True):
    """Firmware of a domain."""

    bootloader: Bootloader | None = None


class Devices(Struct, rename="camel", frozen=True, kw_only=True):
    """Devices of a domain."""

    tpm: Tpm | None = None


class Domain(Struct, rename="camel", frozen=True, kw_only=True):
    """DomainSpec of a VMI."""

    cpu: Cpu | None = None
    machine: Machine | None = None
    devices: Devices | None = None
    firmware: Firmware | None = None

    @property
    def keeps_state(self) -> bool:
        """Whether the TPM or the EFI persists (pkg/tpm/tpm.go; pkg/storage/backend-storage, HasPersistentEFI)."""
        tpm = self.devices.tpm if self.devices else None
        bootloader = self.firmware.bootloader if self.firmware else None
        efi = bootloader.efi if bootloader else None
        return bool((tpm and tpm.enabled is not False and tpm.persistent) or (efi and efi.persistent))


class VMISpec(Struct, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineInstanceSpec, in part."""

    domain: Domain | None = None
    volumes: list[Volume] | None = None
    architecture: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    resource_claims: list[Any] | None = None


class VMIVolumeStatus(Struct, rename="camel", frozen=True, kw_only=True):
    """VolumeStatus of a VMI. `hotplug_volume` is set if the volume was attached to the running VM."""

    name: str | None = None
    hotplug_volume: dict[str, Any] | None = None


class ChangedBlockTracking(Struct, rename="camel", frozen=True, kw_only=True):
    """ChangedBlockTrackingStatus, in part."""

    state: str | None = None


class Status(Struct, rename="camel", frozen=True, kw_only=True):
    """What VirtualMachineStatus and VirtualMachineInstanceStatus share. A VirtualMachine has no `machine` here."""

    machine: Machine | None = None
    changed_block_tracking: ChangedBlockTracking | None = None


class VMIStatus(Status, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineInstanceStatus, in part."""

    volume_status: list[VMIVolumeStatus] | None = None


class VMI(Struct, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineInstance, in part."""

    metadata: ObjectMeta
    spec: VMISpec
    status: VMIStatus | None = None


class VMITemplateSpec(Struct, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineInstanceTemplateSpec, in part."""

    metadata: ObjectMeta | None = None
    spec: VMISpec


class VirtualMachineSpec(Struct, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineSpec, in part."""

    template: VMITemplateSpec


class VirtualMachine(Struct, rename="camel", frozen=True, kw_only=True):
    """VirtualMachine, in part."""

    metadata: ObjectMeta
    spec: VirtualMachineSpec
    status: Status | None = None
