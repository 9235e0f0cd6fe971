"""The health port of both programs: /healthz, /readyz and /metrics. The last refuses a foreign name as the page does.

No request changes anything here. /readyz answers 503 until the program can do its work. /metrics has a registry, in
Prometheus' two text formats. What a call counts is a Counter or Histogram of the library. All else is read at each
scrape: so a value that is not known is absent, and a Gauge of the library can't be. There is no global registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from aiohttp import web
from msgspec import Struct
from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, choose_encoder, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from webhook.component_base.server.application import application, check_host


class Check(Struct, frozen=True):
    """One condition of /readyz or /healthz. `detail` says why it is not `ok`, or gives more about a check that is.

    A check that does not gate is only shown: without it the program still does its work.
    """

    name: str
    ok: bool
    detail: str = ""
    gates: bool = True


Expose = Callable[[str], tuple[str, bytes]]
"""Takes an Accept header; returns the content type and the body of /metrics."""


def health_application(
    checks: Callable[[], Sequence[Check]],
    metrics: Expose = lambda _: ("text/plain; charset=utf-8", b""),
    alive: Callable[[], Sequence[Check]] = tuple,
) -> web.Application:
    """Return the application of `/healthz`, `/readyz` and `/metrics`.

    `/readyz` is ok while all gating `checks` are. `/healthz` is ok while the event loop answers and all of `alive` are.
    With `?verbose` every check has its own line, in kube-apiserver's format.
    """

    async def answer(request: web.Request) -> web.Response:
        name = request.path[1:]
        found = [Check("ping", ok=True), *(checks() if name == "readyz" else alive())]  # kube-apiserver's name
        failed = [check for check in found if check.gates and not check.ok]
        text = "; ".join(f"{check.name}: {check.detail}" for check in failed) or "ok"
        if "verbose" in request.query:
            text = "\n".join([*map(_line, found), f"{name} check {'failed' if failed else 'passed'}"])
        return web.Response(status=503 if failed else 200, text=f"{text}\n")

    async def scrape(request: web.Request) -> web.Response:
        check_host(request)
        content_type, body = metrics(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    app = application()
    app.add_routes([web.get("/healthz", answer), web.get("/readyz", answer), web.get("/metrics", scrape)])
    return app


def _line(check: Check) -> str:
    detail = f": {check.detail}" if check.detail else ""
    if check.ok:
        return f"[+]{check.name} ok{detail}"
    return f"[-]{check.name} failed{detail}{'' if check.gates else ' (not required)'}"


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
