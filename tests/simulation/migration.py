"""Migration: one VirtualMachineInstanceMigration, and the pod that virt-controller creates for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from simulation.api_server import Object
from simulation.launcher_pod import virt_launcher_pod
from simulation.vm import VM

HOSTNAME: Final = "kubernetes.io/hostname"


@dataclass
class Migration:
    """One VirtualMachineInstanceMigration.

    Attributes:
        by: who made it: "user", "evacuation" (a drain), "balancer", "reunite" or "plan".
        node: the only node that may be its target; empty for any.
        source: the node of the VM when the target pod was created.
        target: the key of the target pod.
        target_node: the node of the target pod, once the migration has ended.
        begins: not before this time: a quota, a backup or a hotplug delays the target pod.
        leaves: the node that an evacuation is for.
        priority: spec.priority.
        gone: KubeVirt has deleted it.
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
    gone: bool = False

    @property
    def unfinished(self) -> bool:
        """Whether it has not succeeded or failed yet."""
        return self.phase not in ("Succeeded", "Failed")


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
