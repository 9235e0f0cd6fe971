"""The serving certificate: files -> a fresh SSLContext, or the one sentence that says why not."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from webhook.errors import UserError


class BadCertificate(UserError):
    """A certificate or key that can't be served."""


def server_context(cert_file: Path, key_file: Path, *, now: datetime | None = None) -> ssl.SSLContext:
    """A context that serves the pair with TLS 1.3, after it was read and found to belong together.

    Args:
        now: the time to check validity against, the present where it is not given.

    Raises:
        BadCertificate: a file is missing or unreadable, no PEM, encrypted, expired, or the key is another's.
    """
    certificate = _certificate(cert_file)
    _check_key(key_file, certificate, cert_file)
    _check_dates(certificate, cert_file, now or datetime.now(UTC))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(cert_file, key_file)
    except (ssl.SSLError, OSError) as error:
        raise BadCertificate(f"{cert_file} with {key_file}: {error}; expected a PEM pair that OpenSSL takes") from None
    return context


def _read(file: Path, what: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise BadCertificate(f"{file}: {error.strerror}; expected a PEM file with {what}") from None


def _certificate(file: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificates(_read(file, "the serving certificate"))[0]
    except ValueError:
        raise BadCertificate(f"{file}: no certificate in it; expected PEM with the serving certificate") from None


def _check_key(file: Path, certificate: x509.Certificate, cert_file: Path) -> None:
    try:
        key = load_pem_private_key(_read(file, "the certificate's private key"), password=None)
    except TypeError:
        raise BadCertificate(f"{file}: the private key is encrypted; expected one without a passphrase") from None
    except (ValueError, UnsupportedAlgorithm):
        raise BadCertificate(f"{file}: no private key in it; expected PEM with the certificate's key") from None
    if key.public_key() != certificate.public_key():
        raise BadCertificate(f"{file}: not the private key of {cert_file}; expected the two to be issued together")


def _check_dates(certificate: x509.Certificate, file: Path, now: datetime) -> None:
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < start:
        raise BadCertificate(f"{file}: not valid before {start:%Y-%m-%dT%H:%M:%SZ}; check this machine's clock")
    if now >= end:
        raise BadCertificate(f"{file}: expired at {end:%Y-%m-%dT%H:%M:%SZ}; issue a new one")
