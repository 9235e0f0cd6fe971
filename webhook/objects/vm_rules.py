"""The rules of a VM that decide, beside its claims, where it can run: named, and evaluated by nobody here.

KubeVirt makes them rules of the pod, some together with what the KubeVirt resource and the nodes say. Invariant:
nothing here decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from webhook.core.api.meta import ObjectMeta
from webhook.core.observe.next_start import TEMPLATE, misplaced
from webhook.objects.api.kubevirt import VirtualMachine, VirtualMachineInstance, VMISpec
from webhook.objects.fields import as_fields, field_at

_HOOK_SIDECARS: Final = "hooks.kubevirt.io/hookSidecars"
_FIELDS: Final[Sequence[tuple[tuple[str, ...], str]]] = (
    (("affinity",), "affinity"),
    (("tolerations",), "tolerations"),
    (("topologySpreadConstraints",), "topology spread constraints"),
    (("resourceClaims",), "resource claims"),
    (("architecture",), "architecture"),
    (("domain", "machine", "type"), "machine type"),
    (("domain", "cpu", "model"), "CPU model"),
    (("domain", "cpu", "features"), "CPU features"),
    (("domain", "cpu", "dedicatedCpuPlacement"), "dedicated CPUs"),
    (("domain", "cpu", "realtime"), "realtime CPUs"),
    (("domain", "memory", "hugepages"), "huge pages"),
    (("domain", "features", "hyperv"), "Hyper-V features"),
    (("domain", "launchSecurity"), "launch security"),
    (("domain", "devices", "interfaces", "sriov"), "SR-IOV interfaces"),
    (("domain", "devices", "gpus"), "GPUs"),
    (("domain", "devices", "hostDevices"), "host devices"),
    (("domain", "devices", "disks", "lun", "reservation"), "SCSI persistent reservation"),
    (("domain", "devices", "tpm", "persistent"), "persistent TPM, whose claim the VM does not name"),
    (("domain", "firmware", "bootloader", "efi", "persistent"), "persistent EFI, whose claim the VM does not name"),
    (("virtualMachineState",), "virtualMachineState, whose claim is not looked at"),
)
"""A field of VirtualMachineInstanceSpec that becomes a rule of the pod, and its name for the user."""


def meta_of(vm: VirtualMachine | VirtualMachineInstance, namespace: str) -> ObjectMeta:
    """Return the metadata that KubeVirt copies to the VM's pod, with the VM's own name and namespace."""
    copied = vm.spec.template.metadata or ObjectMeta() if isinstance(vm, VirtualMachine) else vm.metadata
    return ObjectMeta(
        name=vm.metadata.name,
        namespace=vm.metadata.namespace or namespace,
        labels=copied.labels,
        annotations=copied.annotations,
    )


def hints_of(vm: VirtualMachine | VirtualMachineInstance) -> list[str]:
    """Return a sentence for each wrong place that has the opt-in annotation."""
    if isinstance(vm, VirtualMachine):
        return list(misplaced(vm.spec.template.metadata or ObjectMeta(), vm.metadata, TEMPLATE))
    return list(misplaced(vm.metadata, None, "metadata"))


def rules_of(vm: VirtualMachine | VirtualMachineInstance) -> list[str]:
    """Return the names of the rules, with the values of node selectors and the names of instance types."""
    spec, meta = _spec_of(vm), meta_of(vm, "")
    return [*_references(vm), *_named(as_fields(spec), meta), "CPUs and memory"]


def _references(vm: VirtualMachine | VirtualMachineInstance) -> Iterator[str]:
    if isinstance(vm, VirtualMachine):
        for field in ("instancetype", "preference"):
            reference = getattr(vm.spec, field)
            if reference:
                yield f"{field} {reference.name or '(no name)'}"


def _named(spec: Mapping[str, Any], meta: ObjectMeta) -> Iterator[str]:
    selector = spec.get("nodeSelector") or {}
    if selector:
        yield f"node selector {', '.join(f'{key}={value}' for key, value in sorted(selector.items()))}"
    yield from (name for path, name in _FIELDS if _has(spec, path))
    if meta.annotation(_HOOK_SIDECARS):
        yield f"hook sidecars (annotation {_HOOK_SIDECARS})"


def shares_by_virtiofs(vm: VirtualMachine | VirtualMachineInstance) -> bool:
    """Whether the VM has a volume as a file system, which a block device can't replace."""
    return bool(field_at(as_fields(_spec_of(vm)), "domain", "devices", "filesystems"))


def _spec_of(vm: VirtualMachine | VirtualMachineInstance) -> VMISpec:
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
