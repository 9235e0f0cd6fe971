"""The serving certificate: files -> a fresh SSLContext, or the one sentence that says why not.

Nothing is remembered here, and nothing is changed: a context that is in use is never loaded into. Invariant: a context
holds exactly the bytes that were checked, also where somebody writes the files at the same time.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec import Struct

from webhook.serving.pem import (
    BadCertificate,
    Problem,
    check_dates,
    check_key,
    check_name,
    load_certificates,
)

_TLS_1_2_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"  # forward secret and authenticated; Go's client has them all
MIN_VERSIONS: Final = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}
"""As kube-apiserver's --tls-min-version calls them; what is older is broken."""

_TRIES: Final = 3  # a swap takes microseconds, and a second one in the same moment is nobody's


class FileContents(NamedTuple):
    """What the files hold: the bytes of each, or the errno of reading it. Two that are equal make the same context."""

    certificate: bytes | int
    key: bytes | int
    client_ca: bytes | int = b""


class TLSFiles(Struct, frozen=True, kw_only=True):
    """Where the pair is, and what is asked of it and of callers.

    `server_name`: what the certificate must be for, where it matters. `client_ca_file`: who issues the certificates of
    callers; without it callers need none.
    """

    cert_file: Path
    key_file: Path
    client_ca_file: Path | None = None
    server_name: str | None = None
    min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3

    @property
    def all(self) -> Sequence[Path]:
        """Every file that is read."""
        return (self.cert_file, self.key_file, *([self.client_ca_file] if self.client_ca_file else []))

    def read(self) -> FileContents:
        """What they hold now; each is read for itself, so that they may be of two generations."""
        return FileContents(*map(_read, self.all))


class LoadedPair(Struct, frozen=True):
    """A context, the certificate that it shows, and the bytes that it was made from."""

    context: ssl.SSLContext
    certificate: x509.Certificate
    contents: FileContents


def load(files: TLSFiles, now: datetime) -> LoadedPair:
    """A fresh context for the pair, after it was found to belong together, and to be for `now` and `server_name`.

    Raises:
        BadCertificate: something is wrong with a file; the sentence says with which, and what was expected.
    """
    for _ in range(_TRIES):
        contents = files.read()
        try:
            loaded = _load(files, contents, now)
        except BadCertificate:
            if files.read() == contents:
                raise
        else:
            # OpenSSL has read the files again, by their names.
            if files.read() == contents:
                return loaded
    raise BadCertificate(Problem.CHANGING, f"{files.cert_file}: changes whenever it is read; expected it to stay")


def server_context(cert_file: Path, key_file: Path, *, now: datetime | None = None) -> ssl.SSLContext:
    """A context that serves the pair with TLS 1.3 to anybody.

    Args:
        now: the time to check validity against, the present where it is not given.

    Raises:
        BadCertificate: as `load`.
    """
    return load(TLSFiles(cert_file=cert_file, key_file=key_file), now or datetime.now(UTC)).context


def _read(file: Path) -> bytes | int:
    try:
        return file.read_bytes()
    except OSError as error:
        return error.errno or 0


def _load(files: TLSFiles, contents: FileContents, now: datetime) -> LoadedPair:
    (certificate, *_) = load_certificates(contents.certificate, files.cert_file, "the serving certificate")
    check_key(contents.key, files.key_file, certificate, files.cert_file)
    check_dates(certificate, files.cert_file, now)
    if files.server_name is not None:
        check_name(certificate, files.cert_file, files.server_name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = files.min_version
    context.set_ciphers(_TLS_1_2_CIPHERS)  # those of TLS 1.3 are all good, and not set by this
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0  # an API server resumes no session; one that is resumed would not be verified anew
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(files.cert_file, files.key_file)
    except (ssl.SSLError, OSError) as error:
        raise BadCertificate(
            Problem.REFUSED,
            f"{files.cert_file} with {files.key_file}: {error}; expected a PEM pair that OpenSSL takes",
        ) from None
    if files.client_ca_file is not None:
        _verify_callers(context, contents.client_ca, files.client_ca_file, now)
    return LoadedPair(context, certificate, contents)


def _verify_callers(context: ssl.SSLContext, content: bytes | int, file: Path, now: datetime) -> None:
    """Have the handshake ask callers for a certificate that one of these authorities has issued, for clients."""
    authorities = load_certificates(content, file, "the authority that issues callers' certificates")
    if not any(each.not_valid_before_utc <= now < each.not_valid_after_utc for each in authorities):
        raise BadCertificate(
            Problem.EXPIRED, f"{file}: no authority in it is valid now; expected one that may verify callers"
        )
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # an intermediate authority will do, as it does for Go
    try:
        context.load_verify_locations(cadata="".join(each.public_bytes(Encoding.PEM).decode() for each in authorities))
    except ssl.SSLError as error:
        raise BadCertificate(Problem.REFUSED, f"{file}: {error}; expected certificates that OpenSSL takes") from None
