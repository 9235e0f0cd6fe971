"""Pairs verify everywhere: in Python's strict mode, OpenSSL, cryptography; Go in the API server's tests."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given
from hypothesis import strategies as st
from support.fakes import certs_cluster
from support.fakes.certs_cluster import DAY, NAMES, NOW, MemoryCluster, configuration, secret

from certs import pki, plan
from certs.pki import NO_PAIR, Flaw, Pair, Servable

MADE = certs_cluster.made()
ISSUED = certs_cluster.pair(of=MADE)
LEAF, AUTHORITY = pki.read_certificates(ISSUED.certificate)[0], pki.read_certificates(ISSUED.authority)[0]


def extension(certificate: x509.Certificate, kind: type) -> Any:
    """Return the value of an extension."""
    return certificate.extensions.get_extension_for_class(kind).value


def test_the_names_are_those_of_the_service_and_the_first_is_what_api_servers_ask_for() -> None:
    """kube-apiserver uses `<service>.<namespace>.svc` as server name."""
    assert pki.service_names("web", "ns", "example.org") == ("web.ns.svc", "web", "web.ns", "web.ns.svc.example.org")
    assert extension(LEAF, x509.SubjectAlternativeName).get_values_for_type(x509.DNSName) == list(NAMES)


def test_a_leaf_may_serve_and_nothing_else() -> None:
    """Only the extended key usage serverAuth, no signing of certificates, P-256."""
    assert list(extension(LEAF, x509.ExtendedKeyUsage)) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert not extension(LEAF, x509.BasicConstraints).ca
    usage = extension(LEAF, x509.KeyUsage)
    assert (usage.digital_signature, usage.key_cert_sign, usage.key_encipherment) == (True, False, False)
    key = LEAF.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert key.curve.name == "secp256r1"


def test_an_authority_may_sign_leaves_and_nothing_else() -> None:
    """It can have no authority below it."""
    constraints, usage = extension(AUTHORITY, x509.BasicConstraints), extension(AUTHORITY, x509.KeyUsage)
    assert (constraints.ca, constraints.path_length) == (True, 0)
    assert (usage.key_cert_sign, usage.digital_signature, usage.crl_sign) == (True, False, False)


def test_a_certificate_is_backdated_and_has_the_given_lifetime() -> None:
    """For API servers with slow clocks. An authority outlives what it issues."""
    assert {each.not_valid_before_utc for each in (LEAF, AUTHORITY)} == {NOW - timedelta(hours=1)}
    assert [each.not_valid_after_utc for each in (LEAF, AUTHORITY)] == [NOW + 30 * DAY, NOW + 90 * DAY]


def test_no_two_pairs_share_a_number_or_a_key_and_no_two_authorities_a_name() -> None:
    """A verifier that searches an issuer by name finds one."""
    authorities = [certs_cluster.made().certificate for _ in range(20)]
    assert len({authority.subject.rfc4514_string() for authority in authorities}) == len(authorities)
    assert len({authority.serial_number for authority in authorities}) == len(authorities)
    pairs = [certs_cluster.pair(of=MADE) for _ in range(20)]
    assert len({pki.read_certificates(pair.certificate)[0].serial_number for pair in pairs}) == len(pairs)
    assert len({pair.key for pair in pairs}) == len(pairs)


@pytest.mark.parametrize("name", NAMES)
def test_a_strict_client_takes_it_for_each_name(name: str, tmp_path: Path) -> None:
    """OpenSSL through Python, with all checks of RFC 5280, among twenty other authorities."""
    issued = certs_cluster.pair(at=datetime.now(UTC))
    others = b"".join(certs_cluster.pair().authority for _ in range(20))
    shake_hands(issued, others + issued.authority, name, tmp_path)


def test_reading_skips_text_that_is_not_a_certificate() -> None:
    """As Go does: a bundle with a damaged certificate still counts for the others."""
    damaged = ISSUED.authority.replace(b"MII", b"MIX", 1)
    text = b"\x00garbage\n" + damaged + ISSUED.key + ISSUED.authority.replace(b"\n", b"\r\n") + ISSUED.certificate[:80]
    assert pki.read_certificates(text) == [AUTHORITY]


def shake_hands(pair: Pair, trusted: bytes, name: str, directory: Path) -> None:
    """A TLS handshake in memory: a server with the pair, and a strict client that trusts that bundle."""
    (directory / "tls.crt").write_bytes(pair.certificate)
    (directory / "tls.key").write_bytes(pair.key)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    calling = ssl.create_default_context(cadata=trusted.decode())
    calling.verify_flags |= ssl.VERIFY_X509_STRICT
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = serving.wrap_bio(there, back, server_side=True)
    client = calling.wrap_bio(back, there, server_hostname=name)
    done: set[ssl.SSLObject] = set()
    while len(done) < 2:
        for side in (client, server):
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                continue


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


@given(bundle=st.binary(max_size=200), content=st.binary(max_size=100))
def test_any_garbage_has_a_next_step(bundle: bytes, content: bytes) -> None:
    """No content of the objects stops the controller."""
    garbage = secret(Pair(content, content, content))
    for authority in (garbage, secret(certs_cluster.made().pair)):
        seen = MemoryCluster(garbage, configuration(bundle), authority).state()
        step = plan.next_step(seen, plan.RotationHistory(), certs_cluster.POLICY, NOW)
        assert isinstance(step, plan.NewAuthority | plan.Publish)


def test_a_pair_holds_one_key_the_leafs_and_does_not_show_it() -> None:
    """The private key of the authority is not in the pair."""
    assert (ISSUED.certificate + ISSUED.key + ISSUED.authority).count(b"PRIVATE KEY-----\n") == 2
    assert isinstance(pki.examine(ISSUED, NAMES, NOW), pki.Servable)
    assert "BEGIN" not in repr(ISSUED) + repr(MADE)


def test_an_address_can_be_a_name(tmp_path: Path) -> None:
    """As on a laptop."""
    issued = certs_cluster.pair(names=["localhost", "127.0.0.1", "::1"], at=datetime.now(UTC))
    shake_hands(issued, issued.authority, "127.0.0.1", tmp_path)


def test_the_longest_names_of_kubernetes_fit() -> None:
    """A common name has 64 characters; a Service and its namespace can have 63 each."""
    names = pki.service_names("s" * 63, "n" * 63, "cluster.local")
    issued = certs_cluster.pair(names=names)
    assert isinstance(pki.examine(issued, names, NOW), pki.Servable)
