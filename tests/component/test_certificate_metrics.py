"""/metrics of the certificate: what is counted, in Prometheus' text format, over a real socket."""

from __future__ import annotations

from pathlib import Path

import pytest
from mounted import END, Clock, Mounted, good
from wire import Wire

from webhook.options import Address
from webhook.serving import metrics
from webhook.serving.certificate import ServingCertificate
from webhook.serving.pem import Problem
from webhook.serving.routes import health_handler
from webhook.serving.server import Listener

PREFIX = "kubevirt_coschedule_"


@pytest.fixture
def mounted_at_noon(tmp_path: Path) -> tuple[Mounted, ServingCertificate]:
    """A volume with a good pair, and who serves it."""
    mounted = Mounted(tmp_path / "tls")
    mounted.put(good().payload)
    return mounted, ServingCertificate(mounted.files, now=Clock())


def samples(text: str) -> dict[str, float]:
    """Name with its labels -> value; each family must have its HELP and TYPE before it."""
    found, known = {}, set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            known.add(line.split()[2])
        elif not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            assert name.partition("{")[0] in known, line
            found[name] = float(value)
    return found


def test_what_happened_to_the_certificate_is_counted(mounted_at_noon: tuple[Mounted, ServingCertificate]) -> None:
    """Reloads, what was not taken by its kind (the others at 0), failed handshakes by reason, and the expiry."""
    mounted, certificate = mounted_at_noon
    mounted.put({"tls.crt": good().certificate, "tls.key": good().key})
    certificate.look()
    mounted.put(good().payload)
    certificate.look()
    certificate.handshakes.failures["HTTP_REQUEST"] += 1
    found = samples(metrics.of(certificate))
    assert found[f"{PREFIX}certificate_expiry_timestamp_seconds"] == END.timestamp()
    assert found[f"{PREFIX}certificate_reloads_total"] == 1
    assert found[f'{PREFIX}certificate_failures_total{{problem="key-mismatch"}}'] == 1
    failures = [value for name, value in found.items() if "certificate_failures" in name]
    assert (len(failures), sum(failures)) == (len(Problem), 1)
    assert found[f'{PREFIX}tls_handshake_failures_total{{reason="HTTP_REQUEST"}}'] == 1


def test_without_a_certificate_no_expiry_is_told(mounted_at_noon: tuple[Mounted, ServingCertificate]) -> None:
    """An expiry of 0 would be an alert about 1970."""
    mounted, _ = mounted_at_noon
    mounted.put({})
    waiting = ServingCertificate(mounted.files, now=Clock())
    assert f"{PREFIX}certificate_expiry_timestamp_seconds" not in samples(metrics.of(waiting))


async def test_metrics_are_served_beside_health(mounted_at_noon: tuple[Mounted, ServingCertificate]) -> None:
    """On the port of /healthz, as text."""
    _, certificate = mounted_at_noon
    listener = Listener(health_handler(list, lambda: metrics.of(certificate)))
    address = await listener.start(Address("127.0.0.1", 0))
    try:
        async with await Wire.open(address.port) as wire:
            reply = await wire.ask(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
    finally:
        await listener.stop(0)
    assert (reply.status, reply.headers["content-type"].partition(";")[0]) == (200, "text/plain")
    assert samples(reply.body.decode()) == samples(metrics.of(certificate))
