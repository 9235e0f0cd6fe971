"""The model of live migrations: virt-controller's migration controller, its limits, and evacuation.

Upstream: kubevirt pkg/virt-controller/watch/migration/migration.go and watch/drain/evacuation. At most 5 migrations run
in the cluster, and 2 leave one node. The target pod has an anti-affinity to the VM's pods. One that fits nowhere fails
the migration after 300 s. An evacuation that failed waits 20 s, then twice as long each time. KubeVirt keeps the last 5
finished migrations of a VM, and refuses a second unfinished one. With the feature gate MigrationPriorityQueue a drain
and a balancer give their migrations a priority (pkg/util/migrations, QueuePriority).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from simulation.admission import Creation
from simulation.api_server import POD, ApiServer, Object, key_of
from simulation.engine import Engine
from simulation.virt_controller import VirtController
from simulation.vm import VM, Migration, target_pod
from simulation.workload import FAILING_SHARE, PRIORITIES_SHARE

from webhook.core.api.migration import PLACING_SECONDS

PARALLEL_IN_CLUSTER: Final = 5  # virt-config.go, ParallelMigrationsPerClusterDefault
PARALLEL_OUT_OF_NODE: Final = 2  # virt-config.go, ParallelOutboundMigrationsPerNodeDefault
KEPT: Final = 5  # migration.go, defaultFinalizedMigrationGarbageCollectionBuffer
_UNSCHEDULABLE_SECONDS: Final = 300.0  # migration.go, defaultUnschedulablePendingTimeoutSeconds
_BACKOFF_SECONDS: Final = 20.0  # migration.go, handleMigrationBackoff
_SYNC_SECONDS: Final = (0.05, 0.3)
_REQUEUE_SECONDS: Final = 1.0  # migration.go: another look at the limits
_SLOW_SECONDS: Final = 3_600.0  # our choice: a disk that was plugged keeps the migration pending
_HANDOVER_SECONDS: Final = (3.0, 6.0)  # phases before and after the copy of the memory
_COPY_MIB_A_SECOND: Final = 500  # a 10 Gbit/s network that two migrations share

_PRIORITIES: Final = {"evacuation": "system-critical", "balancer": "system-maintenance"}
_QUEUE: Final = {"system-critical": 100, "system-maintenance": 20}  # pkg/util/migrations, QueuePriority


class Migrations:
    """All migrations.

    Attributes:
        listeners: called with each migration after each of its changes.
        has_priorities: whether KubeVirt has the feature gate MigrationPriorityQueue.
    """

    def __init__(self, engine: Engine, api: ApiServer, virt: VirtController, creation: Creation) -> None:
        self.engine = engine
        self.api = api
        self.virt = virt
        self.creation = creation
        self.unfinished: list[Migration] = []
        self.made = 0
        self.listeners: list[Callable[[Migration], object]] = []
        self.has_priorities = engine.rng("KubeVirt").random() < PRIORITIES_SHARE
        self._targets: dict[str, Migration] = {}
        self._requeued = False
        self._rng = engine.rng("migrations")
        virt.pod_runs = self._pod_runs
        virt.stopping = self._vm_stops
        virt.nodes.died.append(self._node_died)

    def create(self, vm: VM, by: str, node: str = "", name: str = "") -> Migration | None:
        """Create a migration; None if virt-api or the API server refuses it."""
        if vm.sick == "refused" and by == "reunite":
            return None
        if not vm.running or self.api.away or vm.migration:
            return None
        self.made += 1
        uid = f"migration-{self.made}"
        migration = Migration(name or f"{by}-{self.made}", vm, uid, by, node, self.engine.now)
        migration.leaves = self.virt.node_of(vm) if by in _PRIORITIES else ""
        migration.priority = _PRIORITIES.get(by, "") if self.has_priorities else ""
        if vm.sick == "slow":
            migration.begins = self.engine.now + _SLOW_SECONDS
        vm.migration = migration
        self.unfinished.append(migration)
        self._note(migration)
        self.api.act(self._rng.uniform(*_SYNC_SECONDS), self._pump)
        return migration

    def evacuate(self, node: str) -> bool:
        """Make a migration for each VM on a node that is drained; return whether no VM's pod is left there."""
        vms = [vm for vm in self.virt.vms.values() if self.virt.node_of(vm) == node]
        for vm in (each for each in vms if each.running and not each.migration):
            if self.engine.now >= self._retry_at(vm):
                vm.evacuates = node
                self.create(vm, "evacuation")
        return not vms

    def _retry_at(self, vm: VM) -> float:
        failed = 0
        for each in reversed(vm.finished):
            if each.phase == "Succeeded":
                break
            failed += each.phase == "Failed"
        return vm.finished[-1].ended + _BACKOFF_SECONDS * 2 ** (failed - 1) if failed else 0.0

    def _pump(self) -> None:
        """Create the target pods that the limits allow, in the order of their priorities, and then of their age."""
        pending = sorted(
            (each for each in self.unfinished if each.phase == "Pending"),
            key=lambda each: (-_QUEUE.get(each.priority, 0), each.created, each.name),
        )
        for each in pending:
            running = [other for other in self.unfinished if other.phase != "Pending"]
            source = self.virt.node_of(each.vm)
            leaving = sum(other.source == source for other in running)
            if self.engine.now < each.begins:
                continue
            if len(running) >= PARALLEL_IN_CLUSTER or leaving >= PARALLEL_OUT_OF_NODE:
                continue
            if each.vm.running:
                self._schedule(each, source)
            else:
                self._end(each, "Failed")
        if not self._requeued and any(each.phase == "Pending" for each in self.unfinished):
            self._requeued = True
            self.api.act(_REQUEUE_SECONDS, self._requeue)

    def _requeue(self) -> None:
        self._requeued = False
        self._pump()

    def _schedule(self, migration: Migration, source: str) -> None:
        migration.phase, migration.source = "Scheduling", source
        self._note(migration)
        self.creation.create(target_pod(migration), lambda pod: self._target_made(migration, pod))

    def _target_made(self, migration: Migration, pod: Object) -> None:
        if migration.phase != "Scheduling":
            self.api.delete(POD, key_of(pod))
            return
        migration.target = key_of(pod)
        self._targets[migration.target] = migration
        self._note(migration)
        timeout = PLACING_SECONDS if migration.by == "reunite" else _UNSCHEDULABLE_SECONDS
        self.engine.after(timeout, lambda: self._time_out(migration))

    def _time_out(self, migration: Migration) -> None:
        pod = self.api.pod(migration.target)
        if migration.phase == "Scheduling" and pod and not pod["spec"].get("nodeName"):
            self.api.act(0.0, lambda: self._end(migration, "Failed"))

    def _pod_runs(self, key: str) -> None:
        migration = self._targets.get(key)
        if migration and migration.phase == "Scheduling":
            migration.phase = "Running"
            self._note(migration)
            copy = migration.vm.memory_mib / _COPY_MIB_A_SECOND * self._rng.uniform(0.8, 1.5)
            fails = self._rng.random() < FAILING_SHARE or migration.vm.sick == "never converges"
            phase = "Failed" if fails else "Succeeded"
            self.api.act(copy + self._rng.uniform(*_HANDOVER_SECONDS), lambda: self._end(migration, phase))

    def _end(self, migration: Migration, phase: str) -> None:
        if not migration.unfinished:
            return
        vm = migration.vm
        migration.phase, migration.ended = phase, self.engine.now
        if pod := self.api.pod(migration.target):
            migration.target_node = pod["spec"].get("nodeName") or ""
        self.unfinished.remove(migration)
        if vm.migration is migration:
            vm.migration = None
        vm.finished.append(migration)
        vm.last_migration = migration
        if phase == "Succeeded":
            source, vm.pod = vm.pod, migration.target
            self.virt.runs_on(vm, migration.target_node)
            if pod := self.api.pod(source):
                self.api.put(POD, {**pod, "status": {**pod["status"], "phase": "Succeeded"}})
            self.virt.remove(vm, source)
        elif migration.target:
            self.virt.remove(vm, migration.target)
        self._targets.pop(migration.target, None)
        vm.evacuates = ""
        self._note(migration)
        del vm.finished[:-KEPT]
        self.api.act(self._rng.uniform(*_SYNC_SECONDS), self._pump)

    def _vm_stops(self, vm: VM) -> None:
        if vm.migration:
            self._end(vm.migration, "Failed")

    def _node_died(self, node: str) -> None:
        for each in list(self.unfinished):
            pod = self.api.pod(each.target)
            if each.source == node or (pod and pod["spec"].get("nodeName") == node):
                self._end(each, "Failed")

    def _note(self, migration: Migration) -> None:
        self.engine.trace(f"migration {migration.name} of {migration.vm.name} {migration.phase} {migration.node}")
        for listener in self.listeners:
            listener(migration)
