"""/metrics: what this replica counts, and what it sees, as Prometheus' families.

A call adds to a few plain numbers (`note`); all else is made when somebody asks. Nothing here is global: two of these
know nothing of each other.
"""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol

from prometheus_client import CollectorRegistry, ProcessCollector, exposition
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from webhook import __version__
from webhook.core.admit import Entry
from webhook.core.observe.events import Outcome
from webhook.core.observe.vm_status import Decided, State, VirtualMachineRow
from webhook.core.view import Kind
from webhook.families import Family, Histogram, Labels
from webhook.record import AdmissionRecord
from webhook.serving.certificate import ServingCertificate
from webhook.serving.pem import Problem

if TYPE_CHECKING:
    from webhook.kube.fleet import Changes, Fleet
    from webhook.kube.lookups import Lookups
    from webhook.kube.store import CacheState

# From what an answer out of the caches takes to what the API server waits for it: timeoutSeconds of the configuration.
_SECONDS: Final = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0)
_READS: Final = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)  # up to the most that are read for one pod
_STAGES: Final = ("decide", "read")
_REFUSALS: Final = (400, 403, 404, 405, 408, 411, 413, 415, 500, 503)
_MICROSECOND: Final = 1e-6

_TEXT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_OPENMETRICS: Final = "application/openmetrics-text"
_OPENMETRICS_TYPE: Final = f"{_OPENMETRICS}; version=1.0.0; charset=utf-8"


Source = Callable[[], Iterable[Metric]]
"""What is asked for its families at each scrape."""


class Admissions:
    """What became of the calls so far."""

    def __init__(self) -> None:
        titles = [entry.title for entry in Entry]
        self._outcomes: Counter[Labels] = Counter()
        self._durations = {(title,): Histogram(_SECONDS) for title in titles}
        self._stages = {(title, stage): Histogram(_SECONDS) for title in titles for stage in _STAGES}
        self._reads = {(title,): Histogram(_READS) for title in titles}
        self._refused: Counter[Labels] = Counter({(str(status),): 0 for status in _REFUSALS})

    def note(self, record: AdmissionRecord) -> None:
        """Count a call. It costs each of them a microsecond: what can be left to whoever asks is left to them."""
        entry = record.entry
        self._outcomes[entry, record.decision, record.reason] += 1
        self._durations[(entry,)].observe(record.duration_us * _MICROSECOND)
        self._stages[entry, "decide"].observe((record.duration_us - record.read_us) * _MICROSECOND)
        self._reads[(entry,)].observe(record.reads)
        if record.reads:
            self._stages[entry, "read"].observe(record.read_us * _MICROSECOND)

    def refused(self, status: int) -> None:
        """Count a call that got this HTTP error."""
        self._refused[(str(status),)] += 1

    def families(self) -> Iterator[Metric]:
        """As they are now."""
        yield Family.ADMISSIONS.metric(self._outcomes)
        yield Family.DURATION.histograms(self._durations.items())
        yield Family.STAGE_DURATION.histograms(self._stages.items())
        yield Family.READS.histograms(self._reads.items())
        yield Family.REFUSED_CALLS.metric(self._refused)


class Caches:
    """What a live cluster's store says of itself."""

    def __init__(self, states: Callable[[], Sequence[CacheState]], lookups: Mapping[Kind, Lookups]) -> None:
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


class LinesLeftOut(Protocol):
    """A log that does not write every line."""

    @property
    def left_out(self) -> int:
        """How many lines were not written so far, for there were too many."""
        ...


def of_log(log: LinesLeftOut) -> Iterator[Metric]:
    """What the log does not tell."""
    yield Family.LOG_LINES_LEFT_OUT.metric({(): log.left_out})


def of_background(failures: Mapping[str, int]) -> Iterator[Metric]:
    """What runs in the background, by name, and how often it has ended."""
    yield Family.TASK_FAILURES.metric({(name,): count for name, count in failures.items()})


def of_events(counts: Mapping[Outcome, int]) -> Iterator[Metric]:
    """What became of Events; nothing, where there are none."""
    yield Family.EVENTS.metric({(outcome.value,): counts.get(outcome, 0) for outcome in Outcome})


def of_certificate(certificate: ServingCertificate) -> Iterator[Metric]:
    """What is served, and what became of its files."""
    until = certificate.not_after
    yield Family.CERTIFICATE_EXPIRY.metric({(): until.timestamp()} if until else {})
    yield Family.CERTIFICATE_RELOADS.metric({(): certificate.reloads})
    yield Family.CERTIFICATE_FAILURES.metric({(each.value,): certificate.failures[each] for each in Problem})
    yield Family.CERTIFICATE_PROBLEM.metric({(): certificate.problem is not None})
    yield Family.HANDSHAKE_FAILURES.metric({(each,): n for each, n in certificate.handshakes.failures.items()})


class VirtualMachines:
    """How VMs and their share-managers are to each other, and which VMs were seen to start.

    Nothing is told before the caches were whole once. All is counted by what has changed since the last time.
    """

    def __init__(self, fleet: Fleet) -> None:
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


def of_vms(rows: Iterable[VirtualMachineRow]) -> Iterator[Metric]:
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


class Metrics(Collector):
    """All that /metrics tells. Each source says its families when it is asked."""

    def __init__(self, *sources: Source) -> None:
        self._sources = sources
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def collect(self) -> Iterator[Metric]:
        """As they are now."""
        yield Family.BUILD.metric({(__version__, platform.python_version()): 1})
        for source in self._sources:
            yield from source()

    def expose(self, accept: str) -> tuple[str, bytes]:
        """Content type and body for this Accept header: OpenMetrics where that is asked for, else the text format."""
        if _OPENMETRICS in (each.partition(";")[0].strip().lower() for each in accept.split(",")):
            openmetrics_text: bytes = openmetrics.generate_latest(self._registry)  # type: ignore[no-untyped-call]
            return _OPENMETRICS_TYPE, openmetrics_text
        return _TEXT_TYPE, exposition.generate_latest(self._registry)
