"""TLS handshakes that fail: counted by reason, and logged once a minute for each reason.

No other part reports them. The event loops close such a connection without a log line and without a TLS alert. With
`failurePolicy: Ignore` the API server continues without the webhook. So only this module shows that callers do not
trust the webhook's certificate.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import datetime
from typing import Final

from webhook.component_base.once_a_minute import OnceAMinute
from webhook.telemetry.record import LOGGER

# The end of OpenSSL's reason -> its meaning. Go's client sends bad_certificate for every certificate that it refuses.
_MEANINGS: Final = (
    ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "the caller sent no certificate, and --client-ca-file requires one"),
    ("CERTIFICATE_VERIFY_FAILED", "the caller's certificate is not issued by --client-ca-file, or is not valid"),
    ("ALERT_BAD_CERTIFICATE", "the caller does not trust the webhook's certificate: compare caBundle with its issuer"),
    ("ALERT_UNKNOWN_CA", "the caller does not trust the webhook's certificate: compare caBundle with its issuer"),
    ("UNSUPPORTED_PROTOCOL", "the caller does not support the TLS version that --tls-min-version requires"),
    ("HTTP_REQUEST", "the caller speaks plain HTTP"),
)


class Handshakes:
    """Counts failed handshakes. `failures`: how many, by OpenSSL's reason."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._lines = OnceAMinute(now)
        self.failures = self._lines.so_far

    def watch(self, context: ssl.SSLContext) -> None:
        """Count the failed handshakes of this context's connections from now on."""
        failed = self._failed

        class Connection(ssl.SSLObject):
            def do_handshake(self) -> None:
                try:
                    super().do_handshake()
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    raise
                except ssl.SSLError as error:
                    failed(error)
                    raise

        context.sslobject_class = Connection

    def _failed(self, error: ssl.SSLError) -> None:
        reason = error.reason or "UNKNOWN"
        if not self._lines.is_due(reason):
            return
        meaning = next((meaning for end, meaning in _MEANINGS if reason.endswith(end)), "")
        detail = getattr(error, "verify_message", "")
        because = ": ".join(filter(None, (meaning, detail))) or str(error)
        fields = {"reason": reason, "because": because, "so_far": self.failures[reason]}
        LOGGER.warning("handshake failed", extra={"fields": fields})
