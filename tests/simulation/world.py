"""The world: all models around one engine, for one seed and so many processes of `reunite`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from simulation import faults, workload
from simulation.admission import Creation, Replicas
from simulation.api_server import POD, VMS, ApiServer
from simulation.engine import DAY, Engine
from simulation.kube_scheduler import KubeScheduler
from simulation.longhorn import Longhorn
from simulation.migrations import Migrations
from simulation.nodes import Nodes
from simulation.reuniting import Reuniting
from simulation.virt_controller import VirtController
from simulation.watcher import Watcher
from support.objects import builders
from support.objects.builders_pods import pod

from webhook.core.placement.replica_share import REPLICA_LABELS
from webhook.core.view import Kind

_REPLICAS: Final = 2  # of the webhook: its caches count them by their pods
_NAMESPACE: Final = "kubevirt-coschedule"


class World:
    """Everything of one run.

    Attributes:
        vm_of_volume: the name of the VM of each volume.
    """

    def __init__(self, seed: int, reunite: int) -> None:
        """`reunite`: how many processes of the program run."""
        self.engine = engine = Engine(seed)
        self.api = api = ApiServer(engine)
        self._upgrading_until = 0.0
        self.scheduler = KubeScheduler(engine, api)
        self.nodes = Nodes(engine, api)
        self.creation = Creation(engine, api, lambda pod: pod)
        self.longhorn = Longhorn(engine, api, self.nodes, self.creation)
        self.virt = VirtController(engine, api, self.nodes, self.longhorn, self.creation)
        self.migrations = Migrations(engine, api, self.virt, self.creation)
        self.nodes.died.append(self.longhorn.node_died)
        self.nodes.back.append(self.longhorn.node_is_back)
        self.nodes.cordon_changed.append(self.longhorn.cordon_changed)
        self.vm_of_volume: dict[str, str] = {}
        self._populate()
        self.replicas = [Watcher(f"replica {index}", engine, api) for index in range(_REPLICAS)]
        self.webhook = Replicas(engine, self.replicas)
        self.creation.webhook = self.webhook
        self.reuniting = [Reuniting(self, f"reunite {number}") for number in range(reunite)]

    @property
    def is_upgrading(self) -> bool:
        """Whether KubeVirt is being upgraded."""
        return self.engine.now < self._upgrading_until

    def upgrade(self, until: float) -> None:
        """Upgrade KubeVirt until this time."""
        self._upgrading_until = until

    def play(self, days: float, planted: Iterable[Callable[[World], object]]) -> None:
        """Play so many days, with what is planted before the first event."""
        until = days * DAY
        workload.plan(self, until)
        faults.plan(self, until)
        for fault in planted:
            fault(self)
        self.engine.run(until)

    def _populate(self) -> None:
        self.nodes.register()
        for vm in workload.vms(self.engine.rng("vms")):
            self.virt.add(vm)
            for volume in vm.volumes:
                self.vm_of_volume[volume] = vm.name
                claim = f"{volume}-claim"
                self.api.put(
                    Kind.PERSISTENT_VOLUME_CLAIM,
                    builders.persistent_volume_claim(claim, namespace=VMS, volume_name=volume),
                )
                self.api.put(Kind.PERSISTENT_VOLUME, builders.persistent_volume(volume, claim=claim, namespace=VMS))
                self.longhorn.add(volume)
        for index in range(_REPLICAS):
            webhook = pod(f"{_NAMESPACE}-{index}", node=f"node-{index:02}", namespace=_NAMESPACE, labels=REPLICA_LABELS)
            self.api.put(POD, webhook)
