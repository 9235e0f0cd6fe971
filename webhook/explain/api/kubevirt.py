"""The parts of KubeVirt's objects (kubevirt.io/v1 and v1alpha3) from which `derive` makes a virt-launcher pod.

The types have the fields that reach the pod and that a rule of core reads. Invariant: every field can be absent or
null, as in webhook.core.api. KubeVirt copies some fields unchanged: `derive` copies them from the JSON, and the types
only check them.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from webhook.core.api import virtual_machine
from webhook.core.api.affinity import Affinity, TopologySpreadConstraint
from webhook.core.api.meta import ObjectMeta
from webhook.core.api.pod import Toleration

API_VERSIONS: Final = (virtual_machine.KUBEVIRT_API_VERSION, "kubevirt.io/v1alpha3")


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


class Devices(virtual_machine.Devices, rename="camel", frozen=True, kw_only=True):
    """Devices of a domain."""

    tpm: Tpm | None = None


class Domain(virtual_machine.Domain, rename="camel", frozen=True, kw_only=True):
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


class VMISpec(virtual_machine.VMISpec, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineInstanceSpec, in part."""

    domain: Domain | None = None
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
