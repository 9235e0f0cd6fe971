"""What this replica counts, as Prometheus' metric families. A call only adds to plain numbers (`Admissions.count`)."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client.metrics_core import Metric

from webhook import __version__
from webhook.component_base.metrics import Labels
from webhook.core.admit import Entry
from webhook.telemetry.exposition import Family, Histogram
from webhook.telemetry.record import AdmissionRecord

# From the time of an answer from the caches to timeoutSeconds of the webhook configuration.
_SECONDS: Final = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0)
_READS: Final = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)  # up to the largest number that is read for one pod
_STAGES: Final = ("decide", "read")
_REFUSALS: Final = (400, 403, 404, 405, 408, 411, 413, 415, 500, 503)
_MICROSECOND: Final = 1e-6


class Admissions:
    """Counts calls: their answers, times, reads and HTTP errors."""

    def __init__(self) -> None:
        titles = [entry.title for entry in Entry]
        self._outcomes: Counter[Labels] = Counter()
        self._durations = {(title,): Histogram(_SECONDS) for title in titles}
        self._stages = {(title, stage): Histogram(_SECONDS) for title in titles for stage in _STAGES}
        self._reads = {(title,): Histogram(_READS) for title in titles}
        self._refused: Counter[Labels] = Counter({(str(status),): 0 for status in _REFUSALS})

    def count(self, record: AdmissionRecord) -> None:
        """Count a call. This takes 1 us of each call; all other work is done at the scrape."""
        entry = record.entry
        self._outcomes[entry, record.decision, record.reason] += 1
        self._durations[(entry,)].observe(record.duration_us * _MICROSECOND)
        self._stages[entry, "decide"].observe((record.duration_us - record.read_us) * _MICROSECOND)
        self._reads[(entry,)].observe(record.reads)
        if record.reads:
            self._stages[entry, "read"].observe(record.read_us * _MICROSECOND)

    def refused(self, status: int) -> None:
        """Count a call that got an HTTP error with this status."""
        self._refused[(str(status),)] += 1

    def families(self) -> Iterator[Metric]:
        """Return the families with the current values."""
        yield Family.ADMISSIONS.metric(self._outcomes)
        yield Family.DURATION.histograms(self._durations.items())
        yield Family.STAGE_DURATION.histograms(self._stages.items())
        yield Family.READS.histograms(self._reads.items())
        yield Family.REFUSED_CALLS.metric(self._refused)


def background_families(failures: Mapping[str, int]) -> Iterator[Metric]:
    """Return the count of ended background tasks. `failures`: that count by task name."""
    yield Family.TASK_FAILURES.metric({(name,): count for name, count in failures.items()})


def build_families() -> Iterator[Metric]:
    """Return the version that runs."""
    yield Family.BUILD.metric({(__version__, platform.python_version()): 1})
