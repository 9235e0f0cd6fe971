"""Parses the PEM of a certificate and its key, and checks that a server can serve them.

The webhook checks its files, and the certificate controller its Secrets: what the one would refuse, the other repairs.
Pure: this module reads no file and no clock. A problem is a BadCertificate, with one sentence: the file, what is wrong
and what was expected.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from errno import ENOENT
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from webhook.component_base.errors import UserError

_NOT_THAT: Final = (ValueError, UnsupportedAlgorithm, x509.InvalidVersion, x509.DuplicateExtension)


class Problem(StrEnum):
    """What can be wrong with the files. The values are labels of a metric."""

    MISSING = "missing"  # or empty
    UNREADABLE = "unreadable"
    MALFORMED = "malformed"
    ENCRYPTED = "encrypted"
    KEY_MISMATCH = "key-mismatch"  # files of two different pairs, or a wrong key
    NOT_YET_VALID = "not-yet-valid"
    EXPIRED = "expired"
    WRONG_NAME = "wrong-name"
    REFUSED = "refused"  # by OpenSSL


class BadCertificate(UserError):
    """Files that can't be served, with the kind of problem."""

    def __init__(self, problem: Problem, sentence: str) -> None:
        self.problem = problem
        super().__init__(sentence)


def _content(content: bytes | int, file: Path, what: str) -> bytes:
    if isinstance(content, bytes):
        return content
    problem = Problem.MISSING if content == ENOENT else Problem.UNREADABLE
    raise BadCertificate(problem, f"{file}: {os.strerror(content)}; expected a PEM file with {what}")


def load_certificates(content: bytes | int, file: Path, what: str) -> Sequence[x509.Certificate]:
    """Return the certificates of a file in their order, at least one. `content`: its bytes, or the errno of reading it.

    Raises:
        BadCertificate: the file has no certificate.
    """
    pem = _content(content, file, what)
    try:
        return x509.load_pem_x509_certificates(pem)
    except _NOT_THAT:
        problem = Problem.MALFORMED if pem else Problem.MISSING
        raise BadCertificate(problem, f"{file}: no certificate in it; expected PEM with {what}") from None


def check_pair(
    contents: Sequence[bytes | int], files: Sequence[Path], names: Sequence[str], now: datetime
) -> tuple[Sequence[x509.Certificate], PrivateKeyTypes]:
    """Check that a certificate can be served now, with its key and for these names.

    Args:
        contents: the bytes of the certificate and of the key, or the errno of reading them.
        files: how a sentence names the two.
        names: those that the certificate must have; none if it can have any.
        now: the time at which it must be valid.

    Returns:
        The certificate and those of its issuers that follow it, and its key.

    Raises:
        BadCertificate: the two can't be served.
    """
    certificates = load_certificates(contents[0], files[0], "the serving certificate")
    key = _load_key(contents[1], files[1])
    try:
        same = key.public_key() == certificates[0].public_key()
    except _NOT_THAT:
        same = False  # cryptography does not know this kind of key
    if not same:
        raise BadCertificate(
            Problem.KEY_MISMATCH,
            f"{files[1]}: not the private key of {files[0]}; expected the two to be issued together",
        )
    check_dates(certificates[0], files[0], now)
    for name in names:
        _check_name(certificates[0], files[0], name)
    return certificates, key


def _load_key(content: bytes | int, file: Path) -> PrivateKeyTypes:
    pem = _content(content, file, "the certificate's private key")
    try:
        return load_pem_private_key(pem, password=None)
    except TypeError:
        sentence = f"{file}: the private key is encrypted; expected one without a passphrase"
        raise BadCertificate(Problem.ENCRYPTED, sentence) from None
    except _NOT_THAT:
        problem = Problem.MALFORMED if pem else Problem.MISSING
        sentence = f"{file}: no private key in it; expected PEM with the certificate's key"
        raise BadCertificate(problem, sentence) from None


def _check_name(certificate: x509.Certificate, file: Path, name: str) -> None:
    """Check the name against the subject alternative names only: Go ignores the common name."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        found = [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]
    except (*_NOT_THAT, x509.ExtensionNotFound):
        found = []
    label, _, rest = name.lower().partition(".")
    wildcard = f"*.{rest}" if label and rest else ""  # a star stands for one whole label, the first
    if {name.lower(), wildcard}.isdisjoint(each.lower() for each in found):
        raise BadCertificate(
            Problem.WRONG_NAME,
            f"{file}: for {', '.join(found) or 'no name'}; expected {name} among its subject alternative names",
        )


def check_dates(certificate: x509.Certificate, file: Path, now: datetime) -> None:
    """Check that the certificate is valid now.

    Raises:
        BadCertificate: it has expired, or is not valid yet; the sentence has the time.
    """
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < start:
        raise BadCertificate(
            Problem.NOT_YET_VALID, f"{file}: not valid before {rfc3339(start)}; check this machine's clock"
        )
    if now >= end:
        raise BadCertificate(Problem.EXPIRED, f"{file}: expired at {rfc3339(end)}; issue a new one")


def rfc3339(moment: datetime) -> str:
    """Return a time as Kubernetes writes it."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
