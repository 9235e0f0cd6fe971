"""Storm: the nodes, the VMs and the other pods of a cluster after a power cut."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from support.control_plane.kube_api import Object
from support.objects import builders

PRIORITIES: Final = {"tests-low": -10, "tests-high": 1000}
CLASSES: Final = (None, None, "tests-high", "tests-low")
"""VMs take these in turn: the scheduler looks at those of a high class first, and lets them preempt the others."""
_ONE_CPU: Final = {"requests": {"cpu": "1", "memory": "1Gi"}}
_FILLER: Final = "filler"


class Storm(NamedTuple):
    """So many VMs, whose share-managers are on the first few nodes, each with `seats` for VMs beside low-class pods."""

    nodes: int = 20
    vms: int = 500
    homes: int = 5
    seats: int = 40
    fillers: int = 2

    @property
    def home_names(self) -> list[str]:
        """The nodes with share-managers."""
        return [_name(index) for index in range(self.homes)]

    @property
    def room(self) -> int:
        """How many VMs can be with their share-managers."""
        return min(self.vms, self.homes * self.seats)

    @property
    def afterwards(self) -> int:
        """The first VM that waits for what is done amid the others."""
        return self.room * 3 // 4

    def home(self, vm: int) -> str:
        """The node of a VM's share-manager."""
        return _name(vm % self.homes)

    def objects(self) -> list[Object]:
        """What is there before any VM starts: nodes, foreign pods on some, volumes with share-managers that run."""
        names = [_name(index) for index in range(self.nodes)]
        found = [_node(name, self.seats + self.fillers) for name in names]
        found += [builders.longhorn_node(name) for name in names]
        homes = self.home_names
        found += [filler(f"{name}-{index}", name, "tests-low") for name in homes for index in range(self.fillers)]
        for vm in range(self.vms):
            claim, volume = f"disk-{vm:03}", f"pvc-{vm:03}"
            found += [
                builders.persistent_volume_claim(claim, volume_name=volume),
                builders.persistent_volume(volume, claim=claim, handle=volume),
                builders.share_manager(volume, state="running", ownerID=self.home(vm)),
                builders.share_manager_pod(volume, nodeName=self.home(vm)),
            ]
        return found

    def launcher(self, vm: int) -> Object:
        """A VM's pod, as virt-controller makes it."""
        containers = [{"name": "compute", "image": "quay.io/kubevirt/virt-launcher:v1.9.0", "resources": _ONE_CPU}]
        name = CLASSES[vm // self.homes % len(CLASSES)]
        classed = {} if name is None else {"priorityClassName": name}
        return builders.vm_pod(
            f"vm-{vm:03}", claims=[f"disk-{vm:03}"], opt_in="required", containers=containers, **classed
        )


def _name(index: int) -> str:
    return f"node-{index:03}"


def filler(name: str, node: str | None, priority_class: str, **spec: Any) -> Object:
    """Somebody else's pod, as large as a VM's."""
    placed = {"nodeName": node} if node else {}
    container = {"name": "other", "image": "registry.example.com/other:1", "resources": _ONE_CPU}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{_FILLER}-{name}", "namespace": "default"},
        "spec": {"containers": [container], "priorityClassName": priority_class, **placed, **spec},
        "status": {"phase": "Running" if node else "Pending"},
    }


def _node(name: str, cpus: int) -> Object:
    node = builders.node(name)
    node["status"]["allocatable"]["cpu"] = node["status"]["capacity"]["cpu"] = str(cpus)
    return node


def _priority_class(name: str, value: int) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }
