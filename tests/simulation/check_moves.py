"""Checks of migrations: what reunite promises about each migration that it makes.

The promises are written here again, in numbers of their own, over what really happened in the simulation, and not over
what a run has seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from simulation.api_server import POD, SHARE_MANAGER, Object
from simulation.check_answers import Breaks
from simulation.engine import DAY, HOUR, MINUTE
from simulation.vm import VM, Migration

from webhook.core.view import Kind
from webhook.reunite.reports import VMReport

if TYPE_CHECKING:
    from simulation.world import World

_SHORT_SECONDS: Final = 30 * MINUTE
_REST_SECONDS: Final = 4 * HOUR
_WEEK_SECONDS: Final = 7 * DAY
_AT_ONCE: Final = 2
_LATE_SECONDS: Final = 10.0  # what a run takes to its last request, and the whole seconds of the API server's times
_LEFT_ALONE: Final = ("busy", "changed")
_VIRT_LAUNCHER: Final = "vms/virt-launcher-"


class Apart:
    """VMs on another node than their share-managers: `since` has when each came apart, in simulated seconds."""

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
        elif kind is POD and key.startswith(SHARE_MANAGER):
            self._changed_vms.add(self.world.vm_of_volume[key.removeprefix(SHARE_MANAGER)])
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


class MoveChecks:
    """Checks each migration when it is made; `made` counts those of reunite. `apart` is to look after every step."""

    def __init__(self, world: World, broken: Breaks) -> None:
        self.world = world
        self.broken = broken
        self.made = 0
        self.apart = Apart(world)
        self._processes = max(len(world.reuniting), 1)  # none knows what another one decides at the same moment
        self._past: dict[str, list[Migration]] = {}  # by the uid of the VMI
        self._seen: set[str] = set()
        self._blocked: dict[str, set[str]] = {}  # a VM that waited in the last run -> migrations of sick VMs that ran
        world.migrations.listeners.append(self._changed)
        for process in world.reuniting:
            process.listeners.append(self._reported)

    def _changed(self, migration: Migration) -> None:
        if migration.uid not in self._seen:
            self._seen.add(migration.uid)
            if migration.by == "reunite":
                self.made += 1
                self._promises(migration)
            self._past.setdefault(migration.vm.uid, []).append(migration)

    def _promises(self, migration: Migration) -> None:
        vm, now, longhorn = migration.vm, self.world.engine.now, self.world.longhorn
        self._budget()
        if vm.sick in _LEFT_ALONE or self.world.is_upgrading:
            raise self.broken("busy", f"{vm.name} is moved, and it is {vm.sick or 'there while KubeVirt is upgraded'}")
        homes = {longhorn.node_of(longhorn.volumes[volume]) for volume in vm.volumes}
        if migration.node not in homes:
            raise self.broken("home", f"{vm.name} is moved to {migration.node}, its share-managers are on {homes}")
        ready_since = self.world.nodes.states[migration.node].ready_since
        if ready_since and now < ready_since + _SHORT_SECONDS - _LATE_SECONDS:
            raise self.broken(
                "calm", f"{vm.name} is moved to {migration.node}, which is Ready since {ready_since:.0f} only"
            )
        since = self.apart.since.get(vm.name, now)
        if now < since + _SHORT_SECONDS - _LATE_SECONDS:
            raise self.broken("too soon", f"{vm.name} is apart since {since:.0f} only")
        self._rests(vm, migration.node, [each for each in self._past.get(vm.uid, []) if not each.unfinished])

    def _rests(self, vm: VM, home: str, past: list[Migration]) -> None:
        now = self.world.engine.now
        kept = [each for each in past if each in vm.finished]  # KubeVirt forgets all others, and so does reunite
        moves = [each for each in past if each.phase == "Succeeded"]
        last = moves[-1] if moves else None
        if last and last.by != "reunite" and last.node:
            raise self.broken("will", f"{vm.name} was moved by a migration that named its target, and is moved again")
        ready_since = self.world.nodes.states[home].ready_since
        if last and last.source == home and self._is_wanted(last) and ready_since <= last.ended:
            self._waits(vm, kept, last.ended, _REST_SECONDS, "others")
        if kept and kept[-1].by == "reunite" and kept[-1].phase == "Failed":
            self._waits(vm, kept, kept[-1].ended, _SHORT_SECONDS, "failures")
        if now < max((each.ended for each in moves), default=-DAY) + _SHORT_SECONDS - _LATE_SECONDS:
            raise self.broken("too soon", f"{vm.name} was moved less than half an hour ago, and is moved again")

    def _waits(self, vm: VM, kept: list[Migration], since: float, seconds: float, what: str) -> None:
        """Check a wait that is twice as long after each return that KubeVirt still knows."""
        returns = sum(each.by == "reunite" for each in kept)
        least = min(seconds * 2**returns, _WEEK_SECONDS)
        if self.world.engine.now < since + least - _LATE_SECONDS:
            raise self.broken(what, f"{vm.name} is moved, and has to wait for {least:.0f} s since {since:.0f}")

    def _is_wanted(self, migration: Migration) -> bool:
        """Whether somebody may want the VM where it came to. KubeVirt may set no priority for a balancer."""
        return migration.by == "user" or (migration.by == "balancer" and self.world.migrations.has_priorities)

    def _reported(self, reports: list[VMReport]) -> None:
        """Check what a run says: the past of a VM has it, and no healthy VM waits for a sick one in two runs."""
        blocked: dict[str, set[str]] = {}
        for each in reports:
            vm = self.world.virt.vms[each.row.name]
            code = each.message.partition(":")[0]
            if code == "NotItsTurn" and not vm.sick:
                blocked[vm.name] = self._blockers()
                if blocked[vm.name] & self._blocked.get(vm.name, set()):
                    raise self.broken(
                        "starved", f"{vm.name} waits in two runs for a VM that is not well: {each.message}"
                    )
            self._is_true(vm, code, each.message)
        self._blocked = blocked

    def _blockers(self) -> set[str]:
        """The old migrations of sick VMs, if there were room without them."""
        old = self.world.engine.now - _SHORT_SECONDS
        ours = [each for each in self.world.migrations.unfinished if each.by == "reunite"]
        if sum(each.created > old for each in ours) >= _AT_ONCE:  # they may be what the VM waits for
            return set()
        return {each.uid for each in ours if each.vm.sick and each.created <= old}

    def _is_true(self, vm: VM, code: str, message: str) -> None:
        moves = [each for each in self._past.get(vm.uid, []) if each.phase == "Succeeded"]
        others = [each for each in moves if each.by != "reunite"]
        is_true = {
            "TargetNamed": lambda: any(each.node for each in others),
            "MovedAway": lambda: bool(others),
            "Failed": lambda: any(each.by == "reunite" and each.phase == "Failed" for each in vm.finished),
            "KubeVirtChanges": lambda: self.world.is_upgrading,
        }.get(code)
        if is_true and not is_true():
            raise self.broken("told", f"{vm.name} is not moved, and it is not true that {message}")

    def _budget(self) -> None:
        old = self.world.engine.now - _SHORT_SECONDS
        ours = [each for each in self.world.migrations.unfinished if each.by == "reunite" and each.created > old]
        if len(ours) > _AT_ONCE * self._processes:
            raise self.broken("budget", f"{len(ours)} migrations of reunite at once")
