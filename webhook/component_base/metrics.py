"""What both programs have in common of /metrics: how a metric is declared, and Prometheus' two text formats.

What a call counts is the library's. The other families are made at each scrape. There is no global registry: each
`Metrics` object is independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    exposition,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

PREFIX: Final = "kubevirt_coschedule_"
_TEXT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_OPENMETRICS: Final = "application/openmetrics-text"
_OPENMETRICS_TYPE: Final = f"{_OPENMETRICS}; version=1.0.0; charset=utf-8"

disable_created_metrics()  # type: ignore[no-untyped-call] # a series more for each, which no alert and no dashboard asks for

Labels = tuple[str, ...]

MetricSource = Callable[[], Iterable[Metric]]
"""Returns metric families. Called at each scrape."""


class MetricFamily(Enum):
    """The metrics of one program: name without prefix, type, labels and help text of each."""

    def __init__(self, title: str, kind: str, labels: Labels, text: str) -> None:
        self.title = PREFIX + title
        self.kind = kind
        self.labels = labels
        self.help = text

    def counter(self) -> Counter:
        """Return a counter that is increased as things happen, in no registry."""
        return Counter(self.title, self.help, self.labels, registry=None)

    def histogram(self, bounds: Sequence[float]) -> Histogram:
        """Return a histogram with these upper bounds, in no registry."""
        return Histogram(self.title, self.help, self.labels, buckets=bounds, registry=None)

    def metric(self, values: Mapping[Labels, float]) -> Metric:
        """Return the family of a counter or gauge. `values`: label values -> value."""
        made = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        metric = made(self.title, self.help, labels=self.labels)
        for labels, value in values.items():
            metric.add_metric(labels, value)
        return metric


class Metrics(Collector):
    """The content of /metrics: the families of each source, and those of the process (memory, CPU, files)."""

    def __init__(self, *sources: MetricSource) -> None:
        self._sources = sources
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def collect(self) -> Iterator[Metric]:
        """Return all families with the current values."""
        for source in self._sources:
            yield from source()

    def expose(self, accept: str) -> tuple[str, bytes]:
        """Return content type and body for an Accept header: OpenMetrics if it asks for that, else the text format."""
        if _OPENMETRICS in (each.partition(";")[0].strip().lower() for each in accept.split(",")):
            openmetrics_text: bytes = openmetrics.generate_latest(self._registry)  # type: ignore[no-untyped-call]
            return _OPENMETRICS_TYPE, openmetrics_text
        return _TEXT_TYPE, exposition.generate_latest(self._registry)
