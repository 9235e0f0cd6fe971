"""What the models know of one VirtualMachine and of its migrations, and the objects that virt-controller writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from simulation.api_server import VMS, Object
from support.objects import builders
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance

HOSTNAME: Final = "kubernetes.io/hostname"
SICK: Final = ("refused", "slow", "never converges", "changed", "busy")
"""A VM whose migration the API server refuses, KubeVirt does not begin, or fails; a VM whose node selector was changed
live, and one whose CPUs are being changed."""


@dataclass
class VM:
    """One VirtualMachine.

    Attributes:
        pod: the key of the pod in which it runs or will run; empty for none.
        running: whether its guest runs.
        started: when its VirtualMachineInstance was created.
        evacuates: the node that it must leave.
        migration: the unfinished migration.
        finished: the migrations that KubeVirt still has.
        last_migration: the one that ended last.
        sick: what keeps its migrations from ending well: a name of SICK; empty for a healthy VM.
    """

    name: str
    memory_mib: int
    volumes: tuple[str, ...]
    always_on: bool = False
    uid: str = ""
    pod: str = ""
    wanted: bool = False
    running: bool = False
    starts: int = 0
    started: float = 0.0
    evacuates: str = ""
    migration: Migration | None = None
    finished: list[Migration] = field(default_factory=list)
    last_migration: Migration | None = None
    sick: str = ""


@dataclass
class Migration:
    """One VirtualMachineInstanceMigration.

    Attributes:
        by: who made it: "user", "evacuation" (a drain), "balancer" or "reunite".
        node: the only node that may be its target; empty for any.
        source: the node of the VM when the target pod was created.
        target: the key of the target pod.
        target_node: the node of the target pod, once the migration has ended.
        begins: not before this time: a hotplug delays the target pod.
        leaves: the node that an evacuation is for.
        priority: spec.priority.
    """

    name: str
    vm: VM
    uid: str
    by: str
    node: str
    created: float
    phase: str = "Pending"
    source: str = ""
    target: str = ""
    target_node: str = ""
    begins: float = 0.0
    ended: float = 0.0
    leaves: str = ""
    priority: str = ""

    @property
    def unfinished(self) -> bool:
        """Whether it has not succeeded or failed yet."""
        return self.phase not in ("Succeeded", "Failed")


def machine_of(vm: VM) -> Object:
    """Return the VirtualMachine."""
    return virtual_machine(vm.name, _claims(vm), namespace=VMS)


def instance_of(vm: VM, node: str) -> Object:
    """Return the VirtualMachineInstance of a start of the VM, which runs on `node`, or on none yet."""
    return virtual_machine_instance(vm.name, _claims(vm), namespace=VMS, uid=vm.uid, node=node or None)


def virt_launcher_pod(vm: VM, **more: Object) -> Object:
    """Return the pod that virt-controller creates for a start of the VM."""
    resources = {"requests": {"cpu": "100m", "memory": f"{vm.memory_mib + 256}Mi"}}
    pod = builders.virt_launcher_pod(
        claims=_claims(vm),
        namespace=VMS,
        nodeSelector={"kubevirt.io/schedulable": "true", "kubernetes.io/arch": "amd64"},
        containers=[{"name": "compute", "resources": resources}],
        **more,
    )
    meta = pod["metadata"]
    meta["generateName"] = f"virt-launcher-{vm.name}-"
    meta["labels"]["kubevirt.io/created-by"] = vm.uid
    meta["ownerReferences"][0] |= {"name": vm.name, "uid": vm.uid}
    return pod


def target_pod(migration: Migration) -> Object:
    """Return the target pod that virt-controller creates. It comes from the VMI, without the webhook's terms."""
    vm = migration.vm
    term = {"labelSelector": {"matchLabels": {"kubevirt.io/created-by": vm.uid}}, "topologyKey": HOSTNAME}
    pod = virt_launcher_pod(
        vm,
        labels={"kubevirt.io/migrationJobUID": migration.uid, "kubevirt.io/nodeName": migration.source},
        annotations={"kubevirt.io/migrationJobName": migration.name},
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )
    if migration.node:
        pod["spec"]["nodeSelector"][HOSTNAME] = migration.node
    return pod


def _claims(vm: VM) -> list[str]:
    return [f"{volume}-claim" for volume in vm.volumes]
