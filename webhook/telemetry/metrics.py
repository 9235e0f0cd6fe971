"""What this replica counts, as Prometheus' metric families. The library counts calls; the rest is read at a scrape."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from prometheus_client.metrics_core import Metric

from webhook import __version__
from webhook.core.admit import Entry
from webhook.telemetry.exposition import Family
from webhook.telemetry.record import AdmissionRecord

# From the time of an answer from the caches to timeoutSeconds of the webhook configuration.
_SECONDS: Final = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0)
_READS: Final = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)  # up to the largest number that is read for one pod
_REFUSALS: Final = (400, 403, 404, 405, 408, 411, 413, 415, 500, 503)
_MICROSECOND: Final = 1e-6


class Admissions:
    """Counts calls: their answers, times, reads and HTTP errors."""

    def __init__(self) -> None:
        answers, refused = Family.ADMISSIONS.counter(), Family.REFUSED_CALLS.counter()
        durations, reads = Family.DURATION.histogram(_SECONDS), Family.READS.histogram(_READS)
        stages = Family.STAGE_DURATION.histogram(_SECONDS)
        self._metrics = (answers, durations, stages, reads, refused)
        # What has labels is kept, because the library takes longer to find it than to count.
        entries = [entry.title for entry in Entry]
        self._answer = cache(answers.labels)
        self._refused = refused
        for status in _REFUSALS:
            refused.labels(str(status))
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

    def families(self) -> Iterator[Metric]:
        """Return the families with the current values."""
        for each in self._metrics:
            yield from each.collect()


def background_families(failures: Mapping[str, int]) -> Iterator[Metric]:
    """Return the count of ended background tasks. `failures`: that count by task name."""
    yield Family.TASK_FAILURES.metric({(name,): count for name, count in failures.items()})


def build_families() -> Iterator[Metric]:
    """Return the version that runs."""
    yield Family.BUILD.metric({(__version__, platform.python_version()): 1})
