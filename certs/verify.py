"""Checks that a pair can be served, and that an API server accepts it. The first problem is one sentence.

Pure. What servers would refuse is a flaw here, because both ask `pem.check_pair`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from msgspec import Struct

from certs import pki
from certs.pki import Authority, Pair
from webhook.component_base.pem import BadCertificate, check_pair

_FILES: Final = (Path("tls.crt"), Path("tls.key"))


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
    try:
        chain, _ = check_pair((pair.certificate, pair.key), _FILES, names, now)
    except BadCertificate as problem:
        return Flaw(str(problem))
    for authority in pki.read_certificates(pair.authority):
        if _verifies(authority, chain, names[0], now):
            return Servable(chain[0], authority)
    return Flaw("ca.crt: no authority in it verifies tls.crt")


def examine_authority(pair: Pair, now: datetime) -> Authority | Flaw:
    """Check that an authority can issue pairs now."""
    if not pair:
        return Flaw("there is no authority")
    try:
        (certificate, *_), key = check_pair((pair.certificate, pair.key), _FILES, (), now)
    except BadCertificate as problem:
        return Flaw(str(problem))
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not _signs_certificates(certificate):
        return Flaw("tls.crt: not an authority with an elliptic curve key")
    return Authority(certificate, key)


def _verifies(authority: x509.Certificate, chain: Sequence[x509.Certificate], name: str, now: datetime) -> bool:
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
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return False
    return constraints.ca and usage.key_cert_sign
