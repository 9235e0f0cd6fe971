"""The part of `reunite` that frees stuck VMs, in the simulation: the real decision, over the caches of `reunite`.

Real is `webhook.core.reunite.stuck.decide_restart`, with the assumed starts of a process. Played here is the request to
the API server: its preconditions leave a pod that is on a node, or is another one, as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import convert
from simulation.api_server import Object, is_virt_launcher
from simulation.engine import EPOCH, rfc3339

from webhook.core.api.pod import Pod
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.reunite.assumed_start import AssumedStart, still_assumed
from webhook.core.reunite.not_yet import NotYet
from webhook.core.reunite.stuck import RestartVM, StuckLimits, StuckVM, decide_restart
from webhook.core.view import NeedObjects
from webhook.reunite.controller import ROUND_SECONDS

if TYPE_CHECKING:
    from simulation.reuniting import Reuniting

_REQUEST_SECONDS: Final = (0.005, 0.1)


class FreeingStuck:
    """Restarts stuck VMs, beside one process of `reunite`.

    Attributes:
        limits: what the user allows.
        waiting: of the last round, why stuck VMs are not restarted, by the name of the VM.
        freed: how many pods were deleted.
        deleting: is called with each pod before it is deleted.
    """

    def __init__(self, process: Reuniting) -> None:
        self.process = process
        self.limits = StuckLimits()
        self.waiting: dict[str, NotYet] = {}
        self.freed = 0
        self.deleting: list[Callable[[Object], object]] = []
        self._assumed: list[AssumedStart] = []
        self._rng = process.world.engine.rng(f"stuck VMs of {process.watcher.name}")

    def begin(self) -> None:
        """Look at the pods that wait, each round from now on."""
        self.process.world.engine.after(ROUND_SECONDS, self._round)

    def restart(self) -> None:
        """Begin with nothing in memory."""
        self._assumed = []

    def _round(self) -> None:
        world = self.process.world
        if world.scheduler.waiting and self.process.runs:
            self.process.watcher.sync()
            self._decide(EPOCH.timestamp() + world.engine.now)
        world.engine.after(ROUND_SECONDS, self._round)

    def _decide(self, now: float) -> None:
        world = self.process.world
        rows = [row for vm in world.virt.vms.values() if (row := self.process.row(vm))]
        self._assumed = still_assumed(self._assumed, rows, now)
        self.waiting = {}
        for row in sorted((each for each in rows if each.state is State.STUCK), key=lambda each: each.since or ""):
            pod = world.api.pod(f"{row.namespace}/{row.pod}")
            found = self._decide_one(row, pod, now) if pod and is_virt_launcher(pod) else None
            if isinstance(found, NotYet):
                self.waiting[row.name] = found
            elif found and pod:
                self._assumed = [each for each in self._assumed if each.vmi != row.name]
                self._assumed.append(found.assumed_start(now))
                world.api.act(self._rng.uniform(*_REQUEST_SECONDS), lambda pod=pod: self._delete(pod))

    def _decide_one(self, row: VMStatus, pod: Object, now: float) -> RestartVM | NotYet:
        vm = self.process.world.virt.vms[row.name]
        stuck = StuckVM(
            row=row,
            pod=convert(pod, Pod),
            uid=pod["metadata"]["uid"],
            resource_version=str(pod["metadata"].get("resourceVersion", "")),
            started=rfc3339(int(vm.started)),
            owner=vm.name,
            run_strategy="Always",
            failed_starts=vm.failed_starts,
        )
        view = self.process.watcher.view()
        while isinstance(found := decide_restart(stuck, now, self.limits, self._assumed, view), NeedObjects):
            view = self.process.watcher.read(view, found.refs)
        return found

    def _delete(self, pod: Object) -> None:
        world = self.process.world
        meta = pod["metadata"]
        stored = world.api.pod(f"{meta['namespace']}/{meta['name']}")
        if stored is not None and stored["metadata"]["uid"] == meta["uid"] and not stored["spec"].get("nodeName"):
            world.engine.trace(f"{self.process.watcher.name} deletes the pod of {world.virt.vm_of(pod).name}")
            self.freed += 1
            for listener in self.deleting:
                listener(stored)
            world.virt.pod_deleted(pod)
