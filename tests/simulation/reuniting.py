"""The program `reunite` in the simulation: the real decisions, over caches of its own that lag behind.

Real are `webhook.core.reunite.decide`, the rows of `webhook.core.observe.vm_status`, the caches, and the rules of a pin
for the home node. Played here is what surrounds them: the watch of migrations, and the requests to the API server.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from operator import is_
from typing import TYPE_CHECKING, Final

from msgspec import convert
from simulation.api_server import POD, VMS
from simulation.engine import EPOCH, rfc3339
from simulation.launcher_pod import virt_launcher_pod
from simulation.migrations import Migration
from simulation.stuck import FreeingStuck
from simulation.virt_controller import VM
from simulation.watcher import Watcher

from webhook.core.api.kubevirt import owner
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.evidence import share_managers
from webhook.core.observe.vm_status import VMStatus, vm_status_of
from webhook.core.opt_in import Policy
from webhook.core.placement import feasibility
from webhook.core.reunite import decide
from webhook.core.reunite.limits import KubeVirtLimits, ReuniteLimits
from webhook.core.reunite.migration import Migration as SeenMigration
from webhook.core.reunite.not_yet import NotYet, Rule
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.view import Kind, NeedObjects
from webhook.kube.records.virt_launchers import to_object

if TYPE_CHECKING:
    from simulation.world import World

_TURN_SECONDS: Final = 60.0
_REQUEST_SECONDS: Final = (0.005, 0.1)
_LAG_SECONDS: Final = (0.002, 0.03)
_KUBEVIRT: Final = KubeVirtLimits(version=(1, 9))
_POLICY: Final = Policy()


class Reuniting:
    """One process of the program.

    Attributes:
        limits: what the user allows.
        migrations: the migrations that its watch has shown, by name.
        edit_seen: changes what the watch of migrations shows: a planted fault.
        down_until: the process does not run before this time.
        waiting: of the last turn, why VMs are not moved yet.
        stuck: the part that frees stuck VMs.
    """

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.limits = ReuniteLimits()
        self.migrations: dict[str, SeenMigration] = {}
        self.down_until = 0.0
        self.waiting: dict[tuple[str, str], NotYet] = {}
        self.edit_seen: Callable[[SeenMigration], SeenMigration] = lambda seen: seen
        self._rng = world.engine.rng(name)
        self.watcher = Watcher(name, world.engine, world.api, lambda _: self._rng.uniform(*_LAG_SECONDS))
        self._queue: deque[tuple[float, str, SeenMigration | None]] = deque()
        self._rows: dict[str, tuple[list[str], list[object], VMStatus | None]] = {}
        self.stuck = FreeingStuck(self)
        world.watchers.append(self.watcher)
        world.reuniting.append(self)
        world.migrations.listeners.append(self._changed)

    def begin(self) -> None:
        """Take a turn each minute from now on, and free stuck VMs."""
        self.world.engine.after(self._rng.uniform(0.0, _TURN_SECONDS), self._turn)
        self.stuck.begin()

    @property
    def runs(self) -> bool:
        """Whether the process runs and reaches the API server."""
        return self.world.engine.now >= self.down_until and not self.world.api.away

    def die(self, seconds: float) -> None:
        """The process ends, and is back after so many seconds with nothing in memory."""
        self.down_until = self.world.engine.now + seconds
        self.watcher.die()
        self.world.engine.after(seconds, self.restart)

    def restart(self) -> None:
        """Begin with empty caches: nothing in memory matters."""
        self.watcher.restart()
        self.stuck.restart()
        self._rows.clear()
        self._queue.clear()
        known = [*self.world.migrations.unfinished]
        known += [each for vm in self.world.virt.vms.values() for each in vm.finished]
        self.migrations = {each.name: self._seen(each) for each in known}

    def decided(self) -> decide.Plan | None:
        """Return what the program would do now; None if no VM is or was apart, so that there is nothing to decide."""
        now = self.world.engine.now
        names = [name for name, until in self.world.account.apart_until.items() if until >= now - _TURN_SECONDS]
        if not names and not any(each.ours and not each.is_final for each in self.migrations.values()):
            return None
        self._sync()
        self.watcher.sync()
        vms = [seen for name in sorted(names) if (seen := self._vm(self.world.virt.vms[name]))]
        situation = decide.Situation(
            now=EPOCH.timestamp() + now,
            vms=vms,
            migrations=list(self.migrations.values()),
            kubevirt=_KUBEVIRT,
            limits=self.limits,
        )
        asked = decide.decide(situation)
        answer = None
        while True:
            try:
                vm = asked.send(answer)
            except StopIteration as end:
                plan: decide.Plan = end.value
                return plan
            answer = self._why_not_there(vm)

    def _turn(self) -> None:
        world = self.world
        if self.runs:
            plan = self.decided()
            if plan:
                self.waiting = dict(plan.waiting)
                for create in plan.creates:
                    world.api.act(self._rng.uniform(*_REQUEST_SECONDS), lambda create=create: self._create(create))
                for delete in plan.deletes:
                    world.api.act(self._rng.uniform(*_REQUEST_SECONDS), lambda delete=delete: self._delete(delete))
        world.engine.after(_TURN_SECONDS, self._turn)

    def _create(self, create: decide.CreateMigration) -> None:
        vm = self.world.virt.vms[create.vm.row.name]
        self.world.engine.trace(f"{self.watcher.name} creates {create.name} to {create.target}")
        self.world.migrations.create(vm, "reunite", create.target, create.name, create.moved_away)

    def _delete(self, delete: decide.DeleteMigration) -> None:
        for each in list(self.world.migrations.unfinished):
            if each.uid == delete.migration.uid and each.phase == "Pending":
                self.world.migrations.delete(each)

    # What it sees.

    def _changed(self, migration: Migration) -> None:
        due = self.world.engine.now + self.watcher.lag(Kind.VIRT_LAUNCHER_POD)
        due = max(due, self._queue[-1][0]) if self._queue else due
        self._queue.append((due, migration.name, None if migration.gone else self._seen(migration)))

    def _sync(self) -> None:
        while self._queue and self._queue[0][0] <= self.world.engine.now:
            _, name, seen = self._queue.popleft()
            if seen is None:
                self.migrations.pop(name, None)
            else:
                self.migrations[name] = seen

    def _seen(self, migration: Migration) -> SeenMigration:
        pod = self.world.api.pod(migration.target)
        seen = SeenMigration(
            namespace=VMS,
            name=migration.name,
            uid=migration.uid,
            vmi=migration.vm.name,
            created=rfc3339(int(migration.created)),
            phase=migration.phase,
            ended=rfc3339(int(migration.ended)) if migration.ended else None,
            ours=migration.by == "reunite",
            names_target=bool(migration.node),
            evacuates=migration.leaves or None,
            source_node=migration.source or None,
            target_node=(pod["spec"].get("nodeName") if pod else None) or None,
            moved_away=migration.moved_away,
        )
        return self.edit_seen(seen)

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
        caches, volume = self.watcher.caches, vm.volumes[0]
        index = caches[POD].index
        keys = list(index.by_claim.index_keys(f"{VMS}/{volume}-claim"))
        pod_key = caches[Kind.SHARE_MANAGER_POD].resource.key(NamespacedName("", f"share-manager-{volume}"))
        records = [index.virt_launchers[key] for key in keys]
        records += [caches[Kind.SHARE_MANAGER].objects.get(volume), caches[Kind.SHARE_MANAGER_POD].objects.get(pod_key)]
        known = self._rows.get(vm.name)
        if known and known[0] == keys and all(map(is_, known[1], records)):
            return known[2]
        found = [to_object(key, index.virt_launchers[key]) for key in keys]
        row = vm_status_of([pod for pod in found if owner(pod)], self.watcher.cached_view(), _POLICY)
        self._rows[vm.name] = keys, records, row
        return row

    def _why_not_there(self, vm: decide.VM) -> NotYet | None:
        """Return why the VM's pod could not be pinned to its home node; None if it could."""
        pod = convert(virt_launcher_pod(self.world.virt.vms[vm.row.name]), Pod)
        view = self.watcher.view()
        found = share_managers.find_share_managers(pod, VMS, view)
        volumes = [] if isinstance(found, NeedObjects) else share_managers.bound_volumes(found)
        cycle = CycleState(IncomingPod.of(pod, VMS, volumes), view.snapshot())
        fit = feasibility.evaluate(vm.row.share_manager_nodes[0], cycle, view)
        if isinstance(fit, NeedObjects):
            return Rule.NOT_PLACEABLE.says_no(because="its node could not be read")
        return None if fit.feasible else Rule.NOT_PLACEABLE.says_no(because=fit.why.sentence)
