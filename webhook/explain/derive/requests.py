"""What the pod of a VirtualMachineInstance asks of a node, as far as the instance tells it.

As KubeVirt's pkg/virt-controller/services/template.go and renderresources.go have it. The memory that virt-launcher
needs itself, some 300 MiB and more for large guests, is not in it; nor are devices: a cluster may emulate KVM.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.explain.api.fields import field_at

_CPU_SHARE_MILLI: Final = 100  # for each vCPU: the default cpuAllocationRatio is 10
_WHOLE_CPU_MILLI: Final = 1000
_SCRATCH: Final = "50M"


def containers(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The containers of the pod: the one that counts, with its requests.

    Args:
        spec: the VirtualMachineInstanceSpec as it was written.
    """
    own = _amounts(field_at(spec, "domain", "resources", "requests"))
    limits = _amounts(field_at(spec, "domain", "resources", "limits"))
    cpu = f"{_cpu_milli(field_at(spec, 'domain', 'cpu'))}m"
    asked = {"cpu": cpu, "ephemeral-storage": _SCRATCH, **_memory(spec, limits | own)}
    asked |= {name: amount for name, amount in own.items() if name != "memory"}
    return [{"name": "compute", "resources": {"requests": asked}}]


def _cpu_milli(cpu: Any) -> int:
    """Sockets, cores and threads; whole CPUs where they are the VM's alone."""
    cpu = cpu if isinstance(cpu, dict) else {}
    count = 1
    for part in ("sockets", "cores", "threads"):
        told = cpu.get(part)
        count *= told if isinstance(told, int) and told > 0 else 1
    return count * (_WHOLE_CPU_MILLI if cpu.get("dedicatedCpuPlacement") is True else _CPU_SHARE_MILLI)


def _memory(spec: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """What the domain asks for, else what the guest sees; as huge pages where it is on those."""
    guest = told.get("memory") or _amounts(field_at(spec, "domain", "memory")).get("guest")
    if not guest:
        return {}
    size = field_at(spec, "domain", "memory", "hugepages", "pageSize")
    return {f"hugepages-{size}" if isinstance(size, str) else "memory": guest}


def _amounts(value: Any) -> dict[str, Any]:
    """The quantities of a mapping; what is none, or no mapping, an API server would refuse."""
    return {key: told for key, told in value.items() if isinstance(told, str | int)} if isinstance(value, dict) else {}
