"""VM-hours: how long each VM was on the node of all its share-managers, and since what it was not.

`webhook.core.observe.vm_status` says where a VM is, over the objects as they are. Only the time counts in which the
guest runs. A VM that is apart is so since what placed it or its share-manager last.
"""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import TYPE_CHECKING, Final

from simulation.api_server import LONGHORN, POD, Object, is_virt_launcher
from simulation.engine import HOUR, rfc3339
from simulation.stored_view import StoredView

from webhook.core.observe.vm_status import State
from webhook.core.view import Kind

if TYPE_CHECKING:
    from simulation.vm import VM
    from simulation.world import World

LOCAL: Final = "local"
_DOWN: Final = "down"  # the VM should run, and its guest does not
_OTHER: Final = "between"  # the share-manager has no node at the moment, or is not known
CAUSES: Final = ("live migration", "drain", "start", "node loss", "coming home")


class Account:
    """The VM-hours so far, by what they are counted as: LOCAL, a cause, or neither.

    `down_hours`: in which a VM should have run and did not, the time of each start among them.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.stored = StoredView(world.api)
        self.hours: Counter[str] = Counter()
        self.down_hours = 0.0
        self.apart_until: dict[str, float] = {}  # VMs that are apart, or were, with the time of the end
        self._apart_since: dict[str, float] = {}
        self._since: dict[str, tuple[float, str]] = {}
        self._changed_vms: set[str] = set()
        world.api.listeners.append(self._changed)

    def _changed(self, kind: Kind, key: str, value: Object | None) -> None:
        if kind is Kind.SHARE_MANAGER:
            self._changed_vms.add(self.world.vm_of_volume[key.partition("/")[2]])
        elif kind is POD and key.startswith(f"{LONGHORN}/share-manager-"):
            self._changed_vms.add(self.world.vm_of_volume[key.removeprefix(f"{LONGHORN}/share-manager-")])
        elif kind is POD and key.startswith("vms/virt-launcher-"):
            name = self.world.virt.vm_of(value).name if value and is_virt_launcher(value) else _name_of(key)
            self._changed_vms.add(name)

    def touch(self, name: str) -> None:
        """Look at this VM again after this step: what placed it has changed, or its guest has."""
        self._changed_vms.add(name)

    def apart_since(self, vm: VM) -> float:
        """Return since when the VM's pod is on another node than its share-managers; the time now if it is not."""
        return self._apart_since.get(vm.name, self.world.engine.now)

    def _is_apart(self, vm: VM) -> bool:
        pods = [pod for volume in vm.volumes if (pod := self.world.longhorn.pod(volume))]
        homes = {pod["spec"].get("nodeName") for pod in pods if "deletionTimestamp" not in pod["metadata"]} - {None}
        node = self.world.virt.node_of(vm)
        return bool(node and homes) and homes != {node}

    def step(self) -> None:
        """Close the books of every VM that this step changed."""
        for name in sorted(self._changed_vms):
            self._book(self.world.virt.vms[name])
        self._changed_vms.clear()

    def close(self) -> None:
        """Book everything up to now."""
        for vm in self.world.virt.vms.values():
            self._book(vm)

    def _book(self, vm: VM) -> None:
        now = self.world.engine.now
        since, counted = self._since.get(vm.name, (now, ""))
        if counted == _DOWN:
            self.down_hours += (now - since) / HOUR
        elif counted:
            self.hours[counted] += (now - since) / HOUR
        state = self._state(vm)
        self._since[vm.name] = (now, state)
        if not self._is_apart(vm):
            self._apart_since.pop(vm.name, None)
        else:
            self._apart_since.setdefault(vm.name, now)
        if state not in ("", LOCAL, _OTHER, _DOWN):
            self.apart_until[vm.name] = inf
        elif self.apart_until.get(vm.name) == inf:
            self.apart_until[vm.name] = now

    def _state(self, vm: VM) -> str:
        """What the VM's time counts as from now on; empty if the VM is off."""
        if not vm.running:
            return _DOWN if vm.wanted else ""
        row = self.stored.row(vm.uid, rfc3339(int(self.world.engine.now)))
        if row is None or row.state not in (State.TOGETHER, State.APART):
            return _OTHER
        return LOCAL if row.state is State.TOGETHER else vm.cause


def _name_of(key: str) -> str:
    """Return the VM of a pod that is deleted, by the pod's name: virt-launcher-VM-SUFFIX."""
    return key.removeprefix("vms/virt-launcher-").rpartition("-")[0]
