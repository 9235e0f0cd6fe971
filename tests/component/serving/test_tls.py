"""Files -> context: each pair that can't be served gets one sentence, and a good pair a new context."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from support.control_plane.mounted import AUTHORITY, NAME, shake_hands
from support.drivers.serving import Pair, issue

from webhook.component_base.pem import BadCertificate, Problem
from webhook.serving.tls import MIN_VERSIONS, TLSFiles, load

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
END: Final = datetime(2026, 4, 1, tzinfo=UTC)
SECOND: Final = timedelta(seconds=1)
NOON: Final = datetime(2026, 2, 1, 12, tzinfo=UTC)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """A good pair, valid from START to END."""
    return issue(tmp_path, not_before=START, not_after=END)


def context(pair: Pair, now: datetime = NOON) -> ssl.SSLContext:
    """The context that serves this pair at this time."""
    files = TLSFiles(cert_file=pair.cert_file, key_file=pair.key_file)
    return load(files, files.read(), now)[0]


def pem(label: str, der: bytes) -> bytes:
    """Return DER as PEM."""
    return f"-----BEGIN {label}-----\n{base64.encodebytes(der).decode()}-----END {label}-----\n".encode()


def _swap(pair: Pair) -> None:
    cert, key = pair.cert_file.read_bytes(), pair.key_file.read_bytes()
    pair.cert_file.write_bytes(key)
    pair.key_file.write_bytes(cert)


def _encrypt(pair: Pair) -> None:
    key = serialization.load_pem_private_key(pair.key_file.read_bytes(), None)
    secret = serialization.BestAvailableEncryption(b"secret")
    pair.key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, secret))


def _of_another(pair: Pair) -> None:
    other = pair.key_file.parent / "other"
    other.mkdir()
    issue(other).key_file.replace(pair.key_file)


def _weak(pair: Pair) -> None:
    """A matching pair whose key OpenSSL's security level refuses."""
    key = rsa.generate_private_key(65537, 1024)  # noqa: S505 - that is the point
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    certificate = x509.CertificateBuilder(name, name, key.public_key(), 1, START, END).sign(key, hashes.SHA256())
    pair.cert_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    pair.key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))


def _unknown_curve(pair: Pair) -> None:
    """A PKCS #8 key on the unknown curve 1.2.3."""
    algorithm = bytes.fromhex("300b 0607 2a8648ce3d0201".replace(" ", "")) + bytes.fromhex("06022a03")
    algorithm = b"\x30" + bytes([len(algorithm) - 2]) + algorithm[2:]
    inner = bytes.fromhex("3005 0201 01 0400".replace(" ", ""))
    body = b"\x02\x01\x00" + algorithm + b"\x04" + bytes([len(inner)]) + inner
    pair.key_file.write_bytes(pem("PRIVATE KEY", b"\x30" + bytes([len(body)]) + body))


def _directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


BAD: Final[dict[str, tuple[Callable[[Pair], object], Problem, str]]] = {
    "no certificate file": (
        lambda pair: pair.cert_file.unlink(),
        Problem.MISSING,
        "tls.crt: No such file or directory; expected a PEM file with the serving certificate",
    ),
    "no key file": (
        lambda pair: pair.key_file.unlink(),
        Problem.MISSING,
        "tls.key: No such file or directory; expected a PEM file with the certificate's private key",
    ),
    "key a directory": (
        lambda pair: _directory(pair.key_file),
        Problem.UNREADABLE,
        "tls.key: Is a directory; expected",
    ),
    "certificate empty": (
        lambda pair: pair.cert_file.write_bytes(b""),
        Problem.MISSING,
        "tls.crt: no certificate in it",
    ),
    "certificate of other DER": (
        lambda pair: pair.cert_file.write_bytes(pem("CERTIFICATE", b"\x30\x03\x02\x01\x01")),
        Problem.MALFORMED,
        "tls.crt: no certificate in it",
    ),
    "key empty": (lambda pair: pair.key_file.write_bytes(b""), Problem.MISSING, "tls.key: no private key in it"),
    "key of an unknown curve": (_unknown_curve, Problem.MALFORMED, "tls.key: no private key in it"),
    "certificate and key swapped": (_swap, Problem.MALFORMED, "tls.crt: no certificate in it"),
    "key encrypted": (_encrypt, Problem.ENCRYPTED, "the private key is encrypted; expected one without a passphrase"),
    "key of another": (_of_another, Problem.KEY_MISMATCH, "tls.key: not the private key of "),
    "key too weak": (_weak, Problem.REFUSED, "expected a PEM pair that OpenSSL accepts"),
}


@pytest.mark.parametrize(("harm", "problem", "sentence"), BAD.values(), ids=BAD)
def test_a_pair_that_cannot_be_served_is_one_sentence(
    pair: Pair, harm: Callable[[Pair], object], problem: Problem, sentence: str
) -> None:
    """The sentence has the file, the problem, and what was expected."""
    harm(pair)
    with pytest.raises(BadCertificate) as caught:
        context(pair)
    assert caught.value.problem is problem
    assert sentence in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


