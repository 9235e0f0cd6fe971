"""Checks of stuck VMs: a run of `reunite` frees a pod that our terms keep waiting while another node would take it.
It touches no pod that only waits for resources.

The time begins once the pod waits, another node takes it, `reunite` runs, and the API server answers: no request of
`reunite` is lost. A VM whose new pod waits again is freed after ten minutes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from simulation.api_server import Object, key_of
from simulation.check_answers import STALE_SECONDS, Breaks
from simulation.engine import DAY
from simulation.reuniting import EVERY_SECONDS, Reuniting

if TYPE_CHECKING:
    from simulation.world import World

_FREED_SECONDS: Final = 60.0 + EVERY_SECONDS + 30.0  # kube-scheduler's minute, the next run, and its requests
_AWAITED_SECONDS: Final = 300.0  # a VM that was restarted and has no pod yet
_AGAIN_SECONDS: Final = 600.0  # the same: at most once in this time


class StuckChecks:
    """Checks the pods that wait, in a world in which `reunite` runs."""

    def __init__(self, world: World, broken: Breaks) -> None:
        self.world = world
        self.broken = broken
        self._fitted: dict[str, float] = {}  # when another node would last have taken the pod
        for process in world.reuniting:
            process.requests.deleting.append(self._deleting)

    def look(self, key: str, fits_since: float) -> None:
        """Look at a pod that waits, and that another node would take since so long."""
        self._fitted[key] = self.world.engine.now
        pod = self.world.api.pod(key)
        if pod is None or not self.world.reuniting:
            return
        vm = self.world.virt.vm_of(pod)
        again = vm.started + _AGAIN_SECONDS if vm.failed_starts else 0.0
        awaited = max(self.world.restarted.values(), default=0.0) + _AWAITED_SECONDS
        since = max(fits_since, self.world.scheduler.waiting[key], again, awaited)
        if all(
            self.world.engine.now > self._since(process, since) + _FREED_SECONDS for process in self.world.reuniting
        ):
            raise self.broken("stuck", f"{vm.name} waits, and another node takes it since {since:.0f}")

    def _since(self, process: Reuniting, since: float) -> float:
        return max(since, process.down_until, process.requests.lost_at, self.world.api.away_until)

    def _deleting(self, pod: Object) -> None:
        if self.world.engine.now > self._fitted.get(key_of(pod), -DAY) + STALE_SECONDS:
            name = self.world.virt.vm_of(pod).name
            raise self.broken("stuck", f"the pod of {name} is deleted, and no other node would take it")
