"""What is found about a pair, its authorities and a handshake: one line each, good, wrong or just to know. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum

from cryptography import x509
from msgspec import Struct

from certs.inspect.handshake import Handshake
from certs.x509 import pki, verify
from certs.x509.pki import NO_PAIR, Pair
from certs.x509.verify import timestamp


class Result(StrEnum):
    """How a check came out."""

    OK = "ok"
    WRONG = "wrong"
    NOTE = "note"


class Finding(Struct, frozen=True):
    """One check, and what it found."""

    check: str
    result: Result
    detail: str


class Material(Struct, frozen=True, kw_only=True):
    """What there is to look at. `bundles`: the caBundle of each webhook, none where files are looked at."""

    pair: Pair
    following: Pair = NO_PAIR
    bundles: Mapping[str, bytes] = {}

    @property
    def trusted(self) -> bytes:
        """What a caller trusts: the first webhook's bundle, or the file ca.crt."""
        return next(iter(self.bundles.values()), b"") if self.bundles else self.pair.authority


def findings(material: Material, names: Sequence[str], now: datetime) -> Iterator[Finding]:
    """Everything but the handshake. Without `names` the certificate is asked for its own."""
    chain = pki.certificates(material.pair.certificate)
    if not chain:
        what = "tls.crt holds no certificate" if material.pair.certificate else "there is no tls.crt"
        yield Finding("certificate", Result.WRONG, what)
        return
    certificate = chain[0]
    stated = pki.names_of(certificate)
    yield Finding("certificate", Result.OK, described(certificate))
    yield _judged("key", verify.key_problem(material.pair.key, certificate), "tls.key is the key of tls.crt")
    yield _judged("names", verify.name_problem(certificate, names), ", ".join(stated) or "none")
    yield _judged("dates", verify.date_problem(certificate, now), _dates(certificate, now))
    name = names[0] if names else next(iter(stated), "")
    yield _authority("ca.crt", material.pair.authority, chain, name, now)
    for hook, bundle in material.bundles.items():
        yield _authority(f"caBundle of {hook}", bundle, chain, name, now)
    if material.following:
        next_chain = pki.certificates(material.following.certificate)
        yield Finding("next", Result.NOTE, described(next_chain[0]) if next_chain else "next.crt holds no certificate")


def of_handshake(shaken: Handshake, pair: Pair) -> Finding:
    """What a handshake says."""
    what = f"{shaken.protocol}, {described(shaken.certificate)}"
    if shaken.refused:
        return Finding("handshake", Result.WRONG, f"{what}: refused, {shaken.refused}")
    if shaken.certificate not in pki.certificates(pair.certificate)[:1]:
        return Finding(
            "handshake", Result.NOTE, f"{what}: trusted, but not tls.crt; the server has not reloaded it yet"
        )
    return Finding("handshake", Result.OK, f"{what}: trusted")


def described(certificate: x509.Certificate) -> str:
    """A certificate in a few words."""
    return f"{pki.fingerprint(certificate)}, until {timestamp(certificate.not_valid_after_utc)}"


def _judged(check: str, problem: str | None, good: str) -> Finding:
    return Finding(check, Result.WRONG, problem) if problem else Finding(check, Result.OK, good)


def _dates(certificate: x509.Certificate, now: datetime) -> str:
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return f"valid from {timestamp(start)} until {timestamp(end)}, {_left((end - now).total_seconds())} left"


def _left(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _authority(check: str, bundle: bytes, chain: Sequence[x509.Certificate], name: str, now: datetime) -> Finding:
    authorities = pki.certificates(bundle)
    verifying = [each for each in authorities if verify.verifies(each, chain, name, now)]
    others = ", ".join(f"{pki.fingerprint(each)}" for each in authorities if each not in verifying)
    if verifying:
        beside = f"; beside it {others}" if others else ""
        return Finding(check, Result.OK, f"{pki.fingerprint(verifying[0])} verifies tls.crt{beside}")
    if not authorities:
        return Finding(check, Result.WRONG, f"{'no certificate in it' if bundle else 'it is empty'}")
    return Finding(check, Result.WRONG, f"nothing in it verifies tls.crt: {others}")
