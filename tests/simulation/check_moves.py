"""Checks of migrations: KubeVirt's limits, and what reunite promises about each migration that it makes.

The promises are written here again, in numbers of their own, over what really happened in the simulation, and not over
what a run has seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from simulation.check_answers import Breaks
from simulation.engine import DAY, MINUTE
from simulation.migration import Migration
from simulation.migrations import PARALLEL_IN_CLUSTER, PARALLEL_OUT_OF_NODE

from webhook.core.reunite.reports import VMReport

if TYPE_CHECKING:
    from simulation.vm import VM
    from simulation.world import World

_APART_SECONDS: Final = 30 * MINUTE
_CALM_SECONDS: Final = 30 * MINUTE
_COOLDOWN_SECONDS: Final = DAY
_HELD_SECONDS: Final = 5 * MINUTE
_FAILURES: Final = 3
_A_DAY: Final = 2
_AT_ONCE: Final = 2
_AT_ONCE_ON_NODE: Final = 1
_LATE_SECONDS: Final = 10.0  # what a run takes to its last request, and the whole seconds of the API server's times
_LEFT_ALONE: Final = ("busy", "changed")
_TURN: Final = ("ClusterBusy", "NodeBusy")


class MoveChecks:
    """Checks each migration when it is made and when it changes; `made` counts those of reunite."""

    def __init__(self, world: World, broken: Breaks) -> None:
        self.world = world
        self.broken = broken
        self.made = 0
        self._processes = max(len(world.reuniting), 1)  # none knows what another one decides at the same moment
        self._past: dict[str, list[Migration]] = {}  # by the uid of the VMI
        self._left: dict[str, float] = {}  # when the last evacuation from a node ended
        self._seen: set[str] = set()
        self._from_cordoned: set[str] = set()  # uids of migrations by which a VM left a cordoned node
        self._blocked: dict[str, set[str]] = {}  # a VM that waited in the last run -> migrations of sick VMs that ran
        world.migrations.listeners.append(self._changed)
        for process in world.reuniting:
            process.listeners.append(self._reported)

    def _changed(self, migration: Migration) -> None:
        if migration.gone:
            return
        self._limits(migration)
        if migration.uid not in self._seen:
            self._seen.add(migration.uid)
            if migration.by == "reunite":
                self.made += 1
                self._promises(migration)
            self._past.setdefault(migration.vm.uid, []).append(migration)
        if migration.leaves and not migration.unfinished:
            self._left[migration.leaves] = self.world.engine.now
            if self.world.nodes.states[migration.leaves].cordoned:
                self._from_cordoned.add(migration.uid)

    def _limits(self, migration: Migration) -> None:
        unfinished = [each for each in self.world.migrations.unfinished if each.vm is migration.vm]
        if len(unfinished) > 1:
            raise self.broken("one", f"{migration.vm.name} has {len(unfinished)} unfinished migrations")
        running = self.world.migrations.running()
        if len(running) > PARALLEL_IN_CLUSTER:
            raise self.broken("budget", f"{len(running)} migrations run")
        leaving = sum(each.source == migration.source for each in running)
        if migration.source and leaving > PARALLEL_OUT_OF_NODE:
            raise self.broken("budget", f"{leaving} migrations leave {migration.source}")

    def _promises(self, migration: Migration) -> None:
        vm, now = migration.vm, self.world.engine.now
        self._budget(migration)
        if vm.sick in _LEFT_ALONE or self.world.is_upgrading:
            raise self.broken("busy", f"{vm.name} is moved, and it is {vm.sick or 'there while KubeVirt is upgraded'}")
        homes = {self._node(volume) for volume in vm.volumes}
        if migration.node not in homes:
            raise self.broken("home", f"{vm.name} is moved to {migration.node}, its share-managers are on {homes}")
        if now < self._left.get(migration.node, -DAY) + _CALM_SECONDS - _LATE_SECONDS:
            raise self.broken("calm", f"{vm.name} is moved to {migration.node}, which VMs had to leave just before")
        ready_since = self.world.nodes.states[migration.node].ready_since
        if ready_since and now < ready_since + _CALM_SECONDS - _LATE_SECONDS:
            raise self.broken(
                "calm", f"{vm.name} is moved to {migration.node}, which is Ready since {ready_since:.0f} only"
            )
        since = self.world.account.apart_since(vm)
        if now < since + _APART_SECONDS - _LATE_SECONDS:
            raise self.broken("too soon", f"{vm.name} is apart since {since:.0f} only")
        self._rests(vm, [each for each in self._past.get(vm.uid, []) if not each.unfinished])

    def _rests(self, vm: VM, past: list[Migration]) -> None:
        now = self.world.engine.now
        ours = [each for each in past if each.by == "reunite"]
        moves = [each for each in past if each.phase == "Succeeded"]
        kept = [each for each in moves if each in vm.finished]  # KubeVirt forgets all others, and so does reunite
        home = [each for each in moves if each.by == "reunite"]
        if home and now < home[-1].ended + _COOLDOWN_SECONDS - _LATE_SECONDS:
            raise self.broken("cooldown", f"{vm.name} came home at {home[-1].ended:.0f}, and is moved again")
        last = kept[-1] if kept else None
        if last and last.by != "reunite" and last.node:
            raise self.broken("will", f"{vm.name} was moved by a migration that named its target, and is moved again")
        if last and self._is_wanted(last) and now < last.ended + _COOLDOWN_SECONDS - _LATE_SECONDS:
            raise self.broken("others", f"{last.by} moved {vm.name} at {last.ended:.0f}, and it is moved again")
        if self._moved_again(kept):
            raise self.broken("moved again", f"{vm.name} was moved away again after it was brought home once")
        rows = [each for each in past if each in vm.finished]
        failed = 0
        for each in rows:
            failed = 0 if each.phase == "Succeeded" else failed + (each.by == "reunite")
        if failed >= _FAILURES:
            raise self.broken("failures", f"{failed} migrations of {vm.name} in a row failed, and another is made")
        today = [each for each in ours if each.created > now - DAY + _LATE_SECONDS]
        if len(today) >= _A_DAY:
            raise self.broken("two a day", f"{vm.name} had {len(today)} migrations of reunite within a day already")

    def _is_wanted(self, migration: Migration) -> bool:
        """Whether somebody may want the VM where it came to. A drain can look so, where KubeVirt sets no priority."""
        if migration.by == "user":
            return True
        if migration.by != "balancer":
            return False
        if self.world.migrations.has_priorities:
            return True
        ready_since = self.world.nodes.states[migration.leaves].ready_since
        return migration.uid not in self._from_cordoned and ready_since <= migration.ended - 1

    def _moved_again(self, moves: list[Migration]) -> bool:
        """Whether others moved the VM away, before and after it was brought home."""
        wanted = [self._is_wanted(each) for each in moves]
        home = max((index for index, each in enumerate(moves) if each.by == "reunite"), default=-1)
        return home >= 0 and any(wanted[:home]) and any(wanted[home + 1 :])

    def _reported(self, reports: list[VMReport]) -> None:
        """Check what a run says: the past of a VM has it, and no healthy VM waits for a sick one in two runs."""
        blocked: dict[str, set[str]] = {}
        for each in reports:
            vm = self.world.virt.vms[each.vm]
            code = each.message.partition(":")[0]
            if code in _TURN and not vm.sick:
                blocked[vm.name] = self._blockers()
                if blocked[vm.name] & self._blocked.get(vm.name, set()):
                    raise self.broken(
                        "starved", f"{vm.name} waits in two runs for a VM that is not well: {each.message}"
                    )
            self._is_true(vm, code, each.message)
        self._blocked = blocked

    def _blockers(self) -> set[str]:
        """The migrations of sick VMs, if there were room without them."""
        ours = [each for each in self.world.migrations.unfinished if each.by == "reunite"]
        healthy = [each for each in self.world.migrations.unfinished if not (each.vm.sick and each.by == "reunite")]
        if healthy:  # they may be what the VM waits for
            return set()
        return {each.uid for each in ours if each.vm.sick}

    def _is_true(self, vm: VM, code: str, message: str) -> None:
        now, past = self.world.engine.now, self._past.get(vm.uid, [])
        moves = [each for each in past if each.phase == "Succeeded"]
        others = [each for each in moves if each.by != "reunite"]
        late = now - _COOLDOWN_SECONDS
        is_true = {
            "MovedAgain": lambda: len(others) > 1 and len(others) < len(moves),
            "TargetNamed": lambda: any(each.node for each in others),
            "MovedByOthers": lambda: any(each.ended > late for each in others),
            "Cooldown": lambda: any(each.by == "reunite" and each.ended > late for each in moves),
            "VMBusy": lambda: vm.sick == "busy",
            "VMChanged": lambda: vm.sick == "changed",
            "KubeVirtChanges": lambda: self.world.is_upgrading,
        }.get(code)
        if is_true and not is_true():
            raise self.broken("told", f"{vm.name} is not moved, and it is not true that {message}")

    def _budget(self, migration: Migration) -> None:
        now = self.world.engine.now
        ours = [
            each
            for each in self.world.migrations.unfinished
            if each.by == "reunite" and not (each.phase == "Pending" and each.created <= now - _HELD_SECONDS)
        ]
        if len(ours) > _AT_ONCE * self._processes:
            raise self.broken("budget", f"{len(ours)} migrations of reunite at once")
        for node in (self.world.virt.node_of(migration.vm), migration.node):
            here = [each for each in ours if node in (self.world.virt.node_of(each.vm), each.node)]
            if len(here) > _AT_ONCE_ON_NODE * self._processes:
                raise self.broken("budget", f"{len(here)} migrations of reunite from or to {node}")

    def _node(self, volume: str) -> str:
        pod = self.world.longhorn.pod(volume)
        return str(pod["spec"].get("nodeName") or "") if pod else ""
