"""What this replica counts of its calls, and the metrics of the process.

Every label has few values, which are known in advance.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.metrics_core import Metric

from webhook import __version__
from webhook.component_base.health import PREFIX, counter, gauge
from webhook.core.admit import Entry
from webhook.telemetry.record import AdmissionRecord

# From the time of an answer from the caches to timeoutSeconds of the webhook configuration.
_SECONDS: Final = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0)
_READS: Final = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)  # up to the largest number that is read for one pod
_REFUSALS: Final = (400, 403, 404, 405, 408, 411, 413, 415, 500, 503)
_MICROSECOND: Final = 1e-6


class Admissions:
    """Counts calls: their answers, times, reads and HTTP errors."""

    def __init__(self, registry: CollectorRegistry) -> None:
        answers = Counter(
            f"{PREFIX}admissions",
            "Answers, by entry of the webhook, decision (required, preferred, unchanged) and reason code.",
            ("entry", "decision", "reason"),
            registry=registry,
        )
        durations = Histogram(
            f"{PREFIX}admission_duration_seconds",
            "Time from the complete body of a call to its answer.",
            ("entry",),
            buckets=_SECONDS,
            registry=registry,
        )
        stages = Histogram(
            f"{PREFIX}admission_stage_duration_seconds",
            "The same time by stage: decide (computing the answer) and read (waiting for reads from the API server).",
            ("entry", "stage"),
            buckets=_SECONDS,
            registry=registry,
        )
        reads = Histogram(
            f"{PREFIX}admission_reads",
            "Objects that an admission read from the API server, because no cache had them.",
            ("entry",),
            buckets=_READS,
            registry=registry,
        )
        self._refused = Counter(
            f"{PREFIX}refused_calls",
            "Calls that got an HTTP error, by its status. 400 is a body that is not a valid AdmissionReview.",
            ("status",),
            registry=registry,
        )
        # What has labels is kept, because the library takes longer to find it than to count.
        entries = [entry.title for entry in Entry]
        self._answer = cache(answers.labels)
        for status in _REFUSALS:
            self._refused.labels(str(status))
        self._duration = {entry: durations.labels(entry) for entry in entries}
        self._reads = {entry: reads.labels(entry) for entry in entries}
        self._decide = {entry: stages.labels(entry, "decide") for entry in entries}
        self._read = {entry: stages.labels(entry, "read") for entry in entries}

    def count(self, record: AdmissionRecord) -> None:
        """Count a call. This takes 10 us of each call."""
        entry = record.entry
        self._answer(entry, record.decision, record.reason).inc()
        self._duration[entry].observe(record.duration_us * _MICROSECOND)
        self._decide[entry].observe((record.duration_us - record.read_us) * _MICROSECOND)
        self._reads[entry].observe(record.reads)
        if record.reads:
            self._read[entry].observe(record.read_us * _MICROSECOND)

    def refused(self, status: int) -> None:
        """Count a call that got an HTTP error with this status."""
        self._refused.labels(str(status)).inc()


def process_families(failures: Mapping[str, int]) -> Iterator[Metric]:
    """Return the version that runs, and the count of ended background tasks by name."""
    version = {(__version__, platform.python_version()): 1.0}
    yield gauge("build_info", "1, with the version that runs as label.", ("version", "python"), version)
    yield counter(
        "background_task_failures",
        "Background tasks that ended. No such task may end, so the process ends too, and the kubelet restarts it.",
        ("task",),
        {(name,): count for name, count in failures.items()},
    )
