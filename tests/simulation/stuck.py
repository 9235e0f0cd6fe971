"""The part of `reunite` that frees stuck VMs, in the simulation: the real decision, over the caches of `reunite`.

Real is `webhook.core.reunite.stuck.decide_restart`, with the assumed starts of a process. Played here is the request to
the API server: its preconditions leave a pod that has changed as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec import convert
from simulation.api_server import Object, is_virt_launcher
from simulation.engine import rfc3339

from webhook.core.api.pod import Pod
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.reunite.assumed_start import AssumedStart, still_assumed
from webhook.core.reunite.not_yet import NotYet
from webhook.core.reunite.stuck import RestartVM, StuckLimits, StuckVM, decide_restart
from webhook.reunite.stuck_vms import StuckPlan

if TYPE_CHECKING:
    from simulation.reuniting import Reuniting


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

    def forget(self) -> None:
        """Begin with nothing in memory."""
        self._assumed = []

    async def plan(self, rows: Iterable[VMStatus], now: float) -> StuckPlan:
        """Return which of these VMs to restart, those that wait longest first."""
        rows = list(rows)
        self._assumed = still_assumed(self._assumed, rows, now)
        restarts: list[RestartVM] = []
        waiting: dict[tuple[str, str], NotYet] = {}
        for row in sorted((each for each in rows if each.state is State.STUCK), key=lambda each: each.since or ""):
            pod = self.process.world.api.pod(f"{row.namespace}/{row.pod}")
            found = self._decide_one(row, pod, now) if pod and is_virt_launcher(pod) else None
            if isinstance(found, NotYet):
                waiting[row.namespace, row.name] = found
            elif found:
                self._assumed = [each for each in self._assumed if each.vmi != row.name]
                self._assumed.append(found.assumed_start(now))
                restarts.append(found)
        self.waiting = {name: why for (_, name), why in waiting.items()}
        return StuckPlan(restarts=restarts, waiting=waiting)

    async def restart(self, action: RestartVM) -> str:
        """Delete the VM's pod, if it is as it was read. Return why not."""
        if not await self.process.requests.arrives():
            return "no answer"  # the assumed start stays, because the pod may be deleted
        world, row = self.process.world, action.vm.row
        stored = world.api.pod(f"{row.namespace}/{row.pod}")
        if stored is None or (stored["metadata"]["uid"], _version(stored)) != (
            action.vm.uid,
            action.vm.resource_version,
        ):
            self._assumed = [each for each in self._assumed if each.vmi != row.name]
            return "the pod has changed"
        world.engine.trace(f"{self.process.watcher.name} deletes the pod of {row.name}")
        self.freed += 1
        for listener in self.deleting:
            listener(stored)
        world.virt.pod_deleted(stored)
        return "" if await self.process.requests.arrives() else "no answer"

    def _decide_one(self, row: VMStatus, pod: Object, now: float) -> RestartVM | NotYet:
        vm = self.process.world.virt.vms[row.name]
        stuck = StuckVM(
            row=row,
            pod=convert(pod, Pod),
            uid=pod["metadata"]["uid"],
            resource_version=_version(pod),
            started=rfc3339(int(vm.started)),
            owner=vm.name,
            run_strategy="Always",
            failed_starts=vm.failed_starts,
        )
        view = self.process.watcher.view()
        found = decide_restart(stuck, now, self.limits, self._assumed, view)
        while view.missing:
            view = self.process.watcher.read(view, view.missing)
            found = decide_restart(stuck, now, self.limits, self._assumed, view)
        return found


def _version(pod: Object) -> str:
    return str(pod["metadata"].get("resourceVersion", ""))
