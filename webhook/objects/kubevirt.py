"""KubeVirt's VirtualMachine and its instance, with all fields that the commands read, and the rules in these fields.

Beside its claims, the rules decide where a VM can run. KubeVirt makes them rules of the pod, some together with what
the KubeVirt resource and the nodes say. They are named here, and evaluated by nobody. Invariant: every field can be
absent or null, and a field that is not named here stays nowhere. Cloud-init, SSH keys, boot arguments and serial
numbers are such fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, defstruct, field, to_builtins

from webhook.core.api import virtual_machine
from webhook.core.api.affinity import Affinity, TopologySpreadConstraint
from webhook.core.api.meta import ApiType, ObjectMeta, ObjectReference, Present
from webhook.core.api.pod import Toleration
from webhook.core.observe.next_start import TEMPLATE, misplaced
from webhook.objects.documents import field_at

_HOOK_SIDECARS: Final = "hooks.kubevirt.io/hookSidecars"
RULES: Final[Mapping[str, str]] = {
    "affinity": "affinity",
    "tolerations": "tolerations",
    "topologySpreadConstraints": "topology spread constraints",
    "resourceClaims": "resource claims",
    "architecture": "architecture",
    "domain.machine.type": "machine type",
    "domain.cpu.model": "CPU model",
    "domain.cpu.features": "CPU features",
    "domain.cpu.dedicatedCpuPlacement": "dedicated CPUs",
    "domain.cpu.realtime": "realtime CPUs",
    "domain.memory.hugepages": "huge pages",
    "domain.features.hyperv": "Hyper-V features",
    "domain.launchSecurity": "launch security",
    "domain.devices.interfaces.sriov": "SR-IOV interfaces",
    "domain.devices.gpus": "GPUs",
    "domain.devices.hostDevices": "host devices",
    "domain.devices.disks.lun.reservation": "SCSI persistent reservation",
    "domain.devices.tpm.persistent": "persistent TPM, whose claim the VM does not name",
    "domain.firmware.bootloader.efi.persistent": "persistent EFI, whose claim the VM does not name",
    "virtualMachineState": "virtualMachineState, whose claim is not looked at",
}
"""A field of VirtualMachineInstanceSpec that becomes a rule of the pod, and its name for the user."""
_DOMAIN: Final = "domain"
_FILESYSTEMS: Final = "devices.filesystems"  # no rule: a volume as a file system, which a block device can't replace
_LISTS: Final = ("disks", "interfaces")
_OF_CORE: Final[Mapping[str, type[Struct]]] = {
    _DOMAIN: virtual_machine.Domain,
    "devices": virtual_machine.Devices,
    "disks": virtual_machine.Disk,
}
"""The types to which the fields of rules are added."""


def _type_of(name: str, paths: Sequence[str]) -> Any:
    """Return the type of a field: a struct of the fields on these paths. Without one, what a rule's name depends on.

    That is whether the field is set. The content of an object, or of a list's items, is left out.
    """
    inner: dict[str, list[str]] = {}
    for step, _, rest in (path.partition(".") for path in paths if path):
        inner.setdefault(step, []).append(rest)
    if not inner:
        return bool | str | Present | list[Present]
    fields = [(step, _type_of(step, rests) | None, None) for step, rests in inner.items()]
    made = defstruct(name.capitalize(), fields, bases=(_OF_CORE.get(name, ApiType),))
    return list[made] if name in _LISTS else made  # type: ignore[valid-type]


_OF_DOMAIN: Final = [path.partition(".")[2] for path in RULES if path.startswith(f"{_DOMAIN}.")]
Domain: Final = _type_of(_DOMAIN, [*_OF_DOMAIN, _FILESYSTEMS])
"""DomainSpec, with the fields of the rules."""


class VMISpec(virtual_machine.VMISpec):
    """VirtualMachineInstanceSpec, in part."""

    domain: Domain | None = None  # type: ignore[valid-type]
    architecture: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    eviction_strategy: str | None = None
    priority_class_name: str | None = None
    resource_claims: list[Present] | None = None
    virtual_machine_state: Present | None = None


class VMITemplateSpec(virtual_machine.VMITemplateSpec):
    """VirtualMachineInstanceTemplateSpec, in part."""

    spec: VMISpec = field(default_factory=VMISpec)


class VirtualMachineSpec(virtual_machine.VirtualMachineSpec):
    """VirtualMachineSpec, in part."""

    template: VMITemplateSpec = field(default_factory=VMITemplateSpec)
    instancetype: ObjectReference | None = None
    preference: ObjectReference | None = None
    running: bool | None = None
    run_strategy: str | None = None


class VirtualMachineStatus(virtual_machine.VirtualMachineStatus):
    """VirtualMachineStatus, in part.

    `created`: it has a VirtualMachineInstance. `snapshot_in_progress` and `restore_in_progress` are names.
    """

    created: bool | None = None
    snapshot_in_progress: str | None = None
    restore_in_progress: str | None = None


class VirtualMachine(virtual_machine.VirtualMachine):
    """VirtualMachine, in part."""

    spec: VirtualMachineSpec = field(default_factory=VirtualMachineSpec)
    status: VirtualMachineStatus | None = None

    @property
    def run_strategy(self) -> str:
        """The runStrategy, also by the older `running` (kubevirt.io api/core/v1 types.go)."""
        if self.spec.running is not None:
            return "Always" if self.spec.running else "Halted"
        return self.spec.run_strategy or "Halted"


class VirtualMachineInstance(virtual_machine.VirtualMachineInstance):
    """VirtualMachineInstance, in part. Its pods have its uid as a label."""

    spec: VMISpec = field(default_factory=VMISpec)
    status: virtual_machine.VMIStatus | None = None


AnyVM = VirtualMachine | VirtualMachineInstance


def meta_of(vm: AnyVM, namespace: str) -> ObjectMeta:
    """Return the metadata that KubeVirt copies to the VM's pod, with the VM's own name and namespace."""
    copied = vm.spec.template.metadata or ObjectMeta() if isinstance(vm, VirtualMachine) else vm.metadata
    return ObjectMeta(
        name=vm.metadata.name,
        namespace=vm.metadata.namespace or namespace,
        labels=copied.labels,
        annotations=copied.annotations,
    )


def hints_of(vm: AnyVM) -> list[str]:
    """Return a sentence for each wrong place that has the opt-in annotation."""
    if isinstance(vm, VirtualMachine):
        return list(misplaced(vm.spec.template.metadata or ObjectMeta(), vm.metadata, TEMPLATE))
    return list(misplaced(vm.metadata, None, "metadata"))


def rules_of(vm: AnyVM) -> list[str]:
    """Return the names of the rules, with the values of node selectors and the names of instance types."""
    return [*_rules_of(vm), "CPUs and memory"]


def _rules_of(vm: AnyVM) -> Iterator[str]:
    if isinstance(vm, VirtualMachine):
        references = {"instancetype": vm.spec.instancetype, "preference": vm.spec.preference}
        yield from (f"{field} {found.name or '(no name)'}" for field, found in references.items() if found)
    spec = _spec_of(vm)
    if selector := spec.node_selector:
        yield f"node selector {', '.join(f'{key}={value}' for key, value in sorted(selector.items()))}"
    fields = to_builtins(spec)
    yield from (name for path, name in RULES.items() if _has(fields, path.split(".")))
    if meta_of(vm, "").annotation(_HOOK_SIDECARS):
        yield f"hook sidecars (annotation {_HOOK_SIDECARS})"


def shares_by_virtiofs(vm: AnyVM) -> bool:
    """Whether the VM has a volume as a file system, which a block device can't replace."""
    return bool(field_at(to_builtins(_spec_of(vm)), _DOMAIN, *_FILESYSTEMS.split(".")))


def _spec_of(vm: AnyVM) -> VMISpec:
    return vm.spec.template.spec if isinstance(vm, VirtualMachine) else vm.spec


def _has(value: object, path: Sequence[str]) -> bool:
    """Whether the field is set: present, and neither null nor false. An empty object counts as set, as in KubeVirt.

    In a list, one item that has the field is enough.
    """
    if isinstance(value, list):
        return any(_has(item, path) for item in value)
    if not path:
        return value not in (None, False)
    return isinstance(value, dict) and _has(value.get(path[0]), path[1:])
