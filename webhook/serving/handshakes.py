"""Handshakes that fail: counted by reason, and said once a minute.

Nobody else says so: the event loops drop such a connection silently, without the alert that would tell the caller, and
an API server that fails open goes on without us. Whether our certificate is trusted shows here and nowhere else.
"""

from __future__ import annotations

import ssl
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from webhook.telemetry.record import LOGGER

_REPEAT: Final = timedelta(minutes=1)

# OpenSSL's reason, or its end -> what it means here. Go's client answers any certificate it refuses bad_certificate.
_MEANINGS: Final = (
    ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "the caller showed no certificate, and --client-ca-file asks for one"),
    ("CERTIFICATE_VERIFY_FAILED", "the caller's certificate is not one of --client-ca-file, or is not valid"),
    ("ALERT_BAD_CERTIFICATE", "the caller does not trust our certificate: compare caBundle with its issuer"),
    ("ALERT_UNKNOWN_CA", "the caller does not trust our certificate: compare caBundle with its issuer"),
    ("UNSUPPORTED_PROTOCOL", "the caller speaks no TLS as new as --tls-min-version"),
    ("HTTP_REQUEST", "the caller speaks plain HTTP"),
)


class Handshakes:
    """What became of handshakes. `failures`, by OpenSSL's reason, is for a metric."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.failures: Counter[str] = Counter()
        self._now = now
        self._said: dict[str, datetime] = {}

    def watch(self, context: ssl.SSLContext) -> None:
        """Hear of every handshake of a context's connections."""
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
        self.failures[reason] += 1
        now = self._now()
        if reason in self._said and now < self._said[reason] + _REPEAT:
            return
        self._said[reason] = now
        meaning = next((meaning for end, meaning in _MEANINGS if reason.endswith(end)), "")
        detail = getattr(error, "verify_message", "")
        because = ": ".join(filter(None, (meaning, detail))) or str(error)
        fields = {"reason": reason, "because": because, "so_far": self.failures[reason]}
        LOGGER.warning("handshake failed", extra={"fields": fields})
