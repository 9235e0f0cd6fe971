"""What makes a VM start anew: the command that KubeVirt takes for the VM's runStrategy. Pure.

A pod is decided on once, when it is created, so a VM that is stuck or apart needs a new one. Rules: kubevirt
pkg/virt-api/rest/lifecycle.go (RestartVMRequestHandler refuses Once and Halted) and pkg/virt-controller/watch/vm/vm.go
(syncRunStrategy: Once starts a VM whose instance is not there). To stop and start a VM with Once is no way: `virtctl
stop` makes it Halted, and `virtctl start` then Always.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_ALWAYS: Final = "Always"
_HALTED: Final = "Halted"
_ONCE: Final = "Once"


def run_strategy(spec: Mapping[str, Any]) -> str:
    """A VirtualMachine's; `running` is the older way to say it (kubevirt.io api/core/v1 types.go, RunStrategy)."""
    running = spec.get("running")
    if running is not None:
        return _ALWAYS if running else _HALTED
    return spec.get("runStrategy") or _HALTED


def command(name: str, namespace: str, strategy: str | None) -> str:
    """How to start a VirtualMachine anew; without its runStrategy what holds for each.

    A VM that is Halted is being stopped already.
    """
    restart = f"virtctl restart {name} -n {namespace}"
    delete = f"kubectl delete virtualmachineinstance {name} -n {namespace}"
    if strategy is None:
        return f"{restart}; where the VM's runStrategy is Once: {delete}"
    if strategy == _ONCE:
        return f"{delete}; the VM's runStrategy is Once: KubeVirt refuses a restart, and makes a deleted instance anew"
    if strategy == _HALTED:
        return f"virtctl start {name} -n {namespace}, once KubeVirt has stopped it: the VM's runStrategy is Halted"
    return restart


def unowned(name: str) -> str:
    """The same for a VirtualMachineInstance that no VirtualMachine owns: KubeVirt makes it once, and never anew."""
    return f"no VirtualMachine owns {name}, so it is for whoever made it to stop and start it"
