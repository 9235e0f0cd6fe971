"""Every metric of `serve`, from a registry of all that counts: for the tests of names, also of those in the docs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from prometheus_client.metrics import MetricWrapperBase

from webhook.component_base.health import new_registry
from webhook.core.observe.past_decision import Decided
from webhook.kube.metrics import CacheMetrics, VMMetrics, event_families
from webhook.kube.vm_status import VMSeconds, VMStatuses
from webhook.serving.certificate import certificate_families
from webhook.telemetry.metrics import Admissions, process_families


class MetricRow(NamedTuple):
    """One metric, as /metrics describes it."""

    title: str
    kind: str
    labels: tuple[str, ...]
    help: str


def _rows() -> Iterator[MetricRow]:
    certificate: Any = SimpleNamespace(
        not_before=None, not_after=None, reloads=0, failures=Counter(), problem=None,
        handshakes=SimpleNamespace(failures={}),
    )  # fmt: skip
    tracker: Any = SimpleNamespace(snapshot=VMStatuses(at="", known=True), seconds=VMSeconds())
    starts: Any = SimpleNamespace(by_decision=dict.fromkeys(Decided, 0))
    calls = new_registry(lambda: process_families({}))
    Admissions(calls)
    others = new_registry(
        CacheMetrics(list, {}).families,
        lambda: certificate_families(certificate),
        lambda: event_families({}),
        VMMetrics(tracker, starts).families,
    )
    for collector in (*calls._collector_to_names, *others._collector_to_names):
        for metric in collector.collect():
            labelled: Any = collector if isinstance(collector, MetricWrapperBase) else metric
            title = f"{metric.name}_total" if metric.type == "counter" else metric.name
            if not title.startswith("process_"):
                yield MetricRow(title, metric.type, tuple(labelled._labelnames), metric.documentation)


METRIC_ROWS: Final = tuple(_rows())
