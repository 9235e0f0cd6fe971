"""Notes on a derived pod: the fields that were not derived.

Invariant: nothing here changes the pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from webhook.core.api.meta import ObjectMeta
from webhook.objects.api.kubevirt import VirtualMachineSpec

_HOOK_SIDECARS: Final = "hooks.kubevirt.io/hookSidecars"
CLUSTER: Final = (
    "derived from the object alone. The pod lacks the memory that KubeVirt adds for itself, and what the KubeVirt "
    "resource sets for all VMs: default CPU model, machine type, architecture, node placement, CPU allocation ratio"
)
_NOT_DERIVED: Final[Sequence[tuple[tuple[str, ...], str]]] = (
    (("domain", "cpu", "features"), "the node labels of its CPU features"),
    (("domain", "cpu", "dedicatedCpuPlacement"), "the node label of dedicated CPUs (cpumanager)"),
    (("domain", "cpu", "realtime"), "the node label of realtime (kubevirt.io/realtime)"),
    (("domain", "features", "hyperv"), "the node labels of its Hyper-V features"),
    (("domain", "launchSecurity"), "the node labels of its launch security (SEV, SNP, TDX, Secure Execution)"),
    (("domain", "devices", "interfaces", "sriov"), "the device requests of its SR-IOV interfaces"),
    (("domain", "devices", "gpus"), "the device requests of its GPUs"),
    (("domain", "devices", "hostDevices"), "the device requests of its host devices"),
    (("domain", "devices", "disks", "lun", "reservation"), "the pod anti-affinity of SCSI persistent reservation"),
    (("virtualMachineState",), "the claim of its virtualMachineState"),
)
"""A field of VirtualMachineInstanceSpec, and what KubeVirt adds to the pod for it that `derive` does not add."""


def unexpanded(vm_spec: VirtualMachineSpec) -> Iterator[str]:
    """Return a note for each part of a VirtualMachineSpec that KubeVirt merges into the VMI and `derive` does not."""
    for field in ("instancetype", "preference"):
        if getattr(vm_spec, field):
            yield f"not derived: what its {field} adds, such as CPUs, memory, CPU model and node selector"


def not_derived(meta: ObjectMeta, spec: Mapping[str, Any]) -> Iterator[str]:
    """Return a note for each part of a VirtualMachineInstance that KubeVirt, but not `derive`, uses for the pod.

    Args:
        meta: the metadata of the VMI.
        spec: the VirtualMachineInstanceSpec as JSON.
    """
    for path, what in _NOT_DERIVED:
        if _has(spec, path):
            yield f"not derived: {what}"
    if meta.annotation(_HOOK_SIDECARS):
        yield f"not derived: the claims of its hook sidecars (annotation {_HOOK_SIDECARS})"


def _has(value: object, path: Sequence[str]) -> bool:
    """Whether the field is set: present, and neither null nor false. An empty object counts as set, as in KubeVirt.

    In a list, one item that has the field is enough.
    """
    if isinstance(value, list):
        return any(_has(item, path) for item in value)
    if not path:
        return value not in (None, False)
    return isinstance(value, dict) and _has(value.get(path[0]), path[1:])
