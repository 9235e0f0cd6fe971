"""The world: all models around one engine, for one policy and one seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from simulation import faults, month
from simulation.account import Account
from simulation.admission import Creation, Replica, Replicas
from simulation.api_server import POD, VMS, ApiServer
from simulation.engine import DAY, Engine
from simulation.kube_scheduler import KubeScheduler
from simulation.longhorn import Longhorn
from simulation.migrations import Migrations
from simulation.month import MONTH, Workload
from simulation.nodes import Nodes
from simulation.policies import Policy
from simulation.reuniting import Reuniting
from simulation.virt_controller import VirtController
from simulation.watcher import Watcher
from support.objects import builders

from webhook.core.placement.replica_share import REPLICA_LABELS
from webhook.core.view import Kind

_WEBHOOK_PODS: Final = 2


class World:
    """Everything of one run.

    Attributes:
        watchers: every process that follows the API server.
        planted: plants a fault before the first event.
        replay: the command that plays this world again. A Run knows it.
        freed_by_nobody: pods that wait because their node changed after the webhook's answer.
    """

    def __init__(self, policy: Policy, seed: int, workload: Workload = MONTH, *, with_faults: bool = False) -> None:
        self.workload = workload
        self.faults = with_faults
        self.policy = policy
        self.engine = engine = Engine(seed)
        self.api = api = ApiServer(engine)
        self.replicas: list[Replica] = []
        self.webhook: Replicas | None = None
        self.watchers: list[Watcher] = []
        self.reuniting: list[Reuniting] = []
        self.planted: Callable[[World], object] = lambda _: None
        self._upgrading_until = 0.0
        self.replay = "no command plays this world: a test has made it"
        self.freed_by_nobody = 0
        names = [f"node-{index:02}" for index in range(workload.nodes)]
        self.scheduler = KubeScheduler(engine, api)
        self.nodes = Nodes(engine, api, names, {"cpu": "32", "memory": f"{workload.memory_gib}Gi"})
        self.creation = Creation(engine, api, lambda pod: pod)
        self.longhorn = Longhorn(engine, api, self.nodes, self.creation)
        self.virt = VirtController(engine, api, self.nodes, self.longhorn, self.creation)
        self.migrations = Migrations(engine, api, self.virt, self.creation)
        self.migrations.failing_share = workload.failing_share
        self.migrations.delayed_share = workload.delayed_share
        self.migrations.has_priorities = engine.rng("KubeVirt").random() < workload.priorities_share
        self.nodes.died.append(self.longhorn.node_died)
        self.nodes.back.append(self.longhorn.node_is_back)
        self.nodes.cordon_changed.append(self.longhorn.cordon_changed)
        self.vm_of_volume: dict[str, str] = {}
        self._populate()
        self.account = Account(self)
        self.longhorn.moved = self._moved
        self.creation.webhook = policy.webhook(self)
        policy.install(self)
        engine.after_step = self.account.step

    @property
    def is_upgrading(self) -> bool:
        """Whether KubeVirt is being upgraded."""
        return self.engine.now < self._upgrading_until

    def upgrade(self, until: float) -> None:
        """Upgrade KubeVirt until this time."""
        self._upgrading_until = until

    def play_month(self) -> None:
        """Play the month to its end."""
        month.plan(self)
        if self.faults:
            faults.plan(self, self.workload.days * DAY)
        self.planted(self)
        self.run(self.workload.days * DAY)

    def run(self, until: float) -> None:
        """Run to this time, and close the account."""
        self.engine.run(until)
        self.account.close()

    def _populate(self) -> None:
        self.nodes.register()
        for vm in month.vms(self.engine.rng("vms"), self.workload):
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
        for index in range(_WEBHOOK_PODS):
            self.api.put(POD, _webhook_pod(index, f"node-{index:02}"))

    def _moved(self, volume: str, why: str) -> None:
        vm = self.virt.vms[self.vm_of_volume[volume]]
        vm.cause = why
        self.account.touch(vm.name)


def _webhook_pod(index: int, node: str) -> dict[str, object]:
    """A pod of the webhook itself: its caches count the replicas by these pods."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"kubevirt-coschedule-{index}",
            "namespace": "kubevirt-coschedule",
            "labels": dict(REPLICA_LABELS),
        },
        "spec": {"nodeName": node, "containers": [{"name": "webhook"}]},
        "status": {"phase": "Running"},
    }
