"""/metrics over real sockets: formats, methods, and the metrics of a certificate and of real calls."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography import x509
from prometheus_client.metrics_core import Metric
from pytest_aiohttp import AiohttpClient
from support.control_plane.mounted import END, Clock, Mounted, good
from support.drivers import paging, serving
from support.drivers.http_calls import PATH, request
from support.drivers.scraping import OPENMETRICS, PROMETHEUS, Scraped, asking, scrape, told
from support.drivers.serving import Client, Serving
from support.fakes.wire import plain_wire
from support.objects import builders

from webhook.component_base.health import counter, expose, health_application, new_registry
from webhook.component_base.pem import Problem
from webhook.core.reasons import Reason
from webhook.serving.certificate import ServingCertificate, certificate_families
from webhook.telemetry.metrics import process_families


@pytest.mark.parametrize(("accept", "expected"), [("*/*", "text/plain; version=0.0.4"), (PROMETHEUS, OPENMETRICS)])
async def test_metrics_are_served_beside_health(aiohttp_client: AiohttpClient, accept: str, expected: str) -> None:
    """In the text format, or in OpenMetrics if the caller asks for it."""
    registry = new_registry(lambda: process_families({}))
    client = await aiohttp_client(health_application(list, partial(expose, registry)))
    async with client.get("/metrics", headers={"Accept": accept}) as reply:
        assert reply.headers["Content-Type"].startswith(expected)
        assert reply.headers["Server"] == "kubevirt-coschedule"
        found = Scraped.of(reply.headers["Content-Type"], await reply.read())
    assert found.value("kubevirt_coschedule_build_info") == 1


async def test_a_source_that_fails_is_an_http_error_and_no_half_truth() -> None:
    """Prometheus then has no sample, the next scrape can work, and the health answers do not change."""

    def failing() -> Iterator[Metric]:
        yield counter("reloads", "Some.", (), {(): 1})
        raise RuntimeError(PATH)

    async with plain_wire(health_application(list, partial(expose, new_registry(failing)))) as wire:
        reply = await wire.ask(asking())
        assert (reply.status, reply.sentence) == (500, "the request failed inside the server; its log says why")


# The certificate.


@pytest.fixture
def mounted_at_noon(tmp_path: Path) -> tuple[Mounted, ServingCertificate]:
    """A volume with a good pair, and the certificate that serves it."""
    mounted = Mounted(tmp_path / "tls")
    mounted.put(good().payload)
    return mounted, ServingCertificate(mounted.files, now=Clock())


def of(certificate: ServingCertificate) -> Scraped:
    """Return its current metrics."""
    return told(lambda: certificate_families(certificate))


def test_what_happened_to_the_certificate_is_counted(mounted_at_noon: tuple[Mounted, ServingCertificate]) -> None:
    """Reloads, failures by kind (the others are 0), failed handshakes by reason, and the expiry."""
    mounted, certificate = mounted_at_noon
    mounted.put({"tls.crt": good().certificate, "tls.key": good().key})
    certificate.check_files()
    assert of(certificate).value("kubevirt_coschedule_certificate_problem") == 1
    mounted.put(good().payload)
    certificate.check_files()
    certificate.handshakes.failures["HTTP_REQUEST"] += 1
    found = of(certificate)
    assert found.value("kubevirt_coschedule_certificate_expiry_timestamp_seconds") == END.timestamp()
    begin = x509.load_pem_x509_certificate(good().certificate).not_valid_before_utc
    assert found.value("kubevirt_coschedule_certificate_not_before_timestamp_seconds") == begin.timestamp()
    assert found.value("kubevirt_coschedule_certificate_reloads_total") == 1
    assert found.value("kubevirt_coschedule_certificate_failures_total", problem="key-mismatch") == 1
    failures = [each.value for each in found.samples if each.name == "kubevirt_coschedule_certificate_failures_total"]
    assert (len(failures), sum(failures)) == (len(Problem), 1)
    assert found.value("kubevirt_coschedule_certificate_problem") == 0
    assert found.value("kubevirt_coschedule_tls_handshake_failures_total", reason="HTTP_REQUEST") == 1


def test_without_a_certificate_there_is_no_expiry(mounted_at_noon: tuple[Mounted, ServingCertificate]) -> None:
    """An expiry of 0 would raise an alert about 1970."""
    mounted, _ = mounted_at_noon
    mounted.put({})
    found = of(ServingCertificate(mounted.files, now=Clock()))
    assert not found.has("kubevirt_coschedule_certificate_expiry_timestamp_seconds")
    assert not found.has("kubevirt_coschedule_certificate_not_before_timestamp_seconds")
    assert found.value("kubevirt_coschedule_certificate_problem") == 1


# A server that is called.

REASONS: Final = {reason.code for reason in Reason}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Serving, serving.Pair]]:
    """A `serve` process for the cluster of tests/support/drivers/serving.py."""
    pair = serving.issue(tmp_path)
    manifests = serving.write_cluster(tmp_path / "cluster.json", serving.cluster())
    flags = ("--tls-cert-file", pair.cert_file, "--tls-private-key-file", pair.key_file, "--manifests", manifests)
    with serving.serving(*flags, log=tmp_path / "log") as server:
        yield server, pair


def review(**pod: Any) -> bytes:
    """Return the request of an API server."""
    return request(json.dumps(builders.review(builders.virt_launcher_pod(**pod))).encode())


def test_metrics_log_and_page_tell_the_same_of_each_call(served: tuple[Serving, serving.Pair]) -> None:
    """All come from one record: decision and reason of each call, and the time of all calls."""
    server, pair = served
    with Client(server.port, pair.trust) as client:
        for claims in (["disk"], ["disk"], ["hinted"], ["nowhere"], ["block"], []):
            assert client.ask(review(claims=claims)).status == 200
    found = scrape(server.health_port)
    lines = [line for line in server.lines() if line["message"] == "admission"]
    counted = {
        (each.labels["entry"], each.labels["decision"], each.labels["reason"]): each.value
        for each in found.samples
        if each.name == "kubevirt_coschedule_admissions_total"
    }
    assert counted == Counter((line["entry"], line["decision"], line["reason"]) for line in lines)
    assert {reason for _, _, reason in counted} < REASONS
    with Client(server.health_port) as reader:
        assert b"<h1>" in reader.ask(paging.asking("/")).body
        state = json.loads(gzip.decompress(reader.ask(paging.asking("/api/state")).body))
    shown = [tuple(each[key] for key in ("decision", "reason", "because")) for each in state["decided"]["last"]]
    assert shown == [tuple(line[key] for key in ("decision", "reason", "because")) for line in reversed(lines)]
    seconds = sum(line["duration_us"] for line in lines) / 1e6
    assert found.value("kubevirt_coschedule_admission_duration_seconds_sum") == pytest.approx(seconds)
    assert found.value("kubevirt_coschedule_admission_duration_seconds_count", entry="virt-launcher") == len(lines) == 6


def test_a_call_that_was_refused_is_no_admission(served: tuple[Serving, serving.Pair]) -> None:
    """It is counted by its status, before its body was read or after."""
    server, pair = served
    for bad in (request(b"{}"), request(b"{"), request(b"", content_length="8000000")):
        with Client(server.port, pair.trust) as client:
            assert client.ask(bad).status in (400, 413)
    found = scrape(server.health_port)
    refused = {
        status: found.value("kubevirt_coschedule_refused_calls_total", status=status) for status in ("400", "413")
    }
    assert refused == {"400": 2, "413": 1}
    assert found.value("kubevirt_coschedule_refused_calls_total") == 3
    assert found.value("kubevirt_coschedule_admission_duration_seconds_count") == 0
