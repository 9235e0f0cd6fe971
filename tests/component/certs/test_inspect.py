"""`inspect` shows what exists, what is wrong with it, and the result of a real TLS handshake."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread

import pytest
from support.fakes import certs_cluster
from support.fakes.certs_cluster import DAY, NAMES

from certs import cli
from certs.inspect import findings, run
from certs.inspect.findings import InspectFinding, Material, Result
from certs.x509 import pki
from certs.x509.pki import NO_PAIR, Pair
from webhook.component_base.address import Address

NOW = datetime.now(UTC).replace(microsecond=0)  # a certificate knows no fractions
GOOD, OTHER = certs_cluster.pair(at=NOW), certs_cluster.pair(at=NOW)
EXPIRED = certs_cluster.pair(at=NOW - 40 * DAY)
HOOK = "caBundle of hook"


def results(material: Material, names: tuple[str, ...] = NAMES) -> dict[str, Result]:
    """Return check -> result."""
    return {each.check: each.result for each in findings.findings(material, names, NOW)}


def live(pair: Pair, bundle: bytes) -> Material:
    """Return the material of a cluster."""
    return Material(pair=pair, bundles={"hook": bundle})


@pytest.mark.parametrize(
    ("material", "wrong"),
    [
        pytest.param(live(GOOD, GOOD.authority), set(), id="good"),
        pytest.param(live(GOOD, OTHER.authority + GOOD.authority), set(), id="an authority beside it"),
        pytest.param(live(NO_PAIR, b""), {"certificate"}, id="nothing"),
        pytest.param(live(Pair(b"garbage"), b""), {"certificate"}, id="garbage"),
        pytest.param(live(GOOD, b""), {HOOK}, id="bundle empty"),
        pytest.param(live(GOOD, b"garbage"), {HOOK}, id="bundle garbage"),
        pytest.param(live(GOOD, OTHER.authority), {HOOK}, id="bundle of another"),
        pytest.param(live(EXPIRED, EXPIRED.authority), {"dates", "ca.crt", HOOK}, id="expired"),
        pytest.param(live(Pair(GOOD.certificate, OTHER.key, GOOD.authority), GOOD.authority), {"key"}, id="key"),
        pytest.param(live(Pair(GOOD.certificate, GOOD.key), GOOD.authority), {"ca.crt"}, id="no ca.crt"),
        pytest.param(Material(pair=GOOD), set(), id="files"),
    ],
)
def test_every_check_tells_its_own(material: Material, wrong: set[str]) -> None:
    """One problem does not hide the results of the other checks."""
    found = results(material)
    assert {check for check, result in found.items() if result is Result.WRONG} == wrong
    assert (
        set(found) >= {"certificate"} if "certificate" in wrong else {"key", "names", "dates", "ca.crt"} <= set(found)
    )


def test_names_are_checked_if_they_are_given() -> None:
    """The pair in a directory can be for any name."""
    assert results(Material(pair=GOOD), ())["names"] is Result.OK
    assert results(Material(pair=GOOD), ("localhost",))["names"] is Result.WRONG


def test_the_time_until_expiry_is_shown() -> None:
    """In days, hours, minutes or seconds."""
    for lifetime, left in (
        (30 * DAY, "30 d left"),
        (timedelta(hours=5), "5 h left"),
        (timedelta(seconds=90), "90 s left"),
    ):
        issued = certs_cluster.pair(at=NOW, lifetime=lifetime)
        dates = next(each for each in findings.findings(Material(pair=issued), (), NOW) if each.check == "dates")
        assert dates.detail.endswith(left)


class Silent(StreamRequestHandler):
    """Makes the handshake, and sends nothing."""

    def handle(self) -> None:
        """Wait until the client disconnects."""
        self.rfile.read(1)


@contextmanager
def serving(pair: Pair, directory: Path) -> Iterator[Address]:
    """Run a TLS server with that pair."""
    (directory / "served.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "served.pem")
    with ThreadingTCPServer(("127.0.0.1", 0), Silent) as server:
        server.handle_error = lambda *_: None  # a handshake that the client breaks off
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield Address("127.0.0.1", server.server_address[1])
        server.shutdown()
        thread.join()


def handshake(served: Pair, shown: Material, directory: Path) -> InspectFinding:
    """Return the finding if a server serves one pair, and the cluster has another."""
    with serving(served, directory) as address:
        return run._handshake(shown, NAMES, address, asked=True)


def test_a_handshake_that_an_api_server_would_take_is_good(tmp_path: Path) -> None:
    """The finding has the certificate."""
    found = handshake(GOOD, live(GOOD, OTHER.authority + b"garbage\n" + GOOD.authority), tmp_path)
    assert found.result is Result.OK
    assert found.detail.startswith(
        f"TLSv1.3, {pki.short_fingerprint(pki.read_certificates(GOOD.certificate)[0])}, until "
    )


def test_a_server_that_has_not_reloaded_is_a_note(tmp_path: Path) -> None:
    """It is still trusted: this is normal for a minute after each renewal."""
    found = handshake(OTHER, live(GOOD, GOOD.authority + OTHER.authority), tmp_path)
    assert (found.result, "has not reloaded" in found.detail) == (Result.NOTE, True)


@pytest.mark.parametrize(
    ("served", "bundle", "why"),
    [
        (OTHER, GOOD.authority, "unable to get local issuer certificate"),
        (EXPIRED, EXPIRED.authority, "certificate has expired"),
        (certs_cluster.pair(at=NOW, names=["localhost"]), None, "Hostname mismatch"),
        (GOOD, b"", "the caller has no authority to trust"),
    ],
    ids=["stranger", "expired", "wrong name", "no bundle"],
)
def test_a_handshake_that_an_api_server_would_refuse_is_wrong(
    served: Pair, bundle: bytes | None, why: str, tmp_path: Path
) -> None:
    """The finding has the certificate, and why it is not trusted."""
    found = handshake(served, live(GOOD, served.authority if bundle is None else bundle), tmp_path)
    assert found.result is Result.WRONG
    assert why in found.detail
    assert pki.short_fingerprint(pki.read_certificates(served.certificate)[0]) in found.detail


@pytest.mark.parametrize(
    ("address", "asked", "result", "words"),
    [
        (Address("127.0.0.1", 1), True, Result.WRONG, "127.0.0.1:1: Connection refused"),
        (Address("127.0.0.1", 1), False, Result.NOTE, "can't be reached from here"),
        (None, False, Result.NOTE, "name that port with --connect"),
    ],
    ids=["asked", "not asked", "nowhere"],
)
def test_a_server_that_is_not_reached_is_wrong_only_where_one_was_named(
    address: Address | None,
    asked: bool,  # noqa: FBT001 - a column
    result: Result,
    words: str,
) -> None:
    """A laptop can't reach the Service, and that is not a problem."""
    found = run._handshake(live(GOOD, GOOD.authority), NAMES, address, asked=asked)
    assert found.result is result
    assert words in found.detail


def test_the_table_and_the_json_tell_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 1 if a check failed."""
    assert cli.main(["issue", "--dir", str(tmp_path)]) == 0
    capsys.readouterr()
    assert cli.main(["inspect", "--dir", str(tmp_path)]) == 0
    table = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    assert cli.main(["inspect", "--dir", str(tmp_path), "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["good"] is True
    assert [[each["result"], each["check"], each["detail"]] for each in told["findings"]] == table
    (tmp_path / "tls.key").unlink()
    assert cli.main(["inspect", "--dir", str(tmp_path)]) == 1
    assert "wrong  key          tls.key holds no private key" in capsys.readouterr().out


def test_a_file_that_can_not_be_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory in place of the file stands for any read error."""
    (tmp_path / "tls.crt").mkdir()
    assert cli.main(["inspect", "--dir", str(tmp_path)]) == 2
    assert "tls.crt: Is a directory; run this as a user who may read it" in capsys.readouterr().err
    (tmp_path / "tls.crt").rmdir()
    assert cli.main(["inspect", "--dir", str(tmp_path)]) == 1
    assert capsys.readouterr().out == "wrong  certificate  tls.crt does not exist or is empty\n"
