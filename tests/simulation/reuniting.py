"""The program `reunite` in the simulation: the real rounds, over caches of its own that lag behind.

Real are the rounds (`webhook.reunite.controller`), what they decide, the rows of `webhook.core.observe.vm_status`, the
caches and their freshness, and the rules of a pin for the home node. Played here is what surrounds them: the clock, the
watch of migrations, VirtualMachineInstances (as they are at the moment), and the requests to the API server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from operator import is_
from typing import TYPE_CHECKING, Any, Final

from msgspec import convert
from simulation.api_server import POD, VMS
from simulation.decision_time import DecisionTime
from simulation.engine import EPOCH, rfc3339
from simulation.launcher_pod import virt_launcher_pod
from simulation.migration_watch import MigrationWatch
from simulation.requests import Requests, drive
from simulation.stuck import FreeingStuck
from simulation.told import Told
from simulation.virt_controller import VM
from simulation.watcher import Watcher

from webhook.core.api.kubevirt import owner
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.observe.vm_status import VMStatus, vm_status_of
from webhook.core.opt_in import Policy
from webhook.core.reunite import decide
from webhook.core.reunite.limits import KubeVirtLimits, ReuniteLimits
from webhook.core.view import Kind
from webhook.kube.records.virt_launchers import to_object
from webhook.plan.step import Step, VMDetails, step
from webhook.reunite.controller import ROUND_SECONDS, Controller
from webhook.reunite.facts import StaleFacts
from webhook.reunite.round import Round

if TYPE_CHECKING:
    from simulation.world import World

_RETRY_SECONDS: Final = 1.0  # webhook.reunite.controller: until a round can begin
_KNOWN_SECONDS: Final = 60.0  # so long after its end a VM that was apart is looked at: longer than any watch is late
_LAG_SECONDS: Final = (0.002, 0.03)
_KUBEVIRT: Final = KubeVirtLimits(version=(1, 9))
_POLICY: Final = Policy()


class Reuniting:
    """One process of the program. It is its own Facts and Planner.

    Attributes:
        limits: what the user allows.
        migrations: what its watch of migrations has shown.
        began: when the process began.
        down_until: the process does not run before this time.
        rounds: how many rounds were carried out, and how many were left out because nothing had changed.
        leaves_out: a round is left out if it would do as little as the round before; False plays each round.
        forgets: each round begins without what the rounds before have noted: a planted fault.
        told: what it tells.
        stuck: the part that frees stuck VMs.
    """

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.limits = ReuniteLimits()
        self.began = self.down_until = 0.0
        self.leaves_out, self.forgets = True, False
        self.rounds: Counter[str] = Counter()
        self._rng = world.engine.rng(name)
        self.watcher = Watcher(name, world.engine, world.api, lambda _: self._rng.uniform(*_LAG_SECONDS))
        self.migrations = MigrationWatch(world, lambda: self._rng.uniform(*_LAG_SECONDS))
        self.requests = Requests(world, name, self._rng)
        self.stuck = FreeingStuck(self)
        self.told = Told()
        self._lives = 0
        self._rows: dict[str, tuple[list[str], list[object], VMStatus | None]] = {}
        self._decided: tuple[DecisionTime, object] | None = None
        self._controller = self._new()
        world.watchers.append(self.watcher)
        world.reuniting.append(self)

    def begin(self) -> None:
        """Take the first turn within a round's time."""
        self.world.engine.after(self._rng.uniform(0.0, ROUND_SECONDS), lambda: self._turn(self._lives))

    @property
    def runs(self) -> bool:
        """Whether the process runs and reaches the API server."""
        return self.world.engine.now >= self.down_until and not self.world.api.away

    def die(self, seconds: float) -> None:
        """The process ends, and is back after so many seconds with nothing in memory."""
        self._lives += 1
        self.down_until = self.world.engine.now + seconds
        self.watcher.die()
        self.world.engine.after(seconds, self.restart)

    def restart(self) -> None:
        """Begin with empty caches: nothing in memory matters."""
        self._lives += 1
        self.began = self.world.engine.now
        self.watcher.restart()
        self.migrations.restart()
        self.stuck.forget()
        self._rows.clear()
        self._decided, self._controller = None, self._new()
        self._turn(self._lives)

    def _new(self) -> Controller:
        def wall() -> DecisionTime:
            return DecisionTime(EPOCH.timestamp() + self.world.engine.now)

        parts: Any = self  # the methods of Facts and Planner that a round calls are below
        told: Any = self.told
        requests: Any = self.requests
        stuck: Any = self.stuck
        return Controller(lambda: parts, parts, told, requests, wall, stuck=stuck)

    # Rounds.

    def _turn(self, life: int) -> None:
        engine = self.world.engine
        if life != self._lives:
            return
        if self.world.api.away:
            self._decided = None
            engine.at(self.world.api.away_until + _RETRY_SECONDS, lambda: self._turn(life))
        elif self._is_quiet():
            self.rounds["left out"] += 1
            self._note_drains()
            engine.after(ROUND_SECONDS, lambda: self._turn(life))
        else:
            self.rounds["carried out"] += 1
            self._controller = self._new() if self.forgets else self._controller
            drive(engine, self._controller.round(), lambda: life == self._lives, lambda found: self._ended(found, life))

    def _ended(self, found: Round | None, life: int) -> None:
        if found is None or found.plan.creates or found.plan.deletes:
            self._decided = None
        pause = _RETRY_SECONDS if found is None else ROUND_SECONDS
        self.world.engine.after(pause, lambda: self._turn(life))

    def _is_quiet(self) -> bool:
        """Whether a round would do nothing: nobody is apart or waits, or all is as in a round that did nothing."""
        now, names = self.world.engine.now, self._names()
        if self.world.scheduler.waiting:
            return False
        if not names and not any(each.by == "reunite" for each in self.world.migrations.unfinished):
            return True
        if (
            self._decided is None
            or not self.leaves_out
            or self.watcher.has_arrivals()
            or self.migrations.has_arrivals(now)
        ):
            return False
        decided_at, facts = self._decided
        until = decided_at.next_change
        if self.limits.windows:  # they begin and end at whole minutes, and DecisionTime does not see that
            until = min(until, 60.0 * (decided_at // 60.0 + 1.0))
        return facts == self._vmis(names) and EPOCH.timestamp() + now < until

    def _note_drains(self) -> None:
        """Look for drains, as each round does: later a node does not show any more that it was cordoned."""
        now, has_priorities = self.world.engine.now, self.world.migrations.has_priorities
        if not has_priorities and (self.watcher.has_arrivals() or self.migrations.has_arrivals(now)):
            self._decided = None  # it was decided before these arrivals
            self.watcher.sync()
            self.migrations.sync(now)
            self.migrations.note_drains(self.watcher.caches[Kind.NODE].objects)

    # The Facts of a round.

    async def situation(self, now: DecisionTime) -> decide.Situation | StaleFacts:
        """Return what the caches have. Only those VMs are in it that are or were apart, or wait."""
        clock, waiting = self.world.engine.now, self.world.scheduler.waiting
        self.watcher.sync()
        self.migrations.sync(clock)
        if late := tuple(each.resource.title for each in self.watcher.caches.values() if not each.fresh(clock)):
            return StaleFacts(late)
        names = list(self.world.virt.vms) if waiting else self._names()
        self._decided = now, self._vmis(names)
        migrations = list(self.migrations.seen.values())
        self.migrations.note_drains(nodes := self.watcher.caches[Kind.NODE].objects)
        moving = (self.world.virt.vms[each.vmi] for each in migrations if not each.is_final)
        return decide.Situation(
            now=now,
            vms=[seen for name in sorted(names) if (seen := self._vm(self.world.virt.vms[name]))],
            migrations=migrations,
            kubevirt=_KUBEVIRT,
            limits=self.limits,
            nodes_of={(VMS, vm.name): node for vm in moving if (node := self.world.virt.node_of(vm))},
            nodes=nodes,
            drained=self.migrations.drained,
        )

    def has_migration(self, _: str, name: str) -> bool:
        """Whether the watch has shown a migration of this name."""
        self.migrations.sync(self.world.engine.now)
        return name in self.migrations.seen

    def _names(self) -> list[str]:
        since = self.world.engine.now - _KNOWN_SECONDS
        return [name for name, until in self.world.account.apart_until.items() if until >= since]

    def _vmis(self, names: Iterable[str]) -> object:
        vms = (self.world.virt.vms[name] for name in names)
        return [(vm.uid, vm.running, vm.evacuates) for vm in vms]

    def _vm(self, vm: VM) -> decide.VM | None:
        row = self.row(vm)
        if row is None:
            return None
        return decide.VM(
            row=row,
            started=rfc3339(int(vm.started)),
            phase="Running" if vm.running else "Scheduling",
            evacuates=vm.evacuates or None,
        )

    def row(self, vm: VM) -> VMStatus | None:
        """Return the VM's row; the same one as long as the records are the same ones."""
        caches, index = self.watcher.caches, self.watcher.caches[POD].index
        keys = sorted({key for volume in vm.volumes for key in index.by_claim.index_keys(f"{VMS}/{volume}-claim")})
        records = [index.virt_launchers[key] for key in keys]
        key_of = caches[Kind.SHARE_MANAGER_POD].resource.key
        for volume in vm.volumes:
            records.append(caches[Kind.SHARE_MANAGER].objects.get(volume))
            pod_key = key_of(NamespacedName("", f"share-manager-{volume}"))
            records.append(caches[Kind.SHARE_MANAGER_POD].objects.get(pod_key))
        known = self._rows.get(vm.name)
        if known and known[0] == keys and all(map(is_, known[1], records)):
            return known[2]
        found = [to_object(key, index.virt_launchers[key]) for key in keys]
        row = vm_status_of([pod for pod in found if owner(pod)], self.watcher.cached_view(), _POLICY)
        self._rows[vm.name] = keys, records, row
        return row

    async def step(self, row: VMStatus) -> Step:
        """As the Planner: return the VM's migration to the node of its share-managers, or why there is none."""
        details = VMDetails(pod=convert(virt_launcher_pod(self.world.virt.vms[row.name]), Pod))
        nodes, known = self.watcher.view(), self.watcher.cached_view()
        while True:
            found = step(row, details, known, nodes, nodes.snapshot())
            if not nodes.missing:
                return found
            nodes = self.watcher.read(nodes, nodes.missing)
