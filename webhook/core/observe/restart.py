"""How a user restarts a VM: its VirtualMachine, and the command that KubeVirt accepts for its runStrategy.

The webhook decides for a pod once, when the pod is created. A VM that is stuck or apart therefore needs a new pod.
Rules: kubevirt pkg/virt-api/rest/lifecycle.go (RestartVMRequestHandler refuses Once and Halted) and
pkg/virt-controller/watch/vm/vm.go (syncRunStrategy: Once starts a VM that has no VirtualMachineInstance). A VM with
Once can't be stopped and started: `virtctl stop` makes it Halted, and `virtctl start` then makes it Always.
"""

from __future__ import annotations

from typing import Final

_HALTED: Final = "Halted"
_ONCE: Final = "Once"


def restart_command(name: str, namespace: str, strategy: str | None) -> str:
    """Return the command that restarts a VirtualMachine; for a `strategy` of None a text for all strategies.

    If the runStrategy is Halted, KubeVirt is stopping the VM already.
    """
    restart = f"virtctl restart {name} -n {namespace}"
    delete = f"kubectl delete virtualmachineinstance {name} -n {namespace}"
    if strategy is None:
        return f"{restart}; if the VM's runStrategy is Once: {delete}"
    if strategy == _ONCE:
        return f"{delete}; the VM's runStrategy is Once: KubeVirt refuses a restart, and recreates what is deleted"
    if strategy == _HALTED:
        return f"virtctl start {name} -n {namespace}, once KubeVirt has stopped it: the VM's runStrategy is Halted"
    return restart


def new_pod_command(pod: str, name: str, namespace: str) -> str:
    """Return the command that gives a VM another pod in place of one that has never run.

    virt-controller sets the VMI of a pod that is deleted to Failed. Always and RerunOnFailure then make a new one.
    Manual waits for a start (StartVMRequestHandler). Once refuses it, and starts again if its VMI is deleted.
    """
    return (
        f"kubectl delete pod {pod} -n {namespace}; if the VM's runStrategy is Manual, also: virtctl start {name} "
        f"-n {namespace}; if it is Once, instead: kubectl delete virtualmachineinstance {name} -n {namespace}"
    )


def restart_without_owner(name: str) -> str:
    """Return the advice for a VirtualMachineInstance without a VirtualMachine, which KubeVirt never recreates."""
    return f"no VirtualMachine owns {name}, so its creator must stop and start it"
