"""KubeVirt's objects (kubevirt.io/v1 and v1alpha3), with all the fields that the commands read of them.

The commands name the rules of a VM by them, and a bundle keeps them. Invariant: every field can be absent or null, as
in webhook.core.api, and a field that no type here names stays nowhere. Cloud-init, SSH keys, boot arguments and serial
numbers are such fields.
"""

from __future__ import annotations

from msgspec import Struct, field

from webhook.core.api import virtual_machine
from webhook.core.api.affinity import Affinity, TopologySpreadConstraint
from webhook.core.api.meta import Present
from webhook.core.api.pod import Toleration


class Reference(Struct, rename="camel", frozen=True, kw_only=True):
    """The name of another object."""

    name: str | None = None
    kind: str | None = None


class Cpu(Struct, rename="camel", frozen=True, kw_only=True):
    """CPU. The model is host-model, host-passthrough or the name of a model."""

    model: str | None = None
    dedicated_cpu_placement: bool | None = None
    features: list[Present] | None = None
    realtime: Present | None = None


class Memory(Struct, rename="camel", frozen=True, kw_only=True):
    """Memory of a domain."""

    hugepages: Present | None = None


class Features(Struct, rename="camel", frozen=True, kw_only=True):
    """Features of a domain."""

    hyperv: Present | None = None


class Interface(Struct, rename="camel", frozen=True, kw_only=True):
    """Interface of a domain."""

    sriov: Present | None = None


class Lun(Struct, rename="camel", frozen=True, kw_only=True):
    """LunTarget of a disk."""

    reservation: bool | None = None


class Disk(virtual_machine.Disk, rename="camel", frozen=True, kw_only=True):
    """Disk of a domain."""

    lun: Lun | None = None


class Machine(Struct, rename="camel", frozen=True, kw_only=True):
    """Machine. The type is q35 or pc-q35-rhel9.6.0, for example."""

    type: str | None = None


class Tpm(Struct, rename="camel", frozen=True, kw_only=True):
    """TPMDevice of a domain."""

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

    disks: list[Disk] | None = None  # type: ignore[assignment]  # a list of a narrower type; nobody adds to it
    tpm: Tpm | None = None
    interfaces: list[Interface] | None = None
    gpus: list[Present] | None = None
    host_devices: list[Present] | None = None
    filesystems: list[Present] | None = None


class Domain(virtual_machine.Domain, rename="camel", frozen=True, kw_only=True):
    """DomainSpec of a VMI."""

    cpu: Cpu | None = None
    memory: Memory | None = None
    machine: Machine | None = None
    features: Features | None = None
    devices: Devices | None = None
    firmware: Firmware | None = None
    launch_security: Present | None = None


class VMISpec(virtual_machine.VMISpec, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineInstanceSpec, in part."""

    domain: Domain | None = None
    architecture: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    eviction_strategy: str | None = None
    priority_class_name: str | None = None
    resource_claims: list[Reference] | None = None
    virtual_machine_state: Present | None = None


class VMITemplateSpec(virtual_machine.VMITemplateSpec, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineInstanceTemplateSpec, in part."""

    spec: VMISpec = field(default_factory=VMISpec)


class VirtualMachineSpec(virtual_machine.VirtualMachineSpec, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineSpec, in part."""

    template: VMITemplateSpec = field(default_factory=VMITemplateSpec)
    instancetype: Reference | None = None
    preference: Reference | None = None
    running: bool | None = None
    run_strategy: str | None = None


class VirtualMachineStatus(virtual_machine.VirtualMachineStatus, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineStatus, in part.

    `created`: it has a VirtualMachineInstance. `snapshot_in_progress` and `restore_in_progress` are names.
    """

    created: bool | None = None
    snapshot_in_progress: str | None = None
    restore_in_progress: str | None = None


class VirtualMachine(virtual_machine.VirtualMachine, rename="camel", frozen=True, kw_only=True):
    """VirtualMachine, in part."""

    spec: VirtualMachineSpec = field(default_factory=VirtualMachineSpec)
    status: VirtualMachineStatus | None = None

    @property
    def run_strategy(self) -> str:
        """The runStrategy, also by the older `running` (kubevirt.io api/core/v1 types.go)."""
        if self.spec.running is not None:
            return "Always" if self.spec.running else "Halted"
        return self.spec.run_strategy or "Halted"


class VirtualMachineInstance(virtual_machine.VirtualMachineInstance, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineInstance, in part. Its pods have its uid as a label."""

    spec: VMISpec = field(default_factory=VMISpec)
    status: virtual_machine.VMIStatus | None = None
