"""What Prometheus gets of a server: /metrics in either format, as samples that can be asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, Self

from prometheus_client import parser
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.samples import Sample
from support.drivers.serving import Client, Reply

from webhook.telemetry.metrics import Metrics, Source

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
        """Parsed by the content type's own rules; fails where they are broken."""
        read = openmetrics if content_type.startswith(OPENMETRICS) else parser
        return cls(list(read.text_string_to_metric_families(body.decode())))  # type: ignore[no-untyped-call]

    @property
    def samples(self) -> Iterator[Sample]:
        """All of them."""
        return (sample for family in self.families for sample in family.samples)

    @property
    def names(self) -> set[str]:
        """Of the samples, as a query asks for them."""
        return {sample.name for sample in self.samples}

    def value(self, name: str, /, **labels: str) -> float:
        """The sum of the samples that carry these labels; fails where there is none."""
        found = list(self._values(name, labels.items()))
        assert found, f"no {name} with {labels}"
        return sum(found)

    def has(self, name: str, /, **labels: str) -> bool:
        """Whether there is any such sample."""
        return any(True for _ in self._values(name, labels.items()))

    def _values(self, name: str, labels: Iterable[tuple[str, str]]) -> Iterator[float]:
        wanted = set(labels)
        return (each.value for each in self.samples if each.name == name and wanted <= set(each.labels.items()))


def asking(accept: str | None = None, *, method: str = "GET") -> bytes:
    """The HTTP request of a scrape."""
    header = "" if accept is None else f"Accept: {accept}\r\n"
    return f"{method} /metrics HTTP/1.1\r\nHost: localhost\r\n{header}\r\n".encode()


def scraped(reply: Reply) -> Scraped:
    """What an answer holds; fails where it is none of Prometheus'."""
    assert reply.status == 200, reply
    return Scraped.of(reply.headers["content-type"], reply.body)


def scrape(port: int) -> Scraped:
    """The metrics of a server, as of now."""
    with Client(port) as client:
        return scraped(client.ask(asking()))


def untyped(text: str, names: Collection[str]) -> Scraped:
    """The samples of a /metrics that have these names: told a type, the parser calls a counter `_total`."""
    lines = [line for line in text.splitlines(keepends=True) if line.partition("{")[0].partition(" ")[0] in names]
    return Scraped.of("text/plain", "".join(lines).encode())


def told(*sources: Source) -> Scraped:
    """What these sources come to, as Prometheus gets it."""
    return Scraped.of(*Metrics(*sources).expose(""))
