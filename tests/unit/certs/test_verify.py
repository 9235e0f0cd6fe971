"""A pair is checked as a server and an API server would check it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from support.fakes import certs_cluster
from support.fakes.certs_cluster import DAY, NAMES, NOW, SECOND

from certs import pki
from certs.pki import NO_PAIR, Flaw, Pair, Servable
from webhook.component_base.pem import BadCertificate
from webhook.serving.tls import TLSFiles, load

GOOD, OTHER = certs_cluster.pair(), certs_cluster.pair()
ENCRYPTED = load_pem_private_key(GOOD.key, None).private_bytes(
    Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
)


def test_a_good_pair_can_be_served() -> None:
    """The authority in ca.crt that verifies it is found at any position."""
    crowded = Pair(GOOD.certificate, GOOD.key, OTHER.authority + b"garbage" + GOOD.authority)
    found = pki.examine(crowded, NAMES, NOW)
    assert found == Servable(pki.read_certificates(GOOD.certificate)[0], pki.read_certificates(GOOD.authority)[0])


NO_CERTIFICATE = "tls.crt: no certificate in it; expected PEM with the serving certificate"
NO_KEY = "tls.key: no private key in it; expected PEM with the certificate's key"
OTHER_KEY = "tls.key: not the private key of tls.crt; expected the two to be issued together"
SERVED_NOWHERE = [
    (Pair(b"", GOOD.key, GOOD.authority), NO_CERTIFICATE),
    (Pair(b"garbage", GOOD.key, GOOD.authority), NO_CERTIFICATE),
    (Pair(GOOD.certificate[:-60], GOOD.key, GOOD.authority), NO_CERTIFICATE),
    (Pair(GOOD.certificate.replace(b"MII", b"MIX", 1) + GOOD.certificate, GOOD.key, GOOD.authority), NO_CERTIFICATE),
    (Pair(GOOD.certificate, b"", GOOD.authority), NO_KEY),
    (Pair(GOOD.certificate, GOOD.key[:100], GOOD.authority), NO_KEY),
    (
        Pair(GOOD.certificate, ENCRYPTED, GOOD.authority),
        "tls.key: the private key is encrypted; expected one without a passphrase",
    ),
    (Pair(GOOD.certificate, OTHER.key, GOOD.authority), OTHER_KEY),
]


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        (NO_PAIR, "there is no certificate"),
        *SERVED_NOWHERE,
        (Pair(GOOD.certificate, GOOD.key, b""), "ca.crt: no authority in it verifies tls.crt"),
        (Pair(GOOD.certificate, GOOD.key, OTHER.authority), "ca.crt: no authority in it verifies tls.crt"),
        (
            certs_cluster.pair(names=NAMES[:2]),
            f"tls.crt: for {NAMES[0]}, {NAMES[1]}; expected {NAMES[2]} among its subject alternative names",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_said_in_one_sentence(pair: Pair, sentence: str) -> None:
    """The first problem is named."""
    assert pki.examine(pair, NAMES, NOW) == Flaw(sentence)


@pytest.mark.parametrize(("pair", "sentence"), SERVED_NOWHERE)
def test_a_server_refuses_the_same_with_the_same_words(pair: Pair, sentence: str, tmp_path: Path) -> None:
    """Otherwise nobody would repair a Secret that no server takes."""
    files = TLSFiles(cert_file=tmp_path / "tls.crt", key_file=tmp_path / "tls.key")
    files.cert_file.write_bytes(pair.certificate)
    files.key_file.write_bytes(pair.key)
    with pytest.raises(BadCertificate) as caught:
        load(files, files.read(), NOW)
    assert str(caught.value).replace(f"{tmp_path}/", "") == sentence


@pytest.mark.parametrize(
    ("now", "sentence"),
    [
        (
            NOW - timedelta(hours=1) - SECOND,
            "tls.crt: not valid before 2026-11-21T11:00:00Z; check this machine's clock",
        ),
        (NOW - timedelta(hours=1), None),
        (NOW + 30 * DAY - SECOND, None),
        (NOW + 30 * DAY, "tls.crt: expired at 2026-12-21T12:00:00Z; issue a new one"),
    ],
    ids=["just not yet", "just", "almost", "expired"],
)
def test_dates_count_to_the_second(now: object, sentence: str | None) -> None:
    """From the first moment until the last."""
    found = pki.examine(GOOD, NAMES, now)
    assert found == Flaw(sentence) if sentence else isinstance(found, Servable)
