"""What both programs have in common of /metrics: a registry, and Prometheus' two text formats.

What a call counts is a Counter or Histogram of the library. All else is read at each scrape: so a value that is not
known is absent, and a Gauge of the library can't be. There is no global registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, choose_encoder, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

PREFIX: Final = "kubevirt_coschedule_"

disable_created_metrics()  # type: ignore[no-untyped-call] # a series more for each, which no alert and no dashboard asks for

Labels = tuple[str, ...]
Values = Mapping[Any, float]
"""Label values, a tuple -> value."""

MetricSource = Callable[[], Iterable[Metric]]
"""Returns metric families. Called at each scrape."""


def gauge(title: str, text: str, labels: Sequence[str], values: Values) -> Metric:
    """Return a gauge with the current values: its name without prefix, help text, label names and values."""
    return _filled(GaugeMetricFamily(PREFIX + title, text, labels=labels), values)


def counter(title: str, text: str, labels: Sequence[str], values: Values) -> Metric:
    """Return a counter, as `gauge` does a gauge: its name is without `_total`, too."""
    return _filled(CounterMetricFamily(PREFIX + title, text, labels=labels), values)


def _filled(metric: GaugeMetricFamily | CounterMetricFamily, values: Values) -> Metric:
    for labels, value in values.items():
        metric.add_metric(labels, value)
    return metric


class _Source(Collector):
    def __init__(self, source: MetricSource) -> None:
        self._source = source

    def collect(self) -> Iterable[Metric]:
        return self._source()


def new_registry(*sources: MetricSource) -> CollectorRegistry:
    """Return a registry with the families of the sources, and those of the process (memory, CPU, files)."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    for source in sources:
        registry.register(_Source(source))
    return registry


def expose(registry: CollectorRegistry, accept: str) -> tuple[str, bytes]:
    """Return content type and body for an Accept header: OpenMetrics if it asks for that, else the text format."""
    try:
        encode, content_type = choose_encoder(accept)
    except TypeError:  # the version that it asks for is not a number
        encode, content_type = generate_latest, CONTENT_TYPE_PLAIN_0_0_4
    return content_type, encode(registry)
