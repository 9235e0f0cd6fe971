"""The program `reunite` in the simulation: a real run each ten minutes, over the objects as they were some seconds ago.

Real is the run (`webhook.reunite.run`) with all that it decides. Played here are the clock, VirtualMachineInstances and
migrations as KubeVirt would have them, and the requests to the API server. Nothing is kept between two runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec import convert
from simulation.api_server import POD, VMS, Object, is_over
from simulation.engine import EPOCH, MINUTE, rfc3339
from simulation.vm import HOSTNAME, VM, Migration, instance_of
from support.drivers.command_lines import values

from webhook import cli
from webhook.core.api.migration import ANNOTATION_EVACUATION, LABEL_REUNITE
from webhook.core.view import Kind
from webhook.objects import kinds
from webhook.objects.cluster import Cluster
from webhook.objects.kinds import APIResource
from webhook.objects.objects import ObjectStore
from webhook.reunite.reports import VMReport
from webhook.reunite.run import ReuniteRun
from webhook.reunite.settings import ReuniteSettings
from webhook.reunite.writer import Result, Written

if TYPE_CHECKING:
    from simulation.world import World

EVERY_SECONDS: Final = 10 * MINUTE  # the schedule of manifests/reunite.yaml
_RUN_SECONDS: Final = (0.01, 5.0)  # from the first list to the first request
_NO_ANSWER: Final = Written(Result.UNKNOWN, "no answer")
_STORED: Final = {
    POD: kinds.POD,
    Kind.PERSISTENT_VOLUME_CLAIM: kinds.PERSISTENT_VOLUME_CLAIM,
    Kind.PERSISTENT_VOLUME: kinds.PERSISTENT_VOLUME,
    Kind.SHARE_MANAGER: kinds.SHARE_MANAGER,
    Kind.NODE: kinds.NODE,
    Kind.LONGHORN_NODE: kinds.LONGHORN_NODE,
    Kind.VIRTUAL_MACHINE: kinds.VIRTUAL_MACHINE,
}
SETTINGS: Final = values(cli.COMMANDS, "reunite", "--all-namespaces", "--dry-run=none")


class Reuniting:
    """The CronJob, and a Writer of its runs.

    A request that is lost on its way does nothing. A request whose answer is lost has done what it asks for: the run
    sees the same error for both.

    Attributes:
        settings: the options of each run.
        lost_share: the share of requests that are lost on their way, and the share of lost answers.
        down_until: no run begins before this time.
        listeners: are called with the reports of each run.
        edit: changes what a run sees of a migration: a planted fault.
    """

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.settings = SETTINGS
        self.lost_share = self.down_until = 0.0
        self.listeners: list[Callable[[list[VMReport]], object]] = []
        self.edit: Callable[[Object], Object] = lambda migration: migration
        self._rng = world.engine.rng(name)
        self._lives = 0
        world.engine.after(self._rng.uniform(0.0, EVERY_SECONDS), self._turn)

    def die(self, seconds: float) -> None:
        """Kill the run, and begin none for so many seconds."""
        self._lives += 1
        self.down_until = self.world.engine.now + seconds

    def _turn(self) -> None:
        engine, life = self.world.engine, self._lives
        engine.after(EVERY_SECONDS, self._turn)
        if engine.now < self.down_until or self.world.api.away:
            return
        writer: Any = self
        run = ReuniteRun(self._read(), ReuniteSettings(**self.settings), EPOCH.timestamp() + engine.now, writer)
        engine.after(self._rng.uniform(*_RUN_SECONDS), lambda: life == self._lives and self._act(run))

    def _act(self, run: ReuniteRun) -> None:
        for _ in run.decide(self.name).__await__():
            raise AssertionError("a run waits for its writer only, and this one answers at once")
        for listener in self.listeners:
            listener(run.reports)

    async def create(self, _: str, migration: Object) -> Written:
        """Create the migration, as KubeVirt admits it."""
        if self._is_lost():
            return _NO_ANSWER
        spec, name = migration["spec"], migration["metadata"]["name"]
        vm, node = self.world.virt.vms[spec["vmiName"]], spec["addedNodeSelector"][HOSTNAME]
        if any(each.name == name for each in (*vm.finished, *self.world.migrations.unfinished)):
            return Written(Result.EXISTS, "it exists")
        self.world.engine.trace(f"{self.name} creates {name} to {node}")
        made = self.world.migrations.create(vm, "reunite", node, name)
        if self._is_lost():
            return _NO_ANSWER
        return Written(Result.DONE) if made else Written(Result.REFUSED, "KubeVirt refuses it")

    def _is_lost(self) -> bool:
        return self._rng.random() < self.lost_share or self.world.api.away

    # What the cluster has.

    def _read(self) -> Cluster:
        store = ObjectStore()
        for kind, resource in _STORED.items():
            for value in self.world.api.objects[kind].values():
                if kind is not POD or not is_over(value):
                    _add(store, resource, value)
        status = {"phase": "Deploying" if self.world.is_upgrading else "Deployed", "observedKubeVirtVersion": "v1.9.0"}
        _add(store, kinds.KUBEVIRT, {"metadata": {"name": "kubevirt", "namespace": "kubevirt"}, "status": status})
        for vm in self.world.virt.vms.values():
            for resource, value in self._objects(vm):
                _add(store, resource, value)
        return Cluster(store, longhorn_namespace="longhorn-system")

    def _objects(self, vm: VM) -> Iterator[tuple[APIResource[Any], Object]]:
        if vm.pod:
            instance = instance_of(vm, self.world.virt.node_of(vm))
            instance["metadata"]["creationTimestamp"] = rfc3339(int(vm.started))
            instance["spec"] |= {"nodeSelector": {"changed": "live"}} if vm.sick == "changed" else {}
            yield kinds.VIRTUAL_MACHINE_INSTANCE, {**instance, "status": _status(vm, instance.get("status", {}))}
        for each in (*vm.finished, *([vm.migration] if vm.migration else [])):
            yield kinds.MIGRATION, self.edit(_seen(each))


def _status(vm: VM, status: Object) -> Object:
    """Return the status with what else KubeVirt writes into it."""
    status["phase"] = "Running" if vm.running else "Scheduling"
    if vm.evacuates:
        status["evacuationNodeName"] = vm.evacuates
    if vm.sick == "busy":
        status["conditions"] = [{"type": "HotVCPUChange", "status": "True"}]
    last = vm.last_migration
    if last and last.created >= vm.started:  # whether it still exists or not
        state = {"migrationUid": last.uid, "endTimestamp": rfc3339(int(last.ended))}
        status["migrationState"] = state | ({"sourceNode": last.source} if last.source else {})
    return status


def _seen(migration: Migration) -> Object:
    """Return KubeVirt's object. It has the two nodes once the migration has ended."""
    meta: Object = {
        "name": migration.name,
        "uid": migration.uid,
        "namespace": VMS,
        "creationTimestamp": rfc3339(int(migration.created)),
        "annotations": {ANNOTATION_EVACUATION: migration.leaves} if migration.leaves else {},
        "labels": {LABEL_REUNITE: "true"} if migration.by == "reunite" else {},
    }
    spec = {"vmiName": migration.vm.name, **({"priority": migration.priority} if migration.priority else {})}
    status: Object = {"phase": migration.phase}
    if not migration.unfinished:
        at = rfc3339(int(migration.ended))
        status["phaseTransitionTimestamps"] = [{"phase": migration.phase, "phaseTransitionTimestamp": at}]
        nodes = {"sourceNode": migration.source, "targetNode": migration.target_node}
        status["migrationState"] = {name: node for name, node in nodes.items() if node}
    return {"metadata": meta, "spec": spec, "status": status}


def _add(store: ObjectStore, resource: APIResource[Any], value: Object) -> None:
    store.add(resource, convert(value, resource.type))
