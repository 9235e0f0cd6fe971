"""What /metrics says of the certificate, in Prometheus' text format. Names by Prometheus' rules; labels are bounded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from webhook.serving.certificate import ServingCertificate
from webhook.serving.pem import Problem

_PREFIX: Final = "kubevirt_coschedule_"


def of(certificate: ServingCertificate) -> str:
    """The samples of now. A certificate's expiry is absent for as long as there is none."""
    expiry = {"": certificate.not_after.timestamp()} if certificate.not_after else {}
    failures = {f'{{problem="{problem}"}}': certificate.failures[problem] for problem in Problem}
    handshakes = {f'{{reason="{reason}"}}': count for reason, count in sorted(certificate.handshakes.failures.items())}
    return "\n".join(
        (
            *_family("certificate_expiry_timestamp_seconds", "gauge", "When what is served expires.", expiry),
            *_family("certificate_reloads_total", "counter", "New pairs taken.", {"": certificate.reloads}),
            *_family("certificate_failures_total", "counter", "Pairs that were not taken.", failures),
            *_family("tls_handshake_failures_total", "counter", "Failed handshakes, by OpenSSL's reason.", handshakes),
        )
    )


def _family(name: str, kind: str, text: str, samples: Mapping[str, float]) -> Iterable[str]:
    yield f"# HELP {_PREFIX}{name} {text}"
    yield f"# TYPE {_PREFIX}{name} {kind}"
    for labels, value in samples.items():
        yield f"{_PREFIX}{name}{labels} {value:.17g}"
