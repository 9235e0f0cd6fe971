"""Checks that a pair can be served, and that an API server accepts it. The first problem is one sentence.

Pure. The rules are Go's or stricter, so that a pair that passes here is accepted by every caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from ipaddress import ip_address

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from msgspec import Struct

from certs.x509 import pki
from certs.x509.pki import Authority, Pair


class Servable(Struct, frozen=True):
    """A pair that servers can serve, and that callers accept if they trust its authority."""

    certificate: x509.Certificate
    authority: x509.Certificate


class Flaw(Struct, frozen=True):
    """Why a pair can't be served."""

    sentence: str


def examine(pair: Pair, names: Sequence[str], now: datetime) -> Servable | Flaw:
    """Check a pair for these names; callers ask for the first."""
    if not pair:
        return Flaw("there is no certificate")
    found = pki.read_certificates(pair.certificate)
    if not found:
        return Flaw("tls.crt holds no certificate")
    certificate = found[0]
    wrong = key_problem(pair.key, certificate) or date_problem(certificate, now) or name_problem(certificate, names)
    if wrong:
        return Flaw(wrong)
    for authority in pki.read_certificates(pair.authority):
        if verifies(authority, found, names[0], now):
            return Servable(certificate, authority)
    return Flaw("no authority in ca.crt verifies tls.crt")


def examine_authority(pair: Pair, now: datetime) -> Authority | Flaw:
    """Check that an authority can issue pairs now."""
    found = pki.read_certificates(pair.certificate)
    if not found:
        return Flaw("tls.crt holds no certificate" if pair else "there is no authority")
    certificate = found[0]
    wrong = key_problem(pair.key, certificate) or date_problem(certificate, now)
    if wrong:
        return Flaw(wrong)
    key = load_pem_private_key(pair.key, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not _signs_certificates(certificate):
        return Flaw("tls.crt is not an authority with an elliptic curve key")
    return Authority(certificate, key)


def key_problem(key: bytes, certificate: x509.Certificate) -> str | None:
    """Return what is wrong with a certificate's key; None if nothing."""
    try:
        loaded = load_pem_private_key(key, password=None)
        same = loaded.public_key() == certificate.public_key()
    except TypeError:
        return "tls.key is encrypted"
    except (ValueError, UnsupportedAlgorithm):
        return "tls.key holds no private key"
    return None if same else "tls.key is not the key of tls.crt"


def date_problem(certificate: x509.Certificate, now: datetime) -> str | None:
    """Return why a certificate is not valid now; None if it is."""
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < start:
        return f"tls.crt is not valid before {timestamp(start)}"
    return f"tls.crt expired at {timestamp(end)}" if now >= end else None


def name_problem(certificate: x509.Certificate, names: Sequence[str]) -> str | None:
    """Return which of these names a certificate lacks; None if it has all."""
    missing = [name for name in names if name not in pki.subject_alternative_names(certificate)]
    return f"tls.crt is not for {', '.join(missing)}" if missing else None


def verifies(authority: x509.Certificate, chain: Sequence[x509.Certificate], name: str, now: datetime) -> bool:
    """Whether a caller that trusts `authority` accepts the first certificate of `chain` for `name`."""
    try:
        subject: x509.DNSName | x509.IPAddress = x509.IPAddress(ip_address(name))
    except ValueError:
        subject = x509.DNSName(name)
    try:
        verifier = PolicyBuilder().store(Store([authority])).time(now).build_server_verifier(subject)
        verifier.verify(chain[0], list(chain[1:]))
    except (VerificationError, ValueError, UnsupportedAlgorithm):
        return False
    return True


def _signs_certificates(certificate: x509.Certificate) -> bool:
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        return False
    return constraints.ca and usage.key_cert_sign


def timestamp(moment: datetime) -> str:
    """Return a time as Kubernetes writes it."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
