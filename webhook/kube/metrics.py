"""The metrics of the caches, the VMs and the Events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import Metric

from webhook.core.observe.events import Outcome
from webhook.core.observe.vm_status import Decided, State, VMStatus
from webhook.core.view import Kind
from webhook.telemetry.exposition import Family, Labels

if TYPE_CHECKING:
    from webhook.kube.cache.lookups import LookupCounts
    from webhook.kube.cache.readiness import CacheState
    from webhook.kube.vm_status import Changes, VMStatusTracker


class Caches:
    """What a live cluster's store says of itself."""

    def __init__(self, states: Callable[[], Sequence[CacheState]], lookups: Mapping[Kind, LookupCounts]) -> None:
        self._states = states
        self._lookups = lookups

    def families(self) -> Iterator[Metric]:
        """As they are now."""
        states, now = self._states(), time.time()
        yield Family.CACHE_FRESH.metric({(each.title,): each.fresh for each in states})
        yield Family.CACHE_OBJECTS.metric({(each.title,): each.objects for each in states})
        heard = [(each.title, each.heard_seconds) for each in states if each.heard_seconds is not None]
        yield Family.CACHE_LAST_EVENT.metric({(title,): now - seconds for title, seconds in heard})
        yield Family.CACHE_INTERRUPTIONS.metric(
            {(each.title, cause.value): count for each in states for cause, count in each.causes.items()}
        )
        yield Family.CACHE_UNREADABLE.metric({(each.title,): each.unreadable for each in states})
        yield Family.LOOKUPS.metric({labels: value for labels, value in self._looked() if value})
        yield Family.LATE_READS.metric({(kind.value,): counts.late for kind, counts in self._lookups.items()})

    def _looked(self) -> Iterator[tuple[Labels, int]]:
        for kind, counts in self._lookups.items():
            for outcome in ("hit", "miss", "stale"):
                yield (kind.value, "cache", outcome), getattr(counts, outcome)
            for outcome in ("found", "absent", "failed"):
                yield (kind.value, "request", outcome), getattr(counts, outcome)


def of_events(counts: Mapping[Outcome, int]) -> Iterator[Metric]:
    """What became of Events; nothing, where there are none."""
    yield Family.EVENTS.metric({(outcome.value,): counts.get(outcome, 0) for outcome in Outcome})


class VirtualMachines:
    """How VMs and their share-managers are to each other, and which VMs were seen to start.

    Nothing is told before the caches were whole once. All is counted by what has changed since the last time.
    """

    def __init__(self, fleet: VMStatusTracker) -> None:
        self._fleet = fleet
        self._version = 0
        self._there: set[tuple[str, str]] | None = None
        self._starts = dict.fromkeys(Decided, 0)
        self._families: list[Metric] = []

    def families(self) -> Iterable[Metric]:
        """As of the fleet's last pass."""
        snapshot = self._fleet.snapshot
        if self._there is None and (snapshot.late or not snapshot.version):
            return ()
        if snapshot.version != self._version:
            self._count_starts(self._fleet.changes(self._version))
            self._version = snapshot.version
            starts = Family.VM_STARTS.metric({(decision.value,): count for decision, count in self._starts.items()})
            self._families = [*of_vms(snapshot.rows), starts]
        return self._families

    def _count_starts(self, changes: Changes) -> None:
        """A VM that is there and was not has started. A live migration's target is of one that was."""
        rows = {(row.namespace, row.name): row for row in changes.rows}
        there = self._there
        if there is None:
            there = set(rows)  # who knows for how long
        for vm in rows.keys() - there:
            self._starts[rows[vm].decided] += 1
        self._there = set(rows) if changes.whole else (there | rows.keys()) - set(changes.gone)


def of_vms(rows: Iterable[VMStatus]) -> Iterator[Metric]:
    """How many VMs are in each state and since when, and what they were given."""
    states, decisions = dict.fromkeys(State, 0), dict.fromkeys(Decided, 0)
    oldest: dict[State, str] = {}
    for row in rows:
        states[row.state] += 1
        decisions[row.decided] += 1
        if row.since:
            oldest[row.state] = min(oldest.get(row.state, row.since), row.since)
    yield Family.VMS.metric({(state.value,): count for state, count in states.items()})
    yield Family.VMS_SINCE.metric({(state.value,): _timestamp(text) for state, text in oldest.items()})
    yield Family.VM_DECISIONS.metric({(decision.value,): count for decision, count in decisions.items()})


def _timestamp(text: str) -> float:
    """A time as the API server writes it; it takes no other."""
    return datetime.fromisoformat(text).timestamp()