DATES: Final = {
    "just before": (START - SECOND, "not valid before 2026-01-01T00:00:00Z; check this machine's clock"),
    "at its start": (START, None),
    "at its last second": (END - SECOND, None),
    "at its end": (END, "expired at 2026-04-01T00:00:00Z; issue a new one"),
    "long after": (END + timedelta(days=999), "expired at 2026-04-01T00:00:00Z; issue a new one"),
}


@pytest.mark.parametrize(("now", "sentence"), DATES.values(), ids=DATES.keys())
def test_a_certificate_is_served_while_it_is_valid(pair: Pair, now: datetime, sentence: str | None) -> None:
    """From its first second to its last. Before and after, the sentence has the time."""
    if sentence is None:
        assert context(pair, now).minimum_version is ssl.TLSVersion.TLSv1_3
        return
    with pytest.raises(BadCertificate) as caught:
        context(pair, now)
    assert str(caught.value) == f"{pair.cert_file}: {sentence}"


VERSIONS: Final = {
    "1.3 by default": ("VersionTLS13", "TLSv1.3", None, "TLSv1.3"),
    "1.2 refused by default": ("VersionTLS13", "TLSv1.2", None, None),
    "1.2 where it is set": ("VersionTLS12", "TLSv1.2", None, "TLSv1.2"),
    "1.3 where 1.2 is set": ("VersionTLS12", "TLSv1.3", None, "TLSv1.3"),
    "1.1 never": ("VersionTLS12", "TLSv1.1", "ECDHE@SECLEVEL=0", None),
    "1.2 with AES-GCM": ("VersionTLS12", "TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2"),
    "1.2 with ChaCha20": ("VersionTLS12", "TLSv1.2", "ECDHE-ECDSA-CHACHA20-POLY1305", "TLSv1.2"),
    "1.2 with CBC never": ("VersionTLS12", "TLSv1.2", "ECDHE-ECDSA-AES128-SHA256", None),
}


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
@pytest.mark.parametrize(("oldest", "spoken", "ciphers", "agreed"), VERSIONS.values(), ids=VERSIONS)
def test_old_tls_is_refused(tmp_path: Path, oldest: str, spoken: str, ciphers: str | None, agreed: str | None) -> None:
    """TLS 1.3, or 1.2 if it is set, only with forward secrecy and authenticated encryption."""
    issued = AUTHORITY.issue()
    for name, content in issued.payload.items():
        (tmp_path / name).write_bytes(content)
    files = TLSFiles(cert_file=tmp_path / "tls.crt", key_file=tmp_path / "tls.key", min_version=MIN_VERSIONS[oldest])
    client = AUTHORITY.trust()
    client.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    client.maximum_version = ssl.TLSVersion[spoken.replace(".", "_")]
    if ciphers:
        client.set_ciphers(ciphers)
    server, _ = load(files, files.read(), datetime.now(UTC))
    if agreed is None:
        with pytest.raises(ssl.SSLError):
            shake_hands(server, client)
    else:
        assert shake_hands(server, client).version() == agreed


NAMED: Final = {
    "the name": (["a.b.svc"], "a.b.svc", True),
    "among others": (["x.example", "a.b.svc", "y.example"], "a.b.svc", True),
    "in another case": (["A.b.SVC"], "a.B.svc", True),
    "a star for its first label": (["*.b.svc"], "a.b.svc", True),
    "an address": (["127.0.0.1"], "127.0.0.1", True),
    "a star for two labels": (["*.svc"], "a.b.svc", False),
    "a star for nothing": (["*.b.svc"], "b.svc", False),
    "a longer name": (["a.b.svc.cluster.local"], "a.b.svc", False),
    "a shorter name": (["a.b"], "a.b.svc", False),
}


@pytest.mark.parametrize(("names", "name", "covers"), NAMED.values(), ids=NAMED)
def test_the_certificate_must_be_for_the_server_name(
    tmp_path: Path, names: list[str], name: str, *, covers: bool
) -> None:
    """As an API server compares names, which is as Go does."""
    for file, content in AUTHORITY.issue(*names).payload.items():
        (tmp_path / file).write_bytes(content)
    files = TLSFiles(cert_file=tmp_path / "tls.crt", key_file=tmp_path / "tls.key", server_name=name)
    if covers:
        load(files, files.read(), datetime.now(UTC))
        return
    with pytest.raises(BadCertificate) as caught:
        load(files, files.read(), datetime.now(UTC))
    expected = f"tls.crt: for {', '.join(names)}; expected {name} among its subject alternative names"
    assert str(caught.value).endswith(expected)


def test_a_common_name_does_not_count(tmp_path: Path) -> None:
    """Go does not check the common name any more."""
    for file, content in AUTHORITY.issue(common_name=NAME).payload.items():
        (tmp_path / file).write_bytes(content)
    files = TLSFiles(cert_file=tmp_path / "tls.crt", key_file=tmp_path / "tls.key", server_name=NAME)
    with pytest.raises(BadCertificate, match="for no name; expected localhost"):
        load(files, files.read(), datetime.now(UTC))
