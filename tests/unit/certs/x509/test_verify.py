"""A pair is checked as a server and an API server would check it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from support.fakes import certs_cluster
from support.fakes.certs_cluster import DAY, NAMES, NOW, SECOND

from certs.x509 import pki, verify
from certs.x509.pki import NO_PAIR, Pair
from certs.x509.verify import Flaw, Servable

GOOD, OTHER = certs_cluster.pair(), certs_cluster.pair()
ENCRYPTED = load_pem_private_key(GOOD.key, None).private_bytes(
    Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
)


def test_a_good_pair_can_be_served() -> None:
    """The authority in ca.crt that verifies it is found at any position."""
    crowded = Pair(GOOD.certificate, GOOD.key, OTHER.authority + b"garbage" + GOOD.authority)
    found = verify.examine(crowded, NAMES, NOW)
    assert found == Servable(pki.read_certificates(GOOD.certificate)[0], pki.read_certificates(GOOD.authority)[0])


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        (NO_PAIR, "there is no certificate"),
        (Pair(b"", GOOD.key, GOOD.authority), "tls.crt holds no certificate"),
        (Pair(b"garbage", GOOD.key, GOOD.authority), "tls.crt holds no certificate"),
        (Pair(GOOD.certificate[:-60], GOOD.key, GOOD.authority), "tls.crt holds no certificate"),
        (Pair(GOOD.certificate, b"", GOOD.authority), "tls.key holds no private key"),
        (Pair(GOOD.certificate, GOOD.key[:100], GOOD.authority), "tls.key holds no private key"),
        (Pair(GOOD.certificate, ENCRYPTED, GOOD.authority), "tls.key is encrypted"),
        (Pair(GOOD.certificate, OTHER.key, GOOD.authority), "tls.key is not the key of tls.crt"),
        (Pair(GOOD.certificate, GOOD.key, b""), "no authority in ca.crt verifies tls.crt"),
        (Pair(GOOD.certificate, GOOD.key, OTHER.authority), "no authority in ca.crt verifies tls.crt"),
        (certs_cluster.pair(names=NAMES[:2]), f"tls.crt is not for {NAMES[2]}, {NAMES[3]}"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_said_in_one_sentence(pair: Pair, sentence: str) -> None:
    """The first problem is named."""
    assert verify.examine(pair, NAMES, NOW) == Flaw(sentence)


@pytest.mark.parametrize(
    ("now", "sentence"),
    [
        (NOW - timedelta(hours=1) - SECOND, "tls.crt is not valid before 2026-11-21T11:00:00Z"),
        (NOW - timedelta(hours=1), None),
        (NOW + 30 * DAY - SECOND, None),
        (NOW + 30 * DAY, "tls.crt expired at 2026-12-21T12:00:00Z"),
    ],
    ids=["just not yet", "just", "almost", "expired"],
)
def test_dates_count_to_the_second(now: object, sentence: str | None) -> None:
    """From the first moment until the last."""
    found = verify.examine(GOOD, NAMES, now)
    assert found == Flaw(sentence) if sentence else isinstance(found, Servable)
