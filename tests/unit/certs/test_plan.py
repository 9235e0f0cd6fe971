"""Every state of the cluster has one next step, with a reason."""

from __future__ import annotations

from datetime import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from support.fakes import certs_cluster
from support.fakes.certs_cluster import (
    DAY,
    EXPIRED,
    FRESH,
    NAMES,
    NOW,
    OLD,
    OURS,
    POLICY,
    SECOND,
    STRANGER,
    WRONG_KEY,
    Watched,
    published,
    secret,
)

from certs import pki
from certs.pki import Pair
from certs.plan import Issue, NewAuthority, Publish, RotationStep, WaitUntil

RENEWAL = NOW + POLICY.lifetime - POLICY.renew_before
ELSEWHERE = x509.NameConstraints([x509.DNSName("corp.example")], None)


def by_hand(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, *extensions: x509.ExtensionType) -> Pair:
    """An authority that a user made, with these extensions, in the Secret of the authority."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "by hand")])
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW - DAY, NOW + 90 * DAY)
    of_ours = (each.value for each in OURS.certificate.extensions if each.critical)
    for each in (*of_ours, *extensions):
        made = made.add_extension(each, critical=True)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Pair(pki.pem([made.sign(key, hashes.SHA256())]), text)


ENDING = certs_cluster.made(at=NOW - POLICY.authority_lifetime + POLICY.lifetime)  # it is replaced now


@pytest.mark.parametrize(
    ("watched", "expected"),
    [
        (Watched(None, b"", of=None), NewAuthority("there is no authority")),
        (Watched(FRESH, published(FRESH), of=None), NewAuthority("there is no authority")),
        (
            Watched(FRESH, published(FRESH), of=ENDING),
            NewAuthority("the authority expires at 2026-12-21T12:00:00Z, before a new certificate would"),
        ),
        (Watched(None, OURS.pair.authority), Issue("there is no certificate", OURS)),
        (
            Watched(WRONG_KEY, published(FRESH)),
            Issue("tls.key: not the private key of tls.crt; expected the two to be issued together", OURS),
        ),
        (
            Watched(certs_cluster.pair(names=NAMES[:1], of=OURS), published(FRESH)),
            Issue(f"tls.crt: for {NAMES[0]}; expected {NAMES[1]} among its subject alternative names", OURS),
        ),
        (Watched(EXPIRED, published(FRESH)), Issue("tls.crt: expired at 2026-11-11T12:00:00Z; issue a new one", OURS)),
        (Watched(FRESH, published(FRESH)), WaitUntil(RENEWAL, "the certificate is renewed at that time")),
        (
            Watched(OLD, published(FRESH, OLD)),
            WaitUntil(
                NOW + POLICY.propagation,
                "API servers must see the new authority before a certificate of it is served",
            ),
        ),
        (
            Watched(FRESH, published(FRESH, STRANGER)),
            WaitUntil(NOW + POLICY.retire, "an authority leaves the bundle at that time"),
        ),
    ],
    ids=[
        "nothing",
        "authority removed",
        "authority near its end",
        "Secret removed",
        "torn",
        "Service renamed",
        "late",
        "good",
        "of another authority",
        "leaving",
    ],
)
def test_a_state_has_a_step_and_a_reason(watched: Watched, expected: RotationStep) -> None:
    """The steps, with all their words."""
    found = watched.step()
    if isinstance(expected, Issue):
        assert isinstance(found, Issue)
        assert (found.reason, found.authority.certificate) == (expected.reason, expected.authority.certificate)
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("damaged", "sentence"),
    [
        (Pair(b"garbage", OURS.pair.key), "tls.crt: no certificate in it; expected PEM with the serving certificate"),
        (Pair(OURS.pair.certificate, b""), "tls.key: no private key in it; expected PEM with the certificate's key"),
        (
            Pair(OURS.pair.certificate, FRESH.key),
            "tls.key: not the private key of tls.crt; expected the two to be issued together",
        ),
        (certs_cluster.made(at=NOW - 100 * DAY).pair, "tls.crt: expired at 2026-11-11T12:00:00Z; issue a new one"),
        (FRESH, "tls.crt: not an authority whose certificates callers accept"),
        (
            by_hand(ec.generate_private_key(ec.SECP256R1()), ELSEWHERE),
            "tls.crt: not an authority whose certificates callers accept",
        ),
        (by_hand(rsa.generate_private_key(65_537, 2_048)), "tls.crt: not an authority with an elliptic curve key"),
    ],
    ids=["no certificate", "no key", "another key", "expired", "no authority", "for other names", "of RSA"],
)
def test_a_damaged_authority_is_replaced(damaged: Pair, sentence: str) -> None:
    """Nothing can be issued of it. The certificate that it issued is served until the new one is."""
    watched = Watched(FRESH, published(FRESH))
    watched.cluster.secrets["authority"] = secret(damaged)
    assert watched.step() == NewAuthority(sentence)


@pytest.mark.parametrize(
    ("watched", "added", "dropped"),
    [
        (Watched(FRESH, b""), [FRESH], []),
        (Watched(FRESH, b"garbage"), [FRESH], []),
        (Watched(FRESH, published(FRESH), b""), [FRESH], []),
        (Watched(FRESH, published(FRESH, FRESH)), [], []),
        (Watched(OLD, published(FRESH)), [OLD], []),
        (Watched(OLD, b""), [FRESH, OLD], []),
    ],
    ids=["empty", "garbage", "one of two empty", "there twice", "restored from a backup", "restored, and empty"],
)
def test_a_bundle_is_repaired_at_once(watched: Watched, added: list[Pair], dropped: list[Pair]) -> None:
    """One write corrects all problems."""
    wanted = watched.step()
    assert isinstance(wanted, Publish)
    assert pki.pem(wanted.added) == published(*added)
    assert pki.pem(wanted.dropped) == published(*dropped)
    assert watched.until_waiting()[0] == [Publish]


@pytest.mark.parametrize(
    ("now", "renewed"), [(RENEWAL - SECOND, False), (RENEWAL, True)], ids=["almost due", "just due"]
)
def test_a_certificate_is_renewed_at_two_thirds_of_its_life(now: datetime, renewed: bool) -> None:  # noqa: FBT001 - a column
    """Exactly to the second, in one write, without a wait: caBundle does not change."""
    watched = Watched(FRESH, published(FRESH))
    taken, wait = watched.until_waiting(now)
    assert taken == ([Issue] if renewed else [])
    assert wait.until == (now + POLICY.lifetime - POLICY.renew_before if renewed else RENEWAL)
    assert watched.cluster.bundles == [published(FRESH)]


@pytest.mark.parametrize("served", [FRESH, None], ids=["served", "served from memory"])
def test_an_authority_is_replaced_in_four_writes_and_two_waits(served: Pair | None) -> None:
    """In the order of the plan's docstring. Not a second early."""
    watched = Watched(served, published(FRESH), of=None)
    assert watched.until_waiting()[0] == [NewAuthority, Publish]
    (bundle,) = watched.cluster.bundles
    assert bundle.startswith(published(FRESH))
    assert watched.cluster.served == (served or Pair())
    assert watched.until_waiting(NOW + POLICY.propagation - SECOND)[0] == []
    issued_at = NOW + POLICY.propagation
    assert watched.until_waiting(issued_at)[0] == [Issue]
    assert watched.cluster.served.authority in bundle
    assert watched.cluster.bundles == [bundle]
    assert watched.until_waiting(issued_at + POLICY.retire - SECOND)[0] == []
    assert watched.until_waiting(issued_at + POLICY.retire)[0] == [Publish]
    assert watched.cluster.bundles == [watched.cluster.served.authority]
