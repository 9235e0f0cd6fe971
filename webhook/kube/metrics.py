"""The metrics of caches, VMs and Events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import Metric

from webhook.core.observe.events import Outcome
from webhook.core.observe.past_decision import Decided
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.view import Kind
from webhook.telemetry.exposition import Family, Labels

if TYPE_CHECKING:
    from webhook.kube.cache.lookups import LookupCounts
    from webhook.kube.cache.readiness import CacheState
    from webhook.kube.vm_status import Changes, VMStatusTracker


class CacheMetrics:
    """The metrics of the caches and of the lookups in them. `states` returns the state of each cache."""

    def __init__(self, states: Callable[[], Sequence[CacheState]], lookups: Mapping[Kind, LookupCounts]) -> None:
        self._states = states
        self._lookups = lookups

    def families(self) -> Iterator[Metric]:
        """Yield the families with their current values."""
        states, now = self._states(), time.time()
        yield Family.CACHE_FRESH.metric({(each.title,): each.fresh for each in states})
        yield Family.CACHE_OBJECTS.metric({(each.title,): each.objects for each in states})
        heard = [(each.title, each.heard_seconds) for each in states if each.heard_seconds is not None]
        yield Family.CACHE_LAST_EVENT.metric({(title,): now - seconds for title, seconds in heard})
        yield Family.CACHE_INTERRUPTIONS.metric(
            {(each.title, cause.value): count for each in states for cause, count in each.causes.items()}
        )
        yield Family.CACHE_UNREADABLE.metric({(each.title,): each.unreadable for each in states})
        yield Family.LOOKUPS.metric({labels: value for labels, value in self._lookups_by_outcome() if value})
        yield Family.LATE_READS.metric({(kind.value,): counts.late for kind, counts in self._lookups.items()})

    def _lookups_by_outcome(self) -> Iterator[tuple[Labels, int]]:
        for kind, counts in self._lookups.items():
            for outcome in ("hit", "miss", "stale"):
                yield (kind.value, "cache", outcome), getattr(counts, outcome)
            for outcome in ("found", "absent", "failed"):
                yield (kind.value, "request", outcome), getattr(counts, outcome)


def event_families(counts: Mapping[Outcome, int]) -> Iterator[Metric]:
    """Yield the number of Events by outcome; 0 for each outcome without a count."""
    yield Family.EVENTS.metric({(outcome.value,): counts.get(outcome, 0) for outcome in Outcome})


class VMMetrics:
    """The number of VMs by state and decision, their time by state, and the number of starts.

    There are no families before all caches were synced once. Starts are counted from the changes between two scrapes.
    """

    def __init__(self, tracker: VMStatusTracker) -> None:
        self._tracker = tracker
        self._version = 0
        self._known: set[tuple[str, str]] | None = None
        self._starts = dict.fromkeys(Decided, 0)
        self._families: list[Metric] = []

    def families(self) -> Iterable[Metric]:
        """Return the families as of the tracker's last pass."""
        snapshot = self._tracker.snapshot
        if self._known is None and (snapshot.late or not snapshot.version):
            return ()
        if snapshot.version != self._version:
            self._count_starts(self._tracker.changes(self._version))
            self._version = snapshot.version
            starts = Family.VM_STARTS.metric({(decision.value,): count for decision, count in self._starts.items()})
            self._families = [*vm_families(snapshot.rows), starts]
        seconds: dict[Labels, float] = {
            (state.value,): value for state, value in self._tracker.seconds.by_state.items()
        }
        return [*self._families, Family.VM_SECONDS.metric(seconds)]

    def _count_starts(self, changes: Changes) -> None:
        """Count each VM that is new. The target pod of a live migration belongs to a VM that is not new."""
        rows = {(row.namespace, row.name): row for row in changes.rows}
        known = self._known
        if known is None:
            known = set(rows)  # when they started is not known
        for vm in rows.keys() - known:
            self._starts[rows[vm].decided] += 1
        self._known = set(rows) if changes.whole else (known | rows.keys()) - set(changes.gone)


def vm_families(rows: Iterable[VMStatus]) -> Iterator[Metric]:
    """Yield the number of VMs by state and by decision, and the oldest `since` of each state."""
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
    """Return the seconds since 1970 of an RFC 3339 time. The API server accepts times in no other form."""
    return datetime.fromisoformat(text).timestamp()
