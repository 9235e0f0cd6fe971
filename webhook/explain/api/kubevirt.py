"""The partial KubeVirt objects that derive reads, from kubevirt.io/v1 and v1alpha3.

Only fields that reach a virt-launcher pod and that some rule of core reads. Invariant: every field may be absent or
null, as in webhook.core.objects; what KubeVirt carries over untouched is typed here to be checked, and taken raw.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from webhook.core.api.affinity import Affinity, TopologySpreadConstraint
from webhook.core.api.meta import ObjectMeta
from webhook.core.api.pod import Toleration

API_VERSIONS: Final = ("kubevirt.io/v1", "kubevirt.io/v1alpha3")


class ClaimSource(Struct, rename="camel", frozen=True, kw_only=True):
    """PersistentVolumeClaimVolumeSource; a hotpluggable one is attached by another pod."""

    claim_name: str | None = None
    hotpluggable: bool | None = None


class DataVolumeSource(Struct, rename="camel", frozen=True, kw_only=True):
    """DataVolumeSource: its claim has the DataVolume's name."""

    name: str | None = None
    hotpluggable: bool | None = None


class EphemeralSource(Struct, rename="camel", frozen=True, kw_only=True):
    """EphemeralVolumeSource: a claim under a throwaway layer. Not Kubernetes' generic ephemeral volume."""

    persistent_volume_claim: ClaimSource | None = None


class Volume(Struct, rename="camel", frozen=True, kw_only=True):
    """Volume of a VirtualMachineInstance. A memoryDump is not among these: it is always hotplugged."""

    name: str | None = None
    persistent_volume_claim: ClaimSource | None = None
    data_volume: DataVolumeSource | None = None
    ephemeral: EphemeralSource | None = None

    @property
    def claim(self) -> str | None:
        """The claim that the launcher pod mounts for this volume, None where there is none."""
        if self.persistent_volume_claim and not self.persistent_volume_claim.hotpluggable:
            return self.persistent_volume_claim.claim_name
        if self.data_volume and not self.data_volume.hotpluggable:
            return self.data_volume.name
        base = self.ephemeral.persistent_volume_claim if self.ephemeral else None
        return base.claim_name if base else None


class Cpu(Struct, rename="camel", frozen=True, kw_only=True):
    """CPU: the model is a name, host-model or host-passthrough."""

    model: str | None = None


class Machine(Struct, rename="camel", frozen=True, kw_only=True):
    """Machine: the type is q35 or pc-q35-rhel9.6.0, for example."""

    type: str | None = None


class Tpm(Struct, rename="camel", frozen=True, kw_only=True):
    """TPMDevice: enabled unless it says otherwise."""

    enabled: bool | None = None
    persistent: bool | None = None


class Efi(Struct, rename="camel", frozen=True, kw_only=True):
    """EFI."""

    persistent: bool | None = None


class Bootloader(Struct, rename="camel", frozen=True, kw_only=True):
    """Bootloader."""

    efi: Efi | None = None


class Firmware(Struct, rename="camel", frozen=True, kw_only=True):
    """Firmware."""

    bootloader: Bootloader | None = None


class Devices(Struct, rename="camel", frozen=True, kw_only=True):
    """Devices."""

    tpm: Tpm | None = None


class Domain(Struct, rename="camel", frozen=True, kw_only=True):
    """DomainSpec."""

    cpu: Cpu | None = None
    machine: Machine | None = None
    devices: Devices | None = None
    firmware: Firmware | None = None

    @property
    def keeps_state(self) -> bool:
        """Whether a TPM or EFI persists (pkg/tpm/tpm.go and pkg/storage/backend-storage, HasPersistentEFI)."""
        tpm = self.devices.tpm if self.devices else None
        bootloader = self.firmware.bootloader if self.firmware else None
        efi = bootloader.efi if bootloader else None
        return bool((tpm and tpm.enabled is not False and tpm.persistent) or (efi and efi.persistent))


class VMISpec(Struct, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineInstanceSpec."""

    domain: Domain | None = None
    volumes: list[Volume] | None = None
    architecture: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    resource_claims: list[Any] | None = None


class VolumeStatus(Struct, rename="camel", frozen=True, kw_only=True):
    """VolumeStatus: `hotplug_volume` is set for one that was plugged into the running machine."""

    name: str | None = None
    hotplug_volume: dict[str, Any] | None = None


class ChangedBlockTracking(Struct, rename="camel", frozen=True, kw_only=True):
    """ChangedBlockTrackingStatus."""

    state: str | None = None


class Status(Struct, rename="camel", frozen=True, kw_only=True):
    """The status of either kind; a VirtualMachine's has no machine and volumes of another form."""

    machine: Machine | None = None
    changed_block_tracking: ChangedBlockTracking | None = None


class VMIStatus(Status, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineInstanceStatus."""

    volume_status: list[VolumeStatus] | None = None


class VMI(Struct, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineInstance."""

    metadata: ObjectMeta
    spec: VMISpec
    status: VMIStatus | None = None


class VMITemplateSpec(Struct, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineInstanceTemplateSpec."""

    metadata: ObjectMeta | None = None
    spec: VMISpec


class VirtualMachineSpec(Struct, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineSpec."""

    template: VMITemplateSpec


class VirtualMachine(Struct, rename="camel", frozen=True, kw_only=True):
    """VirtualMachine."""

    metadata: ObjectMeta
    spec: VirtualMachineSpec
    status: Status | None = None
