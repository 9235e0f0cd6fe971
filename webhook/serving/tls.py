"""Makes a new SSLContext from the files of the serving certificate, and counts the handshakes that fail.

No context that is in use is loaded again. Invariant: a context holds exactly the bytes that were checked, even if
another process writes the files at the same time.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec import Struct

from webhook.component_base.log_line import OnceAMinute
from webhook.component_base.pem import BadCertificate, Problem, check_pair, load_certificates
from webhook.telemetry.record import LOGGER

_TLS_1_2_CIPHERS: Final = (
    "ECDHE+AESGCM:ECDHE+CHACHA20"  # forward secret and authenticated; Go's client supports all of them
)
MIN_VERSIONS: Final = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}
"""The values of kube-apiserver's --tls-min-version, without the versions that are no longer secure."""

_READS: Final = 5  # a swap takes microseconds, so the next two are nearly always of one pair

# The end of OpenSSL's reason -> its meaning. Go's client sends bad_certificate for every certificate that it refuses.
_MEANINGS: Final = (
    ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "the caller sent no certificate, and --client-ca-file requires one"),
    ("CERTIFICATE_VERIFY_FAILED", "the caller's certificate is not issued by --client-ca-file, or is not valid"),
    ("ALERT_BAD_CERTIFICATE", "the caller does not trust the webhook's certificate: compare caBundle with its issuer"),
    ("ALERT_UNKNOWN_CA", "the caller does not trust the webhook's certificate: compare caBundle with its issuer"),
    ("UNSUPPORTED_PROTOCOL", "the caller does not support the TLS version that --tls-min-version requires"),
    ("HTTP_REQUEST", "the caller speaks plain HTTP"),
)

Contents = Sequence[bytes | int]
"""The bytes of certificate, key and client authorities, or the errno of reading each."""


class TLSFiles(Struct, frozen=True, kw_only=True):
    """The paths of the pair, and the requirements for the pair and for callers.

    `server_name`: the name that the certificate must have; None if it can have any. `client_ca_file`: the authorities
    that issue the certificates of callers; None if callers need no certificate.
    """

    cert_file: Path
    key_file: Path
    client_ca_file: Path | None = None
    server_name: str | None = None
    min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3

    @property
    def all(self) -> Sequence[Path]:
        """The paths of all files that are read."""
        return (self.cert_file, self.key_file, *([self.client_ca_file] if self.client_ca_file else []))

    def read(self) -> Contents:
        """Read the files until two reads are equal, because a writer in between makes them files of two pairs."""
        contents = self.read_once()
        for _ in range(_READS):
            before, contents = contents, self.read_once()
            if contents == before:
                break
        return contents

    def read_once(self) -> Contents:
        """Read the files one after the other."""
        return [*map(_read, self.all)]


def load(files: TLSFiles, contents: Contents, now: datetime) -> tuple[ssl.SSLContext, x509.Certificate]:
    """Return a new context of the contents of the files, and its certificate.

    Raises:
        BadCertificate: a file can't be served; the sentence names the file, the problem and what was expected.
    """
    names = () if files.server_name is None else (files.server_name,)
    (certificate, *_), _ = check_pair(contents, files.all, names, now)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = files.min_version
    context.set_ciphers(_TLS_1_2_CIPHERS)  # for TLS 1.2; the ciphers of TLS 1.3 are all secure, and are not set here
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0  # API servers resume no session, and a resumed session would not be verified again
    context.set_alpn_protocols(["http/1.1"])
    try:
        with _in_memory(contents[0]) as cert_file, _in_memory(contents[1]) as key_file:
            context.load_cert_chain(cert_file, key_file)
    except ssl.SSLError as error:
        raise BadCertificate(
            Problem.REFUSED,
            f"{files.cert_file} with {files.key_file}: {error}; expected a PEM pair that OpenSSL accepts",
        ) from None
    if files.client_ca_file is not None:
        _verify_callers(context, contents[2], files.client_ca_file, now)
    return context, certificate


def _read(file: Path) -> bytes | int:
    try:
        return file.read_bytes()
    except OSError as error:
        return error.errno or 0


@contextmanager
def _in_memory(content: bytes | int) -> Iterator[str]:
    """The name of a file in memory with this content: OpenSSL reads a pair from files only."""
    assert isinstance(content, bytes)  # noqa: S101 - for the type checker: check_pair has read it
    with open(os.memfd_create("tls"), "wb", buffering=0) as file:  # noqa: PTH123 - a descriptor
        file.write(content)
        yield f"/proc/self/fd/{file.fileno()}"


def _verify_callers(context: ssl.SSLContext, content: bytes | int, file: Path, now: datetime) -> None:
    """Require a client certificate that one of the authorities in `content` has issued."""
    authorities = load_certificates(content, file, "the authority that issues callers' certificates")
    if not any(each.not_valid_before_utc <= now < each.not_valid_after_utc for each in authorities):
        raise BadCertificate(
            Problem.EXPIRED, f"{file}: no authority in it is valid now; expected one that may verify callers"
        )
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # an intermediate authority is enough, as it is for Go
    try:
        context.load_verify_locations(cadata="".join(each.public_bytes(Encoding.PEM).decode() for each in authorities))
    except ssl.SSLError as error:
        raise BadCertificate(Problem.REFUSED, f"{file}: {error}; expected certificates that OpenSSL accepts") from None


class Handshakes:
    """Counts failed handshakes, and logs them once a minute for each reason. `failures`: how many, by OpenSSL's reason.

    The event loops close such a connection without a log line and without a TLS alert. With `failurePolicy: Ignore` the
    API server continues without the webhook. So only this class shows that callers do not trust the webhook's
    certificate.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._lines = OnceAMinute(now)
        self.failures = self._lines.so_far

    def note(self, error: ssl.SSLError) -> None:
        """Count a handshake that failed with this error."""
        reason = error.reason or "UNKNOWN"
        if not self._lines.is_due(reason):
            return
        meaning = next((meaning for end, meaning in _MEANINGS if reason.endswith(end)), "")
        detail = getattr(error, "verify_message", "")
        because = ": ".join(filter(None, (meaning, detail))) or str(error)
        fields = {"reason": reason, "because": because, "so_far": self.failures[reason]}
        LOGGER.warning("handshake failed", extra={"fields": fields})
