"""Checks of migrations: KubeVirt's limits, and what reunite promises about each migration that it makes.

The promises are written here again, from the issue and in numbers of their own, over what really happened in the
simulation, and not over what the program has seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from simulation.check_answers import Breaks
from simulation.engine import DAY, EPOCH, MINUTE
from simulation.migration import Migration
from simulation.migrations import PARALLEL_IN_CLUSTER, PARALLEL_OUT_OF_NODE

from webhook.core.reunite.not_yet import NotYet, Rule

if TYPE_CHECKING:
    from simulation.virt_controller import VM
    from simulation.world import World

_APART_SECONDS: Final = 30 * MINUTE
_CALM_SECONDS: Final = 30 * MINUTE
_COOLDOWN_SECONDS: Final = DAY
_BACKOFF_SECONDS: Final = 10 * MINUTE
_AT_ONCE: Final = 2
_AT_ONCE_ON_NODE: Final = 1
_MOVED_AWAY: Final = 2
_WRITTEN_SECONDS: Final = 1.0  # what a round takes from its decision to its last request, at most
_LATE_SECONDS: Final = 10.0  # what a watch may be behind, and the whole seconds of the API server's times


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
        world.migrations.listeners.append(self._changed)
        for process in world.reuniting:
            process.told.listeners.append(self._told)

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
        past = [each for each in self._past.get(vm.uid, []) if not each.unfinished]
        self._budget(migration)
        homes = {self._node(volume) for volume in vm.volumes}
        if migration.node not in homes:
            raise self.broken("home", f"{vm.name} is moved to {migration.node}, its share-managers are on {homes}")
        kept = [each for each in past if each in vm.finished]  # KubeVirt forgets all others, and so does reunite
        if any(each.by != "reunite" and each.node and each.phase == "Succeeded" for each in kept):
            raise self.broken("will", f"{vm.name} was moved by a migration that named its target, and is moved again")
        if now < self._left.get(migration.node, -DAY) + _CALM_SECONDS - _LATE_SECONDS:
            raise self.broken("calm", f"{vm.name} is moved to {migration.node}, which VMs had to leave just before")
        ready_since = self.world.nodes.states[migration.node].ready_since
        if ready_since and now < ready_since + _CALM_SECONDS - _LATE_SECONDS:
            raise self.broken(
                "calm", f"{vm.name} is moved to {migration.node}, which is Ready since {ready_since:.0f} only"
            )
        windows = self.world.windows
        times = [EPOCH.timestamp() + now - before for before in (0.0, _WRITTEN_SECONDS)]
        if windows and not any(window.contains(time) for window in windows for time in times):
            raise self.broken("window", f"{vm.name} is moved outside of the time windows")
        since = self.world.account.apart_since(vm)
        if now < since + _APART_SECONDS - _LATE_SECONDS:
            raise self.broken("too soon", f"{vm.name} is apart since {since:.0f} only")
        self._rests(vm, past)

    def _rests(self, vm: VM, past: list[Migration]) -> None:
        now = self.world.engine.now
        ours = [each for each in past if each.by == "reunite"]
        home = [each for each in ours if each.phase == "Succeeded"]
        if home and now < home[-1].ended + _COOLDOWN_SECONDS - _LATE_SECONDS:
            raise self.broken("cooldown", f"{vm.name} came home at {home[-1].ended:.0f}, and is moved again")
        last = next((each for each in reversed(past) if each.phase == "Succeeded"), None)
        is_evicted = last is not None and last.by == "balancer" and not self._is_for_upkeep(last)
        if last and is_evicted and now < last.ended + _COOLDOWN_SECONDS - _LATE_SECONDS:
            raise self.broken("evicted", f"a balancer moved {vm.name} at {last.ended:.0f}, and it is moved again")
        failed = bool(ours) and ours[-1].phase == "Failed" and not self._is_forgotten(ours[-1])
        if failed and now < ours[-1].ended + _BACKOFF_SECONDS - _LATE_SECONDS:
            raise self.broken(
                "back-off", f"a migration of {vm.name} failed at {ours[-1].ended:.0f}, and another is made"
            )
        away = self._moved_away([each for each in past if not self._is_for_upkeep(each)])
        if away >= _MOVED_AWAY:
            raise self.broken("moved away", f"{vm.name} was moved away {away} times after it came home")

    def _is_forgotten(self, failed: Migration) -> bool:
        """Whether it was deleted, and a process runs that has not deleted it: nothing else shows that there was one."""
        began = max((process.began for process in self.world.reuniting), default=0.0)
        return failed.gone and (self._processes > 1 or failed.ended <= began)

    def _is_for_upkeep(self, migration: Migration) -> bool:
        """Whether it was a drain; or, where KubeVirt sets no priority, looks like one by the node that the VM left."""
        if migration.by == "evacuation":
            return True
        if migration.by != "balancer" or self.world.migrations.has_priorities:
            return False
        ready_since = self.world.nodes.states[migration.leaves].ready_since
        return migration.uid in self._from_cordoned or ready_since > migration.ended - 1

    def _moved_away(self, past: list[Migration]) -> int:
        """Count the moves away from home."""
        away, at_home = 0, False
        for each in past:
            if each.phase == "Succeeded":
                away += at_home and each.by != "reunite"
                at_home = each.by == "reunite"
        return away

    def _told(self, name: str, why: NotYet) -> None:
        """Check what `reunite` says about the past of a VM: the past must have it."""
        vm, now = self.world.virt.vms[name], self.world.engine.now
        past = self._past.get(vm.uid, [])
        others = [each for each in past if each.by != "reunite" and each.node]
        # Without a priority a drain can count as a move away, and the sentence is true: others moved the VM.
        has_priorities = self.world.migrations.has_priorities
        known = [each for each in past if not (has_priorities and self._is_for_upkeep(each))]
        is_true = {
            Rule.MOVED_AWAY: lambda: self._moved_away(known) >= _MOVED_AWAY,
            Rule.TARGET_NAMED: lambda: any(
                each.phase != "Failed" or each.ended > now - _LATE_SECONDS for each in others
            ),
            Rule.EVICTED: lambda: any(
                each.leaves and each.phase == "Succeeded" and each.ended > now - _COOLDOWN_SECONDS for each in known
            ),
            Rule.COOLDOWN: lambda: any(
                each.by == "reunite" and each.phase == "Succeeded" and each.ended > now - _COOLDOWN_SECONDS
                for each in past
            ),
        }.get(why.rule)
        if is_true and not is_true():
            raise self.broken("told", f"{name} is not moved, and it is not true that {why.sentence}")

    def _budget(self, migration: Migration) -> None:
        ours = [each for each in self.world.migrations.unfinished if each.by == "reunite"]
        if len(ours) > _AT_ONCE * self._processes:
            raise self.broken("budget", f"{len(ours)} migrations of reunite at once")
        for node in (self.world.virt.node_of(migration.vm), migration.node):
            here = [each for each in ours if node in (self.world.virt.node_of(each.vm), each.node)]
            if len(here) > _AT_ONCE_ON_NODE * self._processes:
                raise self.broken("budget", f"{len(here)} migrations of reunite from or to {node}")

    def _node(self, volume: str) -> str:
        pod = self.world.longhorn.pod(volume)
        return str(pod["spec"].get("nodeName") or "") if pod else ""
