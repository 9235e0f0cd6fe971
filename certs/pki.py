"""Makes an authority and issues pairs of it, and checks pairs of any origin. The first problem is one sentence.

No I/O, no clock; randomness is OpenSSL's. What servers would refuse is a flaw here: both ask `pem.check_pair`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from msgspec import Struct

from webhook.component_base.pem import BadCertificate, check_pair

BACKDATED: Final = timedelta(hours=1)  # for API servers with slow clocks; kubeadm allows 5 minutes
_COMMON_NAME_CHARS: Final = 64  # RFC 5280: ub-common-name
_SHOWN_HEX: Final = 16  # of a fingerprint: enough to distinguish certificates
_FILES: Final = (Path("tls.crt"), Path("tls.key"))
_CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----\s.*?-----END CERTIFICATE-----", re.DOTALL)


class Pair(Struct, frozen=True):
    """A certificate, its key and the authority that verifies it. Each is PEM, or any bytes found in its place."""

    certificate: bytes = b""
    key: bytes = b""
    authority: bytes = b""

    def __repr__(self) -> str:
        return "Pair(...)"  # no output may show the key

    def __bool__(self) -> bool:
        return bool(self.certificate or self.key or self.authority)


NO_PAIR: Final = Pair()


class Authority(Struct, frozen=True):
    """The certificate and the key of an authority that can issue pairs."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pair(self) -> Pair:
        """Both as PEM. The authority verifies itself."""
        return Pair(pem([self.certificate]), _key_pem(self.key), pem([self.certificate]))


class Servable(Struct, frozen=True):
    """A pair that servers can serve, and that callers accept if they trust its authority."""

    certificate: x509.Certificate
    authority: x509.Certificate


class Flaw(Struct, frozen=True):
    """Why a pair can't be served."""

    sentence: str


def service_names(service: str, namespace: str, cluster_domain: str) -> tuple[str, ...]:
    """Return the DNS names of a Service, first `<service>.<namespace>.svc`, which API servers ask for."""
    return (
        f"{service}.{namespace}.svc",
        service,
        f"{service}.{namespace}",
        f"{service}.{namespace}.svc.{cluster_domain}",
    )


def new_authority(*, now: datetime, lifetime: timedelta) -> Authority:
    """Return a new authority, valid until `now + lifetime`.

    Each authority has a different name, so that a lookup of the issuer by name finds only one in a bundle.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    name = _name(f"kubevirt-coschedule CA {serial:x}"[:40])
    certificate = (
        _builder(name, name, key.public_key(), (now - BACKDATED, now + lifetime))
        .serial_number(serial)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def issue(authority: Authority, names: Sequence[str], *, now: datetime, lifetime: timedelta) -> Pair:
    """Return a new pair of this authority for these DNS names and IP addresses, valid until `now + lifetime`."""
    key, dates = ec.generate_private_key(ec.SECP256R1()), (now - BACKDATED, now + lifetime)
    authority_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    certificate = (
        _builder(_name(names[0][:_COMMON_NAME_CHARS]), authority.certificate.subject, key.public_key(), dates)
        .serial_number(x509.random_serial_number())
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(authority_id, critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return Pair(certificate=pem([certificate]), key=_key_pem(key), authority=pem([authority.certificate]))


def read_certificates(text: bytes) -> list[x509.Certificate]:
    """Return every certificate in a text that can be read. As in Go's AppendCertsFromPEM, the rest is skipped."""
    found = []
    for block in _CERTIFICATE.findall(text):
        try:
            certificate = x509.load_pem_x509_certificate(block)
            _ = certificate.subject, certificate.extensions  # these are parsed lazily, and can be broken
        except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
            continue
        found.append(certificate)
    return found


def examine(pair: Pair, names: Sequence[str], now: datetime) -> Servable | Flaw:
    """Check a pair for these names; callers ask for the first."""
    if not pair:
        return Flaw("there is no certificate")
    try:
        chain, _ = check_pair((pair.certificate, pair.key), _FILES, names, now)
    except BadCertificate as problem:
        return Flaw(str(problem))
    for authority in read_certificates(pair.authority):
        if _verifies(authority, chain, names[0], now):
            return Servable(chain[0], authority)
    return Flaw("ca.crt: no authority in it verifies tls.crt")


def examine_authority(pair: Pair, names: Sequence[str], now: datetime) -> Authority | Flaw:
    """Check that an authority can issue pairs for these names now: issue one, and check that callers accept it."""
    if not pair:
        return Flaw("there is no authority")
    try:
        (certificate, *_), key = check_pair((pair.certificate, pair.key), _FILES, (), now)
    except BadCertificate as problem:
        return Flaw(str(problem))
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        return Flaw("tls.crt: not an authority with an elliptic curve key")
    authority = Authority(certificate, key)
    if isinstance(examine(issue(authority, names, now=now, lifetime=BACKDATED), names, now), Flaw):
        return Flaw("tls.crt: not an authority whose certificates callers accept")
    return authority


def pem(certificates: Iterable[x509.Certificate]) -> bytes:
    """Return the certificates as one PEM text."""
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


def short_fingerprint(certificate: x509.Certificate) -> str:
    """Return the start of the certificate's SHA-256 in hex, which names it in logs."""
    return certificate.fingerprint(hashes.SHA256()).hex()[:_SHOWN_HEX]


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, dates: tuple[datetime, datetime]
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    key_id = x509.SubjectKeyIdentifier.from_public_key(key)
    return builder.not_valid_before(dates[0]).not_valid_after(dates[1]).add_extension(key_id, critical=False)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(name: str) -> x509.DNSName | x509.IPAddress:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _verifies(authority: x509.Certificate, chain: Sequence[x509.Certificate], name: str, now: datetime) -> bool:
    """Whether a caller that trusts `authority` accepts the first certificate of `chain` for `name`."""
    try:
        verifier = PolicyBuilder().store(Store([authority])).time(now).build_server_verifier(_general_name(name))
        verifier.verify(chain[0], list(chain[1:]))
    except (VerificationError, ValueError, UnsupportedAlgorithm):
        return False
    return True
