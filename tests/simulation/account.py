"""Account: how long VMs ran, how long of that on the node of all their share-managers, and who is apart since when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulation.api_server import LONGHORN, POD, Object

from webhook.core.view import Kind

if TYPE_CHECKING:
    from simulation.vm import VM
    from simulation.world import World

_SHARE_MANAGER = f"{LONGHORN}/share-manager-"
_VIRT_LAUNCHER = "vms/virt-launcher-"


class Account:
    """The VM-seconds so far.

    Attributes:
        ran: of all VMs whose guest ran.
        local: of those on the node of all their share-managers.
        apart: the VMs whose pod is on another node than their share-managers, and since when.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.ran = self.local = 0.0
        self.apart: dict[str, float] = {}
        self._since: dict[str, tuple[float, bool]] = {}  # of a VM that runs: since when, and whether locally
        self._changed_vms: set[str] = set()
        world.api.listeners.append(self._changed)

    @property
    def local_share(self) -> float:
        """The share of these VM-seconds that were local."""
        return self.local / (self.ran or 1.0)

    def step(self) -> None:
        """Close the books of every VM that this step changed."""
        for name in sorted(self._changed_vms):
            self._book(self.world.virt.vms[name])
        self._changed_vms.clear()

    def close(self) -> None:
        """Book everything up to now."""
        for vm in self.world.virt.vms.values():
            self._book(vm)

    def _changed(self, kind: Kind, key: str, _: Object | None) -> None:
        if kind is Kind.VIRTUAL_MACHINE_INSTANCE:
            self._changed_vms.add(key.partition("/")[2])
        elif kind is POD and key.startswith(_SHARE_MANAGER):
            self._changed_vms.add(self.world.vm_of_volume[key.removeprefix(_SHARE_MANAGER)])
        elif kind is POD and key.startswith(_VIRT_LAUNCHER):  # its name is virt-launcher-VM-SUFFIX
            self._changed_vms.add(key.removeprefix(_VIRT_LAUNCHER).rpartition("-")[0])

    def _book(self, vm: VM) -> None:
        now = self.world.engine.now
        since, local = self._since.pop(vm.name, (now, False))
        self.ran += now - since
        self.local += (now - since) * local
        node, homes = self.world.virt.node_of(vm), self._homes(vm)
        if vm.running:
            self._since[vm.name] = now, homes == {node}
        if node and homes and homes != {node}:
            self.apart.setdefault(vm.name, now)
        else:
            self.apart.pop(vm.name, None)

    def _homes(self, vm: VM) -> set[str]:
        pods = [pod for volume in vm.volumes if (pod := self.world.longhorn.pod(volume))]
        return {pod["spec"].get("nodeName") for pod in pods if "deletionTimestamp" not in pod["metadata"]} - {None}
