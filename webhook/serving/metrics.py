"""The metrics of the serving certificate."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from webhook.component_base.metrics import counter, gauge
from webhook.component_base.pem import Problem
from webhook.serving.certificate import ServingCertificate


def certificate_families(certificate: ServingCertificate) -> Iterator[Metric]:
    """Return the metrics of the certificate that is served, of its files, and of failed handshakes."""
    begin, until = certificate.not_before, certificate.not_after
    yield gauge(
        "certificate_not_before_timestamp_seconds",
        "Time from which the served certificate is valid; absent while there is no certificate.",
        (),
        {(): begin.timestamp()} if begin else {},
    )
    yield gauge(
        "certificate_expiry_timestamp_seconds",
        "Time at which the served certificate expires; absent while there is no certificate.",
        (),
        {(): until.timestamp()} if until else {},
    )
    yield counter(
        "certificate_reloads", "Certificates that were loaded after the first one.", (), {(): certificate.reloads}
    )
    yield counter(
        "certificate_failures",
        "Certificates that were not loaded, by the problem of their files.",
        ("problem",),
        {(each.value,): certificate.failures[each] for each in Problem},
    )
    yield gauge(
        "certificate_problem",
        "1 while the certificate's files can't be served; the webhook then serves the previous pair, if any.",
        (),
        {(): certificate.problem is not None},
    )
    yield counter(
        "tls_handshake_failures",
        "Failed TLS handshakes, by OpenSSL's reason.",
        ("reason",),
        {(each,): n for each, n in certificate.handshakes.failures.items()},
    )
