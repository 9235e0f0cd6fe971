"""The metrics of caches, VMs and Events."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from heapq import nsmallest
from typing import TYPE_CHECKING, Final

from prometheus_client.metrics_core import Metric

from webhook.component_base.health import Labels, counter, gauge
from webhook.core.observe.events import Outcome
from webhook.core.observe.past_decision import Decided
from webhook.core.observe.vm_status import TROUBLED, State, VMStatus
from webhook.core.view import Kind

if TYPE_CHECKING:
    from webhook.kube.cache.caches import CacheState, LookupCounts
    from webhook.kube.vm_status import VMStarts, VMStatuses, VMStatusTracker

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
        yield gauge(
            "cache_fresh",
            "1 while calls use the cache, 0 while they read each object from the API server, or do without VMs and "
            "VMIs.",
            ("cache",),
            {(cache.title,): cache.fresh for cache in states},
        )
        yield gauge(
            "cache_objects", "Objects in the cache.", ("cache",), {(cache.title,): cache.objects for cache in states}
        )
        heard = [(cache.title, cache.heard_seconds) for cache in states if cache.heard_seconds is not None]
        yield gauge(
            "cache_last_event_timestamp_seconds",
            "Time of the last answer or event from the API server, bookmarks included; absent before the first one.",
            ("cache",),
            {(title,): now - seconds for title, seconds in heard},
        )
        yield counter(
            "cache_interruptions",
            "Lists and watches that ended with an error and were started again, by cause.",
            ("cache", "cause"),
            {(cache.title, cause.value): count for cache in states for cause, count in cache.causes.items()},
        )
        yield counter(
            "cache_unreadable_objects",
            "Objects from the API server that could not be decoded, and are not in the cache.",
            ("cache",),
            {(cache.title,): cache.unreadable for cache in states},
        )
        yield counter(
            "lookups",
            "Lookups of objects in the cache (hit, miss, stale) and by requests to the API server (found, absent, "
            "failed).",
            ("kind", "source", "outcome"),
            {labels: value for labels, value in self._lookups_by_outcome() if value},
        )
        yield counter(
            "late_reads",
            "Reads from the API server that had no answer before the deadline of their call.",
            ("kind",),
            {(kind.value,): counts.late for kind, counts in self._lookups.items()},
        )

    def _lookups_by_outcome(self) -> Iterator[tuple[Labels, int]]:
        for kind, counts in self._lookups.items():
            for outcome in ("hit", "miss", "stale"):
                yield (kind.value, "cache", outcome), getattr(counts, outcome)
            for outcome in ("found", "absent", "failed"):
                yield (kind.value, "request", outcome), getattr(counts, outcome)


def event_families(counts: Mapping[Outcome, int]) -> Iterator[Metric]:
    """Yield the number of Events by outcome; 0 for each outcome without a count."""
    yield counter(
        "events",
        "Events on VirtualMachineInstances (--events), by outcome.",
        ("outcome",),
        {(outcome.value,): counts.get(outcome, 0) for outcome in Outcome},
    )


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
        yield counter(
            "vm_starts",
            "Starts of such VMs, by the decision for their pod, except of pods that came and went while no watch was "
            "up.",
            ("decision",),
            {(decision.value,): n for decision, n in self._starts.by_decision.items()},
        )
        snapshot = self._tracker.snapshot
        if self._shown is None and (snapshot.late or not snapshot.known):
            return
        if snapshot is not self._shown:
            self._shown = snapshot
            self._families = list(vm_families(snapshot.rows))
        yield from self._families
        yield counter(
            "vm_seconds",
            "Time of such VMs in each state, in VM-seconds. Each replica counts every VM: use max or avg over "
            "replicas.",
            ("state",),
            {(str(state),): n for state, n in self._tracker.seconds.by_state.items()},
        )


def vm_families(rows: Iterable[VMStatus]) -> Iterator[Metric]:
    """Yield the number of VMs by state and by decision, the oldest `since` of each state, and the named VMs."""
    states, decisions = dict[str, int](dict.fromkeys(State, 0)), Counter[Decided | None]()
    oldest: dict[str, str] = {}
    to_name: list[_Named] = []
    for row in rows:
        states[row.state] += 1
        decisions[row.decided] += 1
        if row.since:
            oldest[row.state] = min(oldest.get(row.state, row.since), row.since)
            if row.state in _NAMED_STATES:
                to_name.append((_NAMED_STATES.index(row.state), row.since, row.namespace, row.name))
    yield gauge(
        "vms",
        "VMs that asked for co-scheduling, by state: where they run now relative to their share-managers.",
        ("state",),
        {(str(state),): count for state, count in states.items()},
    )
    yield gauge(
        "vms_oldest_timestamp_seconds",
        "Time since which the VM that is longest in this state has been in it; absent if no VM is in it.",
        ("state",),
        {(str(state),): _timestamp(text) for state, text in oldest.items()},
    )
    yield gauge(
        "vm_decisions",
        "The same VMs, by the decision for their pod. migrated: by a live migration, no call. nothing: none.",
        ("decision",),
        {(decision.value,): decisions[decision] for decision in Decided},
    )
    yield from _named_families(states, nsmallest(NAMED_VMS_MAX, to_name))


def _named_families(states: Mapping[str, int], named: Sequence[_Named]) -> Iterator[Metric]:
    """Yield one sample for each of these VMs, and how many VMs of their states have none."""
    left_out = {state: states[state] for state in _NAMED_STATES}
    samples: dict[Labels, float] = {}
    for number, since, namespace, name in named:
        state = _NAMED_STATES[number]
        left_out[state] -= 1
        samples[namespace, name, state.value] = _timestamp(since)
    yield gauge(
        "vm_in_trouble_timestamp_seconds",
        "Time since which this VM has been stuck, not running or apart. At most 100 VMs, in this order.",
        ("vm_namespace", "vm", "state"),
        samples,
    )
    yield gauge(
        "vms_in_trouble_not_named",
        "VMs that are stuck, not running or apart beyond the 100 VMs that vm_in_trouble_timestamp_seconds names.",
        ("state",),
        {(state.value,): count for state, count in left_out.items()},
    )


def _timestamp(text: str) -> float:
    """Return the seconds since 1970 of an RFC 3339 time. The API server accepts times in no other form."""
    return datetime.fromisoformat(text).timestamp()
