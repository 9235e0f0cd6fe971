"""The metrics of the serving certificate."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from webhook.component_base.pem import Problem
from webhook.serving.certificate import ServingCertificate
from webhook.telemetry.exposition import Family


def certificate_families(certificate: ServingCertificate) -> Iterator[Metric]:
    """Return the metrics of the certificate that is served, of its files, and of failed handshakes."""
    begin, until = certificate.not_before, certificate.not_after
    yield Family.CERTIFICATE_NOT_BEFORE.metric({(): begin.timestamp()} if begin else {})
    yield Family.CERTIFICATE_EXPIRY.metric({(): until.timestamp()} if until else {})
    yield Family.CERTIFICATE_RELOADS.metric({(): certificate.reloads})
    yield Family.CERTIFICATE_FAILURES.metric({(each.value,): certificate.failures[each] for each in Problem})
    yield Family.CERTIFICATE_PROBLEM.metric({(): certificate.problem is not None})
    yield Family.HANDSHAKE_FAILURES.metric({(each,): n for each, n in certificate.handshakes.failures.items()})
