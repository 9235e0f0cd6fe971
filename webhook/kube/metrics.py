"""The metrics of caches, VMs and Events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from heapq import nsmallest
from typing import TYPE_CHECKING, Final

from prometheus_client.metrics_core import Metric

from webhook.component_base.metrics import Labels
from webhook.core.observe.events import Outcome
from webhook.core.observe.past_decision import Decided
from webhook.core.observe.vm_status import TROUBLED, State, VMStatus
from webhook.core.view import Kind
from webhook.telemetry.exposition import Family

if TYPE_CHECKING:
    from webhook.kube.cache.caches import CacheState, LookupCounts
    from webhook.kube.vm_starts import VMStarts
    from webhook.kube.vm_status import VMStatuses, VMStatusTracker

NAMED_VMS_MAX: Final = 100  # at most so many series, however many VMs are apart; so many alerts are already too many
_NAMED_STATES: Final = TROUBLED  # the worst first: only a VM that is apart runs
_Named = tuple[int, str, str, str]
"""Number of the state in _NAMED_STATES, since when, namespace and name: the order in which VMs are named."""


class CacheMetrics:
    """The metrics of the caches and of the lookups in them. `states` returns the state of each cache."""

    def __init__(self, states: Callable[[], Sequence[CacheState]], lookups: Mapping[Kind, LookupCounts]) -> None:
        self._states = states
        self._lookups = lookups

    def families(self) -> Iterator[Metric]:
        """Yield the families with their current values."""
        states, now = self._states(), time.time()
        yield Family.CACHE_FRESH.metric({(cache.title,): cache.fresh for cache in states})
        yield Family.CACHE_OBJECTS.metric({(cache.title,): cache.objects for cache in states})
        heard = [(cache.title, cache.heard_seconds) for cache in states if cache.heard_seconds is not None]
        yield Family.CACHE_LAST_EVENT.metric({(title,): now - seconds for title, seconds in heard})
        yield Family.CACHE_INTERRUPTIONS.metric(
            {(cache.title, cause.value): count for cache in states for cause, count in cache.causes.items()}
        )
        yield Family.CACHE_UNREADABLE.metric({(cache.title,): cache.unreadable for cache in states})
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
    """The number of VMs by state and decision, those in trouble by name, their time by state, and starts.

    There are no families before all caches were synced once.
    """

    def __init__(self, tracker: VMStatusTracker, starts: VMStarts) -> None:
        self._tracker = tracker
        self._starts = starts
        self._shown: VMStatuses | None = None
        self._families: list[Metric] = []

    def families(self) -> Iterator[Metric]:
        """Yield the families as of the tracker's last pass, and the starts until now."""
        yield Family.VM_STARTS.metric({(decision.value,): n for decision, n in self._starts.by_decision.items()})
        snapshot = self._tracker.snapshot
        if self._shown is None and (snapshot.late or not snapshot.known):
            return
        if snapshot is not self._shown:
            self._shown = snapshot
            self._families = list(vm_families(snapshot.rows))
        yield from self._families
        yield Family.VM_SECONDS.metric({(state.value,): n for state, n in self._tracker.seconds.by_state.items()})


def vm_families(rows: Iterable[VMStatus]) -> Iterator[Metric]:
    """Yield the number of VMs by state and by decision, the oldest `since` of each state, and the named VMs."""
    states, decisions = dict.fromkeys(State, 0), dict.fromkeys(Decided, 0)
    oldest: dict[State, str] = {}
    to_name: list[_Named] = []
    for row in rows:
        states[row.state] += 1
        decisions[row.decided] += 1
        if row.since:
            oldest[row.state] = min(oldest.get(row.state, row.since), row.since)
            if row.state in _NAMED_STATES:
                to_name.append((_NAMED_STATES.index(row.state), row.since, row.namespace, row.name))
    yield Family.VMS.metric({(state.value,): count for state, count in states.items()})
    yield Family.VMS_SINCE.metric({(state.value,): _timestamp(text) for state, text in oldest.items()})
    yield Family.VM_DECISIONS.metric({(decision.value,): count for decision, count in decisions.items()})
    yield from _named_families(states, nsmallest(NAMED_VMS_MAX, to_name))


def _named_families(states: Mapping[State, int], named: Sequence[_Named]) -> Iterator[Metric]:
    """Yield one sample for each of these VMs, and how many VMs of their states have none."""
    left_out = {state: states[state] for state in _NAMED_STATES}
    samples: dict[Labels, float] = {}
    for number, since, namespace, name in named:
        state = _NAMED_STATES[number]
        left_out[state] -= 1
        samples[namespace, name, state.value] = _timestamp(since)
    yield Family.VM_NAMED.metric(samples)
    yield Family.VMS_NOT_NAMED.metric({(state.value,): count for state, count in left_out.items()})


def _timestamp(text: str) -> float:
    """Return the seconds since 1970 of an RFC 3339 time. The API server accepts times in no other form."""
    return datetime.fromisoformat(text).timestamp()
