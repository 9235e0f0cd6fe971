"""A pair is checked as a server and an API server would check it."""

from __future__ import annotations

import pytest
from support.fakes import certs_cluster
from support.fakes.certs_cluster import NAMES, NOW

from certs import pki
from certs.pki import NO_PAIR, Flaw, Pair, Servable

GOOD, OTHER = certs_cluster.pair(), certs_cluster.pair()


def test_a_good_pair_can_be_served() -> None:
    """The authority in ca.crt that verifies it is found at any position."""
    crowded = Pair(GOOD.certificate, GOOD.key, OTHER.authority + b"garbage" + GOOD.authority)
    found = pki.examine(crowded, NAMES, NOW)
    assert found == Servable(pki.read_certificates(GOOD.certificate)[0], pki.read_certificates(GOOD.authority)[0])


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        (NO_PAIR, "there is no certificate"),
        (
            Pair(GOOD.certificate, OTHER.key, GOOD.authority),
            "tls.key: not the private key of tls.crt; expected the two to be issued together",
        ),
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
