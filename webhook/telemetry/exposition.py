"""Every metric that `serve` has: name, type, labels and words. The one table behind /metrics and the README.

Names and units by Prometheus' rules. Every label has few values, known ahead: nothing that a caller or a cluster can
name becomes one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, unique
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

PREFIX: Final = "kubevirt_coschedule_"

Labels = tuple[str, ...]


class Histogram:
    """How many values were at most each bound, and what they add up to. One event loop writes and reads: no lock."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count one."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    @property
    def sum(self) -> float:
        """Of all values."""
        return self._sum

    def buckets(self) -> list[tuple[str, float]]:
        """(upper bound, how many were at most that)."""
        names, total, found = [*(f"{bound:g}" for bound in self._bounds), "+Inf"], 0, []
        for name, count in zip(names, self._counts, strict=True):
            total += count
            found.append((name, float(total)))
        return found


@unique
class Family(Enum):
    """Each metric, as /metrics calls it without its prefix: type, labels, and what it tells."""

    def __init__(self, title: str, kind: str, labels: Labels, words: str) -> None:
        self.title = PREFIX + title
        self.kind = kind
        self.labels = labels
        self.words = words

    BUILD = "build_info", "gauge", ("version", "python"), "1, for the version that runs."
    ADMISSIONS = (
        "admissions_total",
        "counter",
        ("entry", "decision", "reason"),
        "Answers, by entry of the webhook configuration, decision (required, preferred, unchanged) and reason code.",
    )
    DURATION = (
        "admission_duration_seconds",
        "histogram",
        ("entry",),
        "From the whole body of a call to its answer.",
    )
    STAGE_DURATION = (
        "admission_stage_duration_seconds",
        "histogram",
        ("entry", "stage"),
        "Of that, by stage: decide (bytes to bytes) and read (waiting for the API server, where a call had to).",
    )
    READS = (
        "admission_reads",
        "histogram",
        ("entry",),
        "Objects of an admission that no cache had, and that the API server was asked for.",
    )
    REFUSED_CALLS = (
        "refused_calls_total",
        "counter",
        ("status",),
        "Calls that got an HTTP error, by its status; 400 is a review that could not be read.",
    )
    LOOKUPS = (
        "lookups_total",
        "counter",
        ("kind", "source", "outcome"),
        "Objects looked for in the cache (hit, miss, stale) and by requests to the API server (found, absent, failed).",
    )
    LATE_READS = (
        "late_reads_total",
        "counter",
        ("kind",),
        "Objects that did not come before the deadline of the call that asked for them.",
    )
    CACHE_FRESH = (
        "cache_fresh",
        "gauge",
        ("cache",),
        "1 while calls are answered from the cache, 0 while each object is read instead.",
    )
    CACHE_OBJECTS = "cache_objects", "gauge", ("cache",), "Objects in the cache."
    CACHE_LAST_EVENT = (
        "cache_last_event_timestamp_seconds",
        "gauge",
        ("cache",),
        "When the API server was last heard, bookmarks included; absent before the first time.",
    )
    CACHE_INTERRUPTIONS = (
        "cache_interruptions_total",
        "counter",
        ("cache", "cause"),
        "Lists and watches that ended other than in order, by cause, and were begun anew.",
    )
    CACHE_UNREADABLE = (
        "cache_unreadable_objects_total",
        "counter",
        ("cache",),
        "Objects from the API server that could not be decoded, and were left out.",
    )
    CERTIFICATE_EXPIRY = (
        "certificate_expiry_timestamp_seconds",
        "gauge",
        (),
        "When the certificate that is served expires; absent while there is none.",
    )
    CERTIFICATE_RELOADS = "certificate_reloads_total", "counter", (), "New pairs taken after the first."
    CERTIFICATE_FAILURES = (
        "certificate_failures_total",
        "counter",
        ("problem",),
        "Pairs that were not taken, by what is wrong with them.",
    )
    CERTIFICATE_PROBLEM = (
        "certificate_problem",
        "gauge",
        (),
        "1 while the certificate's files can't be taken, and the pair before them (if any) is served on.",
    )
    HANDSHAKE_FAILURES = (
        "tls_handshake_failures_total",
        "counter",
        ("reason",),
        "Failed TLS handshakes, by OpenSSL's reason.",
    )
    EVENTS = (
        "events_total",
        "counter",
        ("outcome",),
        "Events on VirtualMachineInstances (--events), by what became of them.",
    )
    TASK_FAILURES = (
        "background_task_failures_total",
        "counter",
        ("task",),
        "Background tasks that ended, though none may: the process ends with them, and is started anew.",
    )
    LOG_LINES_LEFT_OUT = (
        "log_lines_left_out_total",
        "counter",
        (),
        "Lines of calls that were not written to the log: there were too many in one second.",
    )
    VMS = (
        "vms",
        "gauge",
        ("state",),
        "VMs that asked for co-scheduling, by how they and their share-managers are to each other now.",
    )
    VMS_SINCE = (
        "vms_oldest_timestamp_seconds",
        "gauge",
        ("state",),
        "From when on the VM that is longest in this state has been in it; absent where none is.",
    )
    VM_DECISIONS = (
        "vm_decisions",
        "gauge",
        ("decision",),
        "The same VMs by what their running pod was given; migrated: by a live migration; nothing: nobody was asked.",
    )

    VM_STARTS = (
        "vm_starts_total",
        "counter",
        ("decision",),
        "Such VMs that were seen to start, by what their pod was given; nothing: the webhook was not asked.",
    )

    def metric(self, values: Mapping[Labels, float]) -> Metric:
        """The samples of a counter or gauge: label values -> value."""
        made = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        metric = made(self.title, self.words, labels=self.labels)
        for labels, value in values.items():
            metric.add_metric(labels, value)
        return metric

    def histograms(self, values: Iterable[tuple[Labels, Histogram]]) -> Metric:
        """The samples of a histogram."""
        metric = HistogramMetricFamily(self.title, self.words, labels=self.labels)
        for labels, histogram in values:
            metric.add_metric(labels, histogram.buckets(), histogram.sum)
        return metric
