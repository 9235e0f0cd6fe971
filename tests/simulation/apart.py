"""Apart: which VMs are on another node than their share-managers, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from simulation.api_server import LONGHORN, POD, Object

from webhook.core.view import Kind

if TYPE_CHECKING:
    from simulation.vm import VM
    from simulation.world import World

_SHARE_MANAGER: Final = f"{LONGHORN}/share-manager-"
_VIRT_LAUNCHER: Final = "vms/virt-launcher-"


class Apart:
    """`since`: VM -> when it came apart, in simulated seconds."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.since: dict[str, float] = {}
        self._changed_vms: set[str] = set()
        world.api.listeners.append(self._changed)

    def step(self) -> None:
        """Look at every VM that this step changed."""
        for name in sorted(self._changed_vms):
            self._look(self.world.virt.vms[name])
        self._changed_vms.clear()

    def _changed(self, kind: Kind, key: str, _: Object | None) -> None:
        if kind is Kind.VIRTUAL_MACHINE_INSTANCE:
            self._changed_vms.add(key.partition("/")[2])
        elif kind is POD and key.startswith(_SHARE_MANAGER):
            self._changed_vms.add(self.world.vm_of_volume[key.removeprefix(_SHARE_MANAGER)])
        elif kind is POD and key.startswith(_VIRT_LAUNCHER):  # its name is virt-launcher-VM-SUFFIX
            self._changed_vms.add(key.removeprefix(_VIRT_LAUNCHER).rpartition("-")[0])

    def _look(self, vm: VM) -> None:
        node, homes = self.world.virt.node_of(vm), self._homes(vm)
        if node and homes and homes != {node}:
            self.since.setdefault(vm.name, self.world.engine.now)
        else:
            self.since.pop(vm.name, None)

    def _homes(self, vm: VM) -> set[str]:
        pods = [pod for volume in vm.volumes if (pod := self.world.longhorn.pod(volume))]
        return {pod["spec"].get("nodeName") for pod in pods if "deletionTimestamp" not in pod["metadata"]} - {None}
