"""Makes a new SSLContext from the files of the serving certificate.

This module has no state, and never loads into a context that is in use. Invariant: a context holds exactly the bytes
that were checked, even if another process writes the files at the same time.
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

from webhook.component_base.pem import BadCertificate, Problem, check_pair, load_certificates

_TLS_1_2_CIPHERS: Final = (
    "ECDHE+AESGCM:ECDHE+CHACHA20"  # forward secret and authenticated; Go's client supports all of them
)
MIN_VERSIONS: Final = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}
"""The values of kube-apiserver's --tls-min-version, without the versions that are no longer secure."""

_TRIES: Final = 3  # a swap takes microseconds, so a second read is nearly always of one pair


class FileContents(NamedTuple):
    """The bytes of each file, or the errno of reading it. Equal contents make equal contexts."""

    certificate: bytes | int
    key: bytes | int
    client_ca: bytes | int = b""


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

    def read(self) -> FileContents:
        """Read the files one after the other. A writer in between can make them files of two pairs."""
        return FileContents(*map(_read, self.all))


class LoadedPair(Struct, frozen=True):
    """A context, its certificate, and the bytes that it was made from."""

    context: ssl.SSLContext
    certificate: x509.Certificate
    contents: FileContents


def load(files: TLSFiles, now: datetime) -> LoadedPair:
    """Return a new context, after checking that key and certificate match, and are valid for `now` and `server_name`.

    Raises:
        BadCertificate: a file can't be served; the sentence names the file, the problem and what was expected.
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
    raise BadCertificate(
        Problem.CHANGING, f"{files.cert_file}: changes each time it is read; expected it to stay unchanged"
    )


def server_context(cert_file: Path, key_file: Path, *, now: datetime | None = None) -> ssl.SSLContext:
    """Return a context that serves the pair with TLS 1.3, and requires no client certificate.

    Args:
        cert_file: the certificate and its intermediates, PEM.
        key_file: the private key, PEM.
        now: the time at which the certificate must be valid; None is the present.

    Raises:
        BadCertificate: as for `load`.
    """
    return load(TLSFiles(cert_file=cert_file, key_file=key_file), now or datetime.now(UTC)).context


def _read(file: Path) -> bytes | int:
    try:
        return file.read_bytes()
    except OSError as error:
        return error.errno or 0


def _load(files: TLSFiles, contents: FileContents, now: datetime) -> LoadedPair:
    names = () if files.server_name is None else (files.server_name,)
    (certificate, *_), _ = check_pair(contents, files.all, names, now)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = files.min_version
    context.set_ciphers(_TLS_1_2_CIPHERS)  # for TLS 1.2; the ciphers of TLS 1.3 are all secure, and are not set here
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0  # API servers resume no session, and a resumed session would not be verified again
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(files.cert_file, files.key_file)
    except (ssl.SSLError, OSError) as error:
        raise BadCertificate(
            Problem.REFUSED,
            f"{files.cert_file} with {files.key_file}: {error}; expected a PEM pair that OpenSSL accepts",
        ) from None
    if files.client_ca_file is not None:
        _verify_callers(context, contents.client_ca, files.client_ca_file, now)
    return LoadedPair(context, certificate, contents)


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
