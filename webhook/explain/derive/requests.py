"""The resource requests of the pod of a VirtualMachineInstance, as far as they follow from the VMI alone.

Rules: kubevirt pkg/virt-controller/services/template.go and renderresources.go. Not included: the memory that
virt-launcher needs for itself (about 300 MiB, more for large guests), and devices, because a cluster can emulate KVM.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.objects.fields import field_at

_CPU_SHARE_MILLI: Final = 100  # for each vCPU: the default cpuAllocationRatio is 10
_WHOLE_CPU_MILLI: Final = 1000
_SCRATCH: Final = "50M"


def containers(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the container `compute` with its requests, as JSON.

    Args:
        spec: the VirtualMachineInstanceSpec as JSON.
    """
    own = _amounts(field_at(spec, "domain", "resources", "requests"))
    limits = _amounts(field_at(spec, "domain", "resources", "limits"))
    cpu = f"{_cpu_milli(field_at(spec, 'domain', 'cpu'))}m"
    asked = {"cpu": cpu, "ephemeral-storage": _SCRATCH, **_memory(spec, limits | own)}
    asked |= {name: amount for name, amount in own.items() if name != "memory"}
    return [{"name": "compute", "resources": {"requests": asked}}]


def _cpu_milli(cpu: Any) -> int:
    """The CPU request in milli-CPU: sockets x cores x threads, as whole CPUs if the VM has dedicated CPUs."""
    cpu = cpu if isinstance(cpu, dict) else {}
    count = 1
    for part in ("sockets", "cores", "threads"):
        number = cpu.get(part)
        count *= number if isinstance(number, int) and number > 0 else 1
    return count * (_WHOLE_CPU_MILLI if cpu.get("dedicatedCpuPlacement") is True else _CPU_SHARE_MILLI)


def _memory(spec: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The memory request of the domain, or else the memory of the guest; as huge pages if the guest uses them."""
    guest = own.get("memory") or _amounts(field_at(spec, "domain", "memory")).get("guest")
    if not guest:
        return {}
    size = field_at(spec, "domain", "memory", "hugepages", "pageSize")
    return {f"hugepages-{size}" if isinstance(size, str) else "memory": guest}


def _amounts(value: Any) -> dict[str, Any]:
    """The quantities of a mapping. Other values are left out: the API server refuses them."""
    return (
        {key: amount for key, amount in value.items() if isinstance(amount, str | int)}
        if isinstance(value, dict)
        else {}
    )
