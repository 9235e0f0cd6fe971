"""The program `reunite` in the simulation: a real run each ten minutes, over the objects as they are.

Real is the run (`webhook.reunite.run`) with all that it decides. Played here are the clock, VirtualMachineInstances and
migrations as KubeVirt would have them, Events, and the requests to the API server. Nothing is kept between two runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any, Final

from msgspec import convert
from simulation.api_server import POD, VMS, Object
from simulation.engine import EPOCH, MINUTE, rfc3339
from simulation.migration import Migration
from simulation.requests import Requests, drive
from simulation.vm import VM

from webhook.core.api.kubevirt import MigrationState
from webhook.core.api.meta import ObjectMeta, OwnerReference
from webhook.core.api.virtual_machine import (
    VM_KIND,
    ClaimSource,
    VMICondition,
    VMIStatus,
    Volume,
)
from webhook.core.live_migration import migration as seen
from webhook.core.live_migration.kubevirt import KubeVirt, KubeVirtStatus
from webhook.core.reunite.reports import VMReport
from webhook.core.view import Kind
from webhook.objects import kinds
from webhook.objects.api import kubevirt
from webhook.objects.kinds import APIResource
from webhook.objects.manifests import Manifests
from webhook.objects.objects import ObjectStore
from webhook.reunite.run import Run
from webhook.reunite.settings import ReuniteSettings

if TYPE_CHECKING:
    from simulation.world import World

EVERY_SECONDS: Final = 10 * MINUTE  # the schedule of manifests/components/reunite
_FINISHED: Final = ("Succeeded", "Failed")
_STORED: Final = {
    POD: kinds.POD,
    Kind.PERSISTENT_VOLUME_CLAIM: kinds.PERSISTENT_VOLUME_CLAIM,
    Kind.PERSISTENT_VOLUME: kinds.PERSISTENT_VOLUME,
    Kind.SHARE_MANAGER: kinds.SHARE_MANAGER,
    Kind.NODE: kinds.NODE,
    Kind.LONGHORN_NODE: kinds.LONGHORN_NODE,
}
SETTINGS: Final[dict[str, Any]] = {
    "kubeconfig": None,
    "context": None,
    "longhorn_namespace": "longhorn-system",
    "dry_run": "none",
    "default": True,
    "apart_seconds": 1_800.0,
    "at_once": 2,
    "rest_seconds": 14_400.0,
    "names": (),
    "namespace": None,
    "output": "table",
    "now": False,
    "opt_in_all": "off",
    "manifests": None,
}


class Reuniting:
    """The CronJob.

    Attributes:
        settings: the options of each run.
        down_until: no run begins before this time.
        runs: how many runs were carried out, and how many were left out because nobody was apart or waited.
        listeners: are called with the reports of each run.
        edit: changes what a run sees of a migration: a planted fault.
    """

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.settings = SETTINGS
        self.down_until = 0.0
        self.runs: Counter[str] = Counter()
        self.listeners: list[Callable[[list[VMReport]], object]] = []
        self.edit: Callable[[seen.Migration], seen.Migration] = lambda migration: migration
        self._rng = world.engine.rng(name)
        self.requests = Requests(world, name, self._rng)
        self._lives = 0
        self._converted: dict[tuple[Kind, str], tuple[str, Any]] = {}  # with the resourceVersion
        world.reuniting.append(self)

    def begin(self) -> None:
        """Begin with the first run, at any time within the first ten minutes."""
        self.world.engine.after(self._rng.uniform(0.0, EVERY_SECONDS), self._turn)

    def die(self, seconds: float) -> None:
        """Kill the run, and begin none for so many seconds."""
        self._lives += 1
        self.down_until = self.world.engine.now + seconds

    def _turn(self) -> None:
        engine, life = self.world.engine, self._lives
        engine.after(EVERY_SECONDS, self._turn)
        if engine.now < self.down_until or self.world.api.away:
            return
        if inf not in self.world.account.apart_until.values():
            self.runs["left out"] += 1
            return
        self.runs["carried out"] += 1
        writer: Any = self.requests
        run = Run(self._read(), ReuniteSettings(**self.settings), EPOCH.timestamp() + engine.now, writer)
        drive(engine, run.decide(self.name), lambda: life == self._lives, lambda _: self._ended(run.reports))

    def _ended(self, reports: list[VMReport]) -> None:
        for listener in self.listeners:
            listener(reports)

    # What the cluster has.

    def _read(self) -> Manifests:
        store = ObjectStore()
        for kind, resource in _STORED.items():
            for key, value in self.world.api.objects[kind].items():
                if kind is not POD or value["status"].get("phase") not in _FINISHED:
                    store.add(resource, self._convert(kind, key, value, resource))
        for vm in self.world.virt.vms.values():
            self._add_vm(store, vm)
        phase = "Deploying" if self.world.is_upgrading else "Deployed"
        status = KubeVirtStatus(phase=phase, observed_version="v1.9.0")
        store.add(kinds.KUBEVIRT, KubeVirt(metadata=ObjectMeta(name="kubevirt", namespace="kubevirt"), status=status))
        return Manifests(store, longhorn_namespace="longhorn-system")

    def _convert(self, kind: Kind, key: str, value: Object, resource: APIResource[Any]) -> Any:
        version = value["metadata"]["resourceVersion"]
        known = self._converted.get((kind, key))
        if known is None or known[0] != version:
            known = self._converted[kind, key] = version, convert(value, resource.type)
        return known[1]

    def _add_vm(self, store: ObjectStore, vm: VM) -> None:
        claims = [
            Volume(name=each, persistent_volume_claim=ClaimSource(claim_name=f"{each}-claim")) for each in vm.volumes
        ]
        owner = OwnerReference(kind=VM_KIND, name=vm.name)
        if vm.pod:
            meta = ObjectMeta(
                name=vm.name,
                namespace=VMS,
                uid=vm.uid,
                creation_timestamp=rfc3339(int(vm.started)),
                owner_references=[owner],
            )
            selector = {"changed": "live"} if vm.sick == "changed" else None
            spec = kubevirt.VMISpec(volumes=claims, node_selector=selector)
            store.add(
                kinds.VIRTUAL_MACHINE_INSTANCE,
                kubevirt.VirtualMachineInstance(metadata=meta, spec=spec, status=self._status(vm)),
            )
        template = kubevirt.VMITemplateSpec(spec=kubevirt.VMISpec(volumes=claims))
        store.add(
            kinds.VIRTUAL_MACHINE,
            kubevirt.VirtualMachine(
                metadata=ObjectMeta(name=vm.name, namespace=VMS),
                spec=kubevirt.VirtualMachineSpec(template=template, run_strategy="Always"),
            ),
        )
        for each in (*vm.finished, *([vm.migration] if vm.migration else [])):
            store.add(kinds.MIGRATION, self.edit(migration_seen(each)))

    def _status(self, vm: VM) -> VMIStatus:
        busy = [VMICondition(type="HotVCPUChange", status="True")] if vm.sick == "busy" else None
        return VMIStatus(
            phase="Running" if vm.running else "Scheduling",
            node_name=self.world.virt.node_of(vm) or None,
            evacuation_node_name=vm.evacuates or None,
            conditions=busy,
            migration_state=_newest(vm),
        )


def migration_seen(migration: Migration) -> seen.Migration:
    """Return KubeVirt's object. It has the two nodes once the migration has ended."""
    annotations = {seen.ANNOTATION_EVACUATION: migration.leaves} if migration.leaves else None
    meta = ObjectMeta(
        name=migration.name,
        uid=migration.uid,
        namespace=VMS,
        creation_timestamp=rfc3339(int(migration.created)),
        annotations=annotations,
        labels={seen.LABEL_REUNITE: "true"} if migration.by == "reunite" else None,
    )
    ended = None
    if migration.ended:
        at = rfc3339(int(migration.ended))
        ended = [seen.PhaseTransition(phase=migration.phase, phase_transition_timestamp=at)]
    is_over = not migration.unfinished
    state = MigrationState(
        source_node=(is_over and migration.source) or None, target_node=(is_over and migration.target_node) or None
    )
    return seen.Migration(
        metadata=meta,
        spec=seen.MigrationSpec(vmi_name=migration.vm.name, priority=migration.priority or None),
        status=seen.MigrationStatus(phase=migration.phase, phase_transition_timestamps=ended, migration_state=state),
    )


def _newest(vm: VM) -> MigrationState | None:
    """What KubeVirt notes at the VMI of the migration that ended last in this start, whether it still exists or not."""
    last = vm.last_migration
    if last is None or last.created < vm.started:
        return None
    return MigrationState(
        migration_uid=last.uid, source_node=last.source or None, end_timestamp=rfc3339(int(last.ended))
    )
