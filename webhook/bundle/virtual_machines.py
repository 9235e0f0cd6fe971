"""The parts of VirtualMachines and VirtualMachineInstances that stay in a bundle: those that `explain` reads.

`explain` derives the pod of a VM from the VM's JSON, and some of these fields no type of `explain` has. Invariant: a
field that no type here names is left out. Cloud-init, SSH keys, boot arguments and serial numbers are such fields.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from webhook.core.api import virtual_machine
from webhook.core.api.affinity import Affinity, TopologySpreadConstraint
from webhook.core.api.meta import ObjectMeta
from webhook.core.api.pod import Toleration
from webhook.explain.api import kubevirt


class Present(Struct):
    """An object that only has to be there: all of its fields are left out."""


class _Name(Struct, rename="camel", frozen=True, kw_only=True):
    name: str | None = None
    kind: str | None = None


class _Cpu(kubevirt.Cpu, rename="camel", frozen=True, kw_only=True):
    sockets: int | None = None
    cores: int | None = None
    threads: int | None = None
    dedicated_cpu_placement: bool | None = None
    features: list[Present] | None = None
    realtime: Present | None = None


class _HugePages(Struct, rename="camel", frozen=True, kw_only=True):
    page_size: str | None = None


class _Memory(Struct, rename="camel", frozen=True, kw_only=True):
    guest: Any = None
    hugepages: _HugePages | None = None


class _Resources(Struct, rename="camel", frozen=True, kw_only=True):
    requests: dict[str, Any] | None = None
    limits: dict[str, Any] | None = None


class _Features(Struct, rename="camel", frozen=True, kw_only=True):
    hyperv: Present | None = None


class _Interface(Struct, rename="camel", frozen=True, kw_only=True):
    sriov: Present | None = None


class _Lun(Struct, rename="camel", frozen=True, kw_only=True):
    reservation: bool | None = None


class _Disk(virtual_machine.Disk, rename="camel", frozen=True, kw_only=True):
    lun: _Lun | None = None


class _Devices(kubevirt.Devices, rename="camel", frozen=True, kw_only=True):
    interfaces: list[_Interface] | None = None
    gpus: list[Present] | None = None
    host_devices: list[Present] | None = None
    disks: list[_Disk] | None = None  # type: ignore[assignment]  # a list of a narrower type; nobody adds to it


class _Domain(kubevirt.Domain, rename="camel", frozen=True, kw_only=True):
    cpu: _Cpu | None = None
    memory: _Memory | None = None
    resources: _Resources | None = None
    features: _Features | None = None
    devices: _Devices | None = None
    launch_security: Present | None = None


class _Spec(Struct, rename="camel", frozen=True, kw_only=True):
    domain: _Domain | None = None
    volumes: list[virtual_machine.Volume] | None = None
    architecture: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    resource_claims: list[_Name] | None = None
    virtual_machine_state: Present | None = None


class _Template(Struct, rename="camel", frozen=True, kw_only=True):
    metadata: ObjectMeta | None = None
    spec: _Spec = field(default_factory=_Spec)


class _VirtualMachineSpec(Struct, rename="camel", frozen=True, kw_only=True):
    template: _Template = field(default_factory=_Template)
    instancetype: _Name | None = None
    preference: _Name | None = None
    running: bool | None = None
    run_strategy: str | None = None


class _VirtualMachineStatus(kubevirt.Status, rename="camel", frozen=True, kw_only=True):
    start_failure: virtual_machine.StartFailure | None = None
    created: bool | None = None


class KeptVirtualMachine(Struct, rename="camel", frozen=True, kw_only=True):
    """What stays of a VirtualMachine."""

    metadata: ObjectMeta
    spec: _VirtualMachineSpec = field(default_factory=_VirtualMachineSpec)
    status: _VirtualMachineStatus | None = None


class _VolumeStatus(Struct, rename="camel", frozen=True, kw_only=True):
    name: str | None = None
    hotplug_volume: Present | None = None


class _VMIStatus(kubevirt.Status, rename="camel", frozen=True, kw_only=True):
    phase: str | None = None
    volume_status: list[_VolumeStatus] | None = None


class KeptVMI(Struct, rename="camel", frozen=True, kw_only=True):
    """What stays of a VirtualMachineInstance. Its pods have its uid as a label."""

    metadata: virtual_machine.VMIMetadata
    spec: _Spec = field(default_factory=_Spec)
    status: _VMIStatus | None = None
