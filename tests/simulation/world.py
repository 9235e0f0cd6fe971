"""The world: all models around one engine, for one seed and so many processes of `reunite`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from simulation import faults, workload
from simulation.admission import Creation, Replica, Replicas
from simulation.api_server import POD, VMS, ApiServer
from simulation.engine import DAY, Engine
from simulation.kube_scheduler import KubeScheduler
from simulation.longhorn import Longhorn
from simulation.migrations import Migrations
from simulation.nodes import Nodes
from simulation.reuniting import Reuniting
from simulation.virt_controller import VirtController
from simulation.watcher import Watcher
from simulation.workload import MEMORY_GIB, NODES, ROUGH, Workload
from support.objects import builders

from webhook.core.placement.replica_share import REPLICA_LABELS
from webhook.core.view import Kind

_REPLICAS: Final = 2


class World:
    """Everything of one run.

    Attributes:
        planted: plants a fault before the first event.
        replay: the command that plays this world again. A Run knows it.
    """

    def __init__(self, seed: int, of: Workload = ROUGH, *, reunite: int = 0) -> None:
        """`reunite`: how many processes of the program run."""
        self.workload = of
        self.engine = engine = Engine(seed)
        self.api = api = ApiServer(engine)
        self.planted: Callable[[World], object] = lambda _: None
        self.replay = "no command plays this world: a test has made it"
        self._upgrading_until = 0.0
        self.scheduler = KubeScheduler(engine, api)
        names = [f"node-{index:02}" for index in range(NODES)]
        self.nodes = Nodes(engine, api, names, {"cpu": "32", "memory": f"{MEMORY_GIB}Gi"})
        self.creation = Creation(engine, api, lambda pod: pod)
        self.longhorn = Longhorn(engine, api, self.nodes, self.creation)
        self.virt = VirtController(engine, api, self.nodes, self.longhorn, self.creation)
        self.migrations = Migrations(engine, api, self.virt, self.creation)
        self.nodes.died.append(self.longhorn.node_died)
        self.nodes.back.append(self.longhorn.node_is_back)
        self.nodes.cordon_changed.append(self.longhorn.cordon_changed)
        self.vm_of_volume: dict[str, str] = {}
        self._populate()
        self.replicas = [Replica(Watcher(f"replica {index}", engine, api)) for index in range(_REPLICAS)]
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

    def play(self) -> None:
        """Play the workload to its end."""
        until = self.workload.days * DAY
        workload.plan(self)
        faults.plan(self, until)
        self.planted(self)
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
            self.api.put(POD, _webhook_pod(index))


def _webhook_pod(index: int) -> dict[str, object]:
    """A pod of the webhook itself: its caches count the replicas by these pods."""
    namespace = "kubevirt-coschedule"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{namespace}-{index}", "namespace": namespace, "labels": dict(REPLICA_LABELS)},
        "spec": {"nodeName": f"node-{index:02}", "containers": [{"name": "webhook"}]},
        "status": {"phase": "Running"},
    }
