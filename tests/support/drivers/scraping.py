"""What Prometheus gets from a server: /metrics in both formats, as samples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, Self

from prometheus_client import parser
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.samples import Sample
from support.drivers.http_calls import Reply
from support.drivers.serving import Client

from webhook.component_base.health import MetricSource, expose, new_registry

OPENMETRICS = "application/openmetrics-text"
PROMETHEUS = (  # what Prometheus 3 says (scrape/scrape.go)
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
    "text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


class Scraped(NamedTuple):
    """The families of one scrape."""

    families: list[Metric]

    @classmethod
    def of(cls, content_type: str, body: bytes) -> Self:
        """Parse by the content type's rules; fails if the text breaks them."""
        read = openmetrics if content_type.startswith(OPENMETRICS) else parser
        return cls(list(read.text_string_to_metric_families(body.decode())))  # type: ignore[no-untyped-call]

    @property
    def samples(self) -> Iterator[Sample]:
        """Return all samples."""
        return (sample for family in self.families for sample in family.samples)

    @property
    def names(self) -> set[str]:
        """Return the samples by name and labels."""
        return {sample.name for sample in self.samples}

    def value(self, name: str, /, **labels: str) -> float:
        """Return the sum of the samples with these labels; fails if there is none."""
        found = list(self._values(name, labels.items()))
        assert found, f"no {name} with {labels}"
        return sum(found)

    def has(self, name: str, /, **labels: str) -> bool:
        """Whether there is such a sample."""
        return any(True for _ in self._values(name, labels.items()))

    def _values(self, name: str, labels: Iterable[tuple[str, str]]) -> Iterator[float]:
        wanted = set(labels)
        return (each.value for each in self.samples if each.name == name and wanted <= set(each.labels.items()))


def asking(accept: str | None = None, *, method: str = "GET") -> bytes:
    """Return the HTTP request of a scrape."""
    header = "" if accept is None else f"Accept: {accept}\r\n"
    return f"{method} /metrics HTTP/1.1\r\nHost: localhost\r\n{header}\r\n".encode()


def scraped(reply: Reply) -> Scraped:
    """Return the samples of an answer; fails if it is not in a format of Prometheus."""
    assert reply.status == 200, reply
    return Scraped.of(reply.headers["content-type"], reply.body)


def scrape(port: int) -> Scraped:
    """Return the current metrics of a server."""
    with Client(port) as client:
        return scraped(client.ask(asking()))


def untyped(text: str, names: Collection[str]) -> Scraped:
    """Return the lines of these samples. With a type line, the parser would rename a counter."""
    lines = [line for line in text.splitlines(keepends=True) if line.partition("{")[0].partition(" ")[0] in names]
    return Scraped.of("text/plain", "".join(lines).encode())


def told(*sources: MetricSource) -> Scraped:
    """Return the metrics of these sources, as Prometheus gets them."""
    return Scraped.of(*expose(new_registry(*sources), ""))
