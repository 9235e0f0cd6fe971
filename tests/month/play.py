"""One contestant's month: each event happens on real controllers, and the clock jumps when all is at rest again.

So nothing takes time but what the plan says: a start, a migration or a drain is over before the clock goes on. What is
not at rest after QUIET_AT_MOST is counted, and the clock goes on without it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from month import reuniting
from month.account import Account
from month.acts import Acts
from month.machines import Machines
from month.plan import Event, Plan, What, rolling_drain, together
from month.reuniting import PlanClock
from support.control_plane.kube_api import Object
from support.kubevirt import vms
from support.kubevirt.cluster import Cluster
from support.kubevirt.following import Follower
from support.scenarios.admitting import FAIL_OPEN, Counted

QUIET_AT_MOST: Final = 300.0
REUNITE_AGAIN_HOURS: Final = 1 / 6
"""Each ten minutes, as its CronJob runs by default; after a run that moved no VM, each hour."""
REUNITE_IDLE_HOURS: Final = 1.0
_MOVES_NOBODY: Final = frozenset({What.START, What.STOP, What.GUEST_RESTART, What.QUICK_RESTART})
_BY: Final = {"-by-hand-": "people", "kubevirt-evacuation-": "drains", "-reunite-": "reunite"}
_QUIET_SECONDS: Final = 0.1  # so long nothing may be on its way
_BEAT_SECONDS: Final = 60.0


class Play:
    """Plays a plan on a cluster."""

    def __init__(self, cluster: Cluster, plan: Plan, *, reunites: bool = False) -> None:
        """`reunites`: whether `reunite` runs while a VM is apart."""
        self.cluster, self.plan = cluster, plan
        self.machines = Machines(cluster, plan.machines)
        self.acts = Acts(self.machines)
        self.account = Account({machine.name: machine.opted_in for machine in plan.machines})
        self.share_manager_pods: Counter[str] = Counter()
        self.unsettled: list[str] = []
        self._created: Counter[str] = Counter()
        self._nodes, self._reunites, self._clock = cluster.nodes, reunites, PlanClock()
        self._began = self._beaten = time.monotonic()
        self._now = self._idle_until = 0.0

    def run(self) -> dict[str, Any]:
        """Play it to the end, then drain all nodes; what came of it."""
        counted = Counted(self.cluster.api)
        follower = Follower(self.cluster.api, "kubevirt.io/v1", vms.MIGRATION, self.machines.migration_changed)
        follower.start()
        try:
            self._clock.set(0.0)
            for machine in self.plan.machines:
                self.acts.make(machine)
            self._after(What.START)
            self._play(self.plan.events)
            self._until(self.plan.hours)
            told = self._report()
            rolling = self._drain_all()
        finally:
            follower.end()
        assert [*follower.failures, *self._nodes.failures] == []
        return {
            **told,
            "rolling drain": rolling,
            "failed open": counted.more()(FAIL_OPEN),
            "not at rest": self.unsettled,
            "seconds": round(time.monotonic() - self._began),
        }

    def _report(self) -> dict[str, Any]:
        return {
            **self.account.report(),
            "share-manager pods": dict(sorted(self.share_manager_pods.items())),
            "migrations": dict(sorted(self._migrations().items())),
        }

    def _migrations(self) -> Counter[str]:
        return Counter(map(_told, self.machines.migrations.values()))

    def _play(self, events: Iterable[Event]) -> None:
        for group in together(events):
            first, by_vm = group[0], {event.target: event.what for event in group if event.is_of_vm}
            self._until(first.at)
            if self._reunites and not _MOVES_NOBODY.issuperset(event.what for event in group):
                self._clock.until_next_second()
            acts = [self.acts.act(event) for event in group]
            if first.what is What.POWER_CUT:
                self.account.see(self.machines.places(), first.what, {})
            else:
                self._after(first.what, *filter(None, acts), by_vm=by_vm, told=f"{first.what} {first.target}")

    def _drain_all(self) -> dict[str, Any]:
        """Start all VMs, then drain one node after the other: how many share-manager pods and migrations that takes."""
        for machine in self.plan.machines:
            if machine.name not in self.machines.wanted:
                self.acts.act(Event(self._now, What.START, machine.name))
        self._after(What.START)
        pods, migrations = self.share_manager_pods.total(), self._migrations()
        created = Counter(self._nodes.longhorn.created)
        self._play(rolling_drain(self._now, self.plan.nodes))
        more = Counter((self._nodes.longhorn.created - created).values())
        return {
            "share-manager pods": self.share_manager_pods.total() - pods,
            "volumes by new pods": {str(pods): volumes for pods, volumes in sorted(more.items())},
            "migrations": dict(sorted((self._migrations() - migrations).items())),
            "local at the end": self._local(),
        }

    def _local(self) -> int:
        """How many VMs that are opted in are beside all their share-managers."""
        places = [place for name, place in self.machines.places().items() if self.machines.machines[name].opted_in]
        return sum(place.node is not None and {*place.homes} == {place.node} for place in places)

    # The clock

    def _until(self, hour: float) -> None:
        """Let time pass up to this hour, with runs of reunite while a VM is apart."""
        while self._reunites and (tick := self._next_run()) < hour and self.machines.is_apart():
            self._pass(tick)
            reports = reuniting.run(self.cluster, self._clock)
            is_idle = not any(each.action == "migrate" for each in reports)
            self._idle_until = tick + (REUNITE_IDLE_HOURS if is_idle else REUNITE_AGAIN_HOURS)
            self._after(What.REUNITE)
        self._pass(hour)

    def _next_run(self) -> float:
        return max(self._now + REUNITE_AGAIN_HOURS, self._idle_until)

    def _pass(self, hour: float) -> None:
        self.account.spend(hour - self._now)
        self._now = hour
        self._clock.set(hour)
        self._beat()

    def _beat(self) -> None:
        """Have the nodes tell that they live: as long as the wait for rest may last, they would be lost without it."""
        if time.monotonic() - self._beaten > _BEAT_SECONDS:
            self._nodes.beat()
            self._beaten = time.monotonic()

    def _after(
        self, what: What, *acts: Callable[[], bool], by_vm: Mapping[str, What] | None = None, told: str = ""
    ) -> None:
        """Wait until all is at rest, and see where the VMs are: `what` has happened, and to some VMs `by_vm`."""
        deadline = time.monotonic() + QUIET_AT_MOST
        quiet_since: float | None = None
        while quiet_since is None or time.monotonic() - quiet_since < _QUIET_SECONDS:
            is_quiet = all(done() for done in acts) and not self.machines.restless()
            quiet_since = (quiet_since or time.monotonic()) if is_quiet else None
            if time.monotonic() > deadline:
                assert self._nodes.failures == []
                self.unsettled.append(f"{told or what}: {', '.join(self.machines.restless())}")
                break
            self._beat()
            time.sleep(0.02)
        created = Counter(self._nodes.longhorn.created)
        for volume, pods in (created - self._created).items():
            self.share_manager_pods[(by_vm or {}).get(self.machines.user(volume), what)] += pods
        self._created = created
        self.account.see(self.machines.places(), what, by_vm or {})


def _told(migration: Object) -> str:
    """Who made it, and what came of it."""
    name = migration["metadata"]["name"]
    who = next((who for part, who in _BY.items() if part in name), "others")
    return f"{who}: {migration.get('status', {}).get('phase', 'no phase')}"
