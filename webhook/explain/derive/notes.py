"""What to tell beside a derived pod: the fields that were not derived, the opt-in that stands in the wrong place.

Sentences only; nothing here changes the pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from webhook.core.api.meta import ObjectMeta
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE

_HOOK_SIDECARS: Final = "hooks.kubevirt.io/hookSidecars"
CLUSTER: Final = (
    "derived from the object alone: what the KubeVirt resource sets for all (default CPU model, machine type, "
    "architecture, node placement, CPU allocation ratio) is not in it, nor the memory that KubeVirt adds for itself"
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
"""Below a VirtualMachineInstanceSpec: a field, and what KubeVirt makes of it that is not made here."""


def unexpanded(vm_spec: Mapping[str, Any]) -> Iterator[str]:
    """The parts of a VirtualMachineSpec that KubeVirt merges into the instance, and we do not."""
    for field in ("instancetype", "preference"):
        if vm_spec.get(field):
            yield f"not derived: what its {field} adds (CPUs, memory, CPU model, node selector and the like)"


def not_derived(meta: ObjectMeta, spec: Mapping[str, Any]) -> Iterator[str]:
    """The parts of a VirtualMachineInstance that would have become something in the pod.

    Args:
        meta: the instance's.
        spec: the VirtualMachineInstanceSpec as it was written.
    """
    for path, what in _NOT_DERIVED:
        if _has(spec, path):
            yield f"not derived: {what}"
    if meta.annotation(_HOOK_SIDECARS):
        yield f"not derived: the claims of its hook sidecars (annotation {_HOOK_SIDECARS})"


def _has(value: object, path: Sequence[str]) -> bool:
    """Whether the field is there and on, in any of the items where a list is met; {} is how KubeVirt spells "on"."""
    if isinstance(value, list):
        return any(_has(item, path) for item in value)
    if not path:
        return value not in (None, False)
    return isinstance(value, dict) and _has(value.get(path[0]), path[1:])


def misplaced(meta: ObjectMeta, owner: ObjectMeta | None, place: str) -> Iterator[str]:
    """Where the opt-in stands although it does not count there, while the pod has none.

    Args:
        meta: what reaches the pod; it stands in `place`.
        owner: the VirtualMachine's own metadata, which does not reach the pod.
        place: the field that `meta` is.
    """
    if meta.annotation(ANNOTATION_CO_SCHEDULE) is not None:
        return
    found = {
        "metadata.annotations": owner and owner.annotation(ANNOTATION_CO_SCHEDULE),
        "metadata.labels": owner and owner.label(ANNOTATION_CO_SCHEDULE),
        f"{place}.labels": meta.label(ANNOTATION_CO_SCHEDULE),
    }
    for where, value in found.items():
        if value is not None:
            yield (
                f'{ANNOTATION_CO_SCHEDULE}: "{value}" stands in {where}, where it does not count; '
                f"expected in {place}.annotations: move it there"
            )
