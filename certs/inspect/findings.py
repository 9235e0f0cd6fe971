"""The checks of a pair, its authorities and a handshake: one finding each. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum

from cryptography import x509
from msgspec import Struct

from certs.inspect.handshake import Handshake
from certs.x509 import pki, verify
from certs.x509.pki import Pair
from certs.x509.verify import timestamp


class Result(StrEnum):
    """The result of a check."""

    OK = "ok"
    WRONG = "wrong"
    NOTE = "note"


class InspectFinding(Struct, frozen=True):
    """One check and its result. The names of the fields are those of the JSON output."""

    check: str
    result: Result
    detail: str


class Material(Struct, frozen=True, kw_only=True):
    """The material to check. `bundles`: the caBundle of each webhook by its name; empty if a directory is checked."""

    pair: Pair
    bundles: Mapping[str, bytes] = {}

    @property
    def trusted(self) -> bytes:
        """The authorities that a caller trusts, PEM: the first webhook's bundle, or the file ca.crt."""
        return next(iter(self.bundles.values()), b"") if self.bundles else self.pair.authority


def findings(material: Material, names: Sequence[str], now: datetime) -> Iterator[InspectFinding]:
    """Yield the findings of all checks except the handshake. Without `names` the certificate may be for any name."""
    chain = pki.read_certificates(material.pair.certificate)
    if not chain:
        what = "tls.crt holds no certificate" if material.pair.certificate else "tls.crt does not exist or is empty"
        yield InspectFinding("certificate", Result.WRONG, what)
        return
    certificate = chain[0]
    stated = pki.subject_alternative_names(certificate)
    yield InspectFinding("certificate", Result.OK, describe(certificate))
    yield _result("key", verify.key_problem(material.pair.key, certificate), "tls.key is the key of tls.crt")
    yield _result("names", verify.name_problem(certificate, names), ", ".join(stated) or "none")
    yield _result("dates", verify.date_problem(certificate, now), _dates(certificate, now))
    name = names[0] if names else next(iter(stated), "")
    yield _authority("ca.crt", material.pair.authority, chain, name, now)
    for hook, bundle in material.bundles.items():
        yield _authority(f"caBundle of {hook}", bundle, chain, name, now)


def handshake_finding(handshake: Handshake, pair: Pair) -> InspectFinding:
    """Return the finding of a handshake with the server of this pair."""
    what = f"{handshake.protocol}, {describe(handshake.certificate)}"
    if handshake.refused:
        return InspectFinding("handshake", Result.WRONG, f"{what}: not trusted, {handshake.refused}")
    if handshake.certificate not in pki.read_certificates(pair.certificate)[:1]:
        return InspectFinding(
            "handshake", Result.NOTE, f"{what}: trusted, but not tls.crt; the server has not reloaded it yet"
        )
    return InspectFinding("handshake", Result.OK, f"{what}: trusted")


def describe(certificate: x509.Certificate) -> str:
    """Return the fingerprint and the end of a certificate."""
    return f"{pki.short_fingerprint(certificate)}, until {timestamp(certificate.not_valid_after_utc)}"


def _result(check: str, problem: str | None, good: str) -> InspectFinding:
    return InspectFinding(check, Result.WRONG, problem) if problem else InspectFinding(check, Result.OK, good)


def _dates(certificate: x509.Certificate, now: datetime) -> str:
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return f"valid from {timestamp(start)} until {timestamp(end)}, {_left((end - now).total_seconds())} left"


def _left(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _authority(
    check: str, bundle: bytes, chain: Sequence[x509.Certificate], name: str, now: datetime
) -> InspectFinding:
    authorities = pki.read_certificates(bundle)
    verifying = [each for each in authorities if verify.verifies(each, chain, name, now)]
    others = ", ".join(f"{pki.short_fingerprint(each)}" for each in authorities if each not in verifying)
    if verifying:
        also = f"; also has {others}" if others else ""
        return InspectFinding(check, Result.OK, f"{pki.short_fingerprint(verifying[0])} verifies tls.crt{also}")
    if not authorities:
        return InspectFinding(check, Result.WRONG, "has no certificate" if bundle else "is empty")
    return InspectFinding(check, Result.WRONG, f"no authority in it verifies tls.crt: {others}")
