"""One contestant's month: each event happens on real controllers, and the clock jumps when all is at rest again.

So nothing takes time but what the plan says: a start, a migration or a drain is over before the clock goes on. What is
not at rest after QUIET_AT_MOST is counted, and the clock goes on without it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from month.account import Account
from month.acts import Acts
from month.machines import Machines
from month.plan import Plan, What
from support.control_plane.kube_api import Object
from support.kubevirt import vms
from support.kubevirt.cluster import Cluster
from support.kubevirt.following import Follower
from support.scenarios.admitting import FAIL_OPEN, Counted

QUIET_AT_MOST: Final = 60.0
REUNITE_EVERY_HOURS: Final = 1.0
REUNITE_OPTIONS: Final = {"--apart-seconds": 0.5, "--rest-seconds": 24.0}
"""Its clock runs as the plan's: option -> its default in hours."""
_BY: Final = {"-by-hand-": "people", "kubevirt-evacuation-": "drains", "-reunite-": "reunite"}
_QUIET_SECONDS: Final = 0.15  # so long nothing may be on its way
_BEAT_SECONDS: Final = 60.0


class Play:
    """Plays a plan on a cluster.

    `hour_seconds` is how long an hour takes at least, for `reunite`, which reads the clock; None without it.
    """

    def __init__(self, cluster: Cluster, plan: Plan, *, hour_seconds: float | None = None) -> None:
        self.cluster, self.plan = cluster, plan
        self.machines = Machines(cluster, plan.machines)
        self.acts = Acts(self.machines)
        self.account = Account({machine.name: machine.opted_in for machine in plan.machines})
        self.share_manager_pods: Counter[str] = Counter()
        self.unsettled: list[str] = []
        self._nodes, self._hour_seconds = cluster.nodes, hour_seconds
        self._began = self._beaten = time.monotonic()
        self._now = 0.0

    def run(self) -> dict[str, Any]:
        """Play it to the end; what came of it."""
        counted = Counted(self.cluster.api)
        follower = Follower(self.cluster.api, "kubevirt.io/v1", vms.MIGRATION, self.machines.migration_changed)
        follower.start()
        try:
            for machine in self.plan.machines:
                self.acts.make(machine)
            self._after(What.START, "the first start", None)
            for event in self.plan.events:
                self._until(event.at)
                done = self.acts.act(event)
                if event.what is What.POWER_CUT:
                    self.account.see(self.machines.places(), event.what)
                else:
                    self._after(event.what, f"{event.what} {event.target}", done)
            self._until(self.plan.hours)
        finally:
            follower.end()
        assert [*follower.failures, *self._nodes.failures] == []
        return self._report(counted.more()(FAIL_OPEN))

    def _report(self, failed_open: float) -> dict[str, Any]:
        migrations = Counter(map(_told, self.machines.migrations.values()))
        return {
            **self.account.report(),
            "share-manager pods": dict(sorted(self.share_manager_pods.items())),
            "migrations": dict(sorted(migrations.items())),
            "failed open": failed_open,
            "not at rest": self.unsettled,
            "seconds": round(time.monotonic() - self._began),
        }

    # The clock

    def _until(self, hour: float) -> None:
        """Let time pass up to this hour, with a run of reunite each hour while a VM is apart."""
        while self._hour_seconds and (tick := self._now + REUNITE_EVERY_HOURS) < hour and self.machines.is_apart():
            self._pass(tick)
            self.cluster.reunite(
                *(f"{name}={hours * self._hour_seconds:.0f}" for name, hours in REUNITE_OPTIONS.items())
            )
            self._after(What.REUNITE, "reunite", None)
        self._pass(hour)

    def _pass(self, hour: float) -> None:
        self.account.spend(hour - self._now)
        self._now = hour
        if self._hour_seconds:
            time.sleep(max(0.0, self._began + hour * self._hour_seconds - time.monotonic()))
        if time.monotonic() - self._beaten > _BEAT_SECONDS:
            self._nodes.beat()
            self._beaten = time.monotonic()

    def _after(self, what: What, told: str, done: Callable[[], bool] | None) -> None:
        """Wait until all is at rest, and see where the VMs are."""
        deadline = time.monotonic() + QUIET_AT_MOST
        quiet_since: float | None = None
        while quiet_since is None or time.monotonic() - quiet_since < _QUIET_SECONDS:
            is_quiet = (done is None or done()) and not self.machines.restless()
            quiet_since = (quiet_since or time.monotonic()) if is_quiet else None
            if time.monotonic() > deadline:
                self.unsettled.append(f"{told}: {', '.join(self.machines.restless())}")
                break
            time.sleep(0.02)
        self.share_manager_pods[what] += self._nodes.longhorn.created.total() - self.share_manager_pods.total()
        self.account.see(self.machines.places(), what)


def _told(migration: Object) -> str:
    """Who made it, and what came of it."""
    name = migration["metadata"]["name"]
    who = next((who for part, who in _BY.items() if part in name), "others")
    return f"{who}: {migration.get('status', {}).get('phase', 'no phase')}"
