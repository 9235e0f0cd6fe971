"""What both programs have in common of /metrics: how a metric is declared, and Prometheus' two text formats.

The families are made at each scrape. There is no global state: each `Metrics` object is independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, exposition
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

PREFIX: Final = "kubevirt_coschedule_"
_TEXT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_OPENMETRICS: Final = "application/openmetrics-text"
_OPENMETRICS_TYPE: Final = f"{_OPENMETRICS}; version=1.0.0; charset=utf-8"

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
