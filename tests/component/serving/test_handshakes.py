"""Failed handshakes are logged with their meaning, and counted, because no other part reports them."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from support.control_plane.mounted import MINUTE, NOON, SECOND, Authority, Clock, Mounted, shake_hands
from support.drivers.http_calls import request
from support.drivers.serving import Client
from support.fakes.wire import Wire, echoing
from support.waits import MAX_WAIT_SECONDS

from webhook.serving.certificate import ServingCertificate
from webhook.serving.tls import Handshakes, TLSFiles, load

INVALID: Final = "the caller's certificate is not issued by --client-ca-file, or is not valid"
CALL: Final = request(b"{}")
OURS: Final = Authority()
CALLERS: Final = Authority()
STRANGERS: Final = Authority()


def asking_for_certificates(mounted: Mounted) -> TLSFiles:
    """The webhook's pair, and the authority of callers."""
    mounted.put({**OURS.issue().payload, "client-ca.crt": CALLERS.pem})
    directory = mounted.directory
    return TLSFiles(
        cert_file=directory / "tls.crt",
        key_file=directory / "tls.key",
        client_ca_file=directory / "client-ca.crt",
    )


def _old(directory: Path) -> ssl.SSLContext:
    context = OURS.trust(CALLERS.issue(), directory)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def _fail(port: int, trust: ssl.SSLContext) -> None:
    """Make a call that fails. Event loops send no alert when they refuse a certificate; sockets and Go do."""
    with pytest.raises((OSError, EOFError)), Client(port, trust) as client:
        client.ask(CALL)


Caller = Callable[[Path], ssl.SSLContext]
FAILING: Final[dict[str, tuple[Caller, str, str]]] = {
    "no certificate": (
        lambda _: OURS.trust(),
        "PEER_DID_NOT_RETURN_A_CERTIFICATE",
        "the caller sent no certificate, and --client-ca-file requires one",
    ),
    "another authority's certificate": (
        lambda directory: OURS.trust(STRANGERS.issue(), directory),
        "CERTIFICATE_VERIFY_FAILED",
        f"{INVALID}: unable to get local issuer certificate",
    ),
    "a certificate of our own serving authority": (
        lambda directory: OURS.trust(OURS.issue(), directory),
        "CERTIFICATE_VERIFY_FAILED",
        f"{INVALID}: self-signed certificate in certificate chain",
    ),
    "expired certificate": (
        lambda directory: OURS.trust(CALLERS.issue(not_after=datetime(2020, 1, 1, tzinfo=UTC)), directory),
        "CERTIFICATE_VERIFY_FAILED",
        f"{INVALID}: certificate has expired",
    ),
    "a caller who trusts another": (
        lambda directory: STRANGERS.trust(CALLERS.issue(), directory),
        "TLSV1_ALERT_UNKNOWN_CA",
        "the caller does not trust the webhook's certificate: compare caBundle with its issuer",
    ),
    "old TLS": (
        _old,
        "UNSUPPORTED_PROTOCOL",
        "the caller does not support the TLS version that --tls-min-version requires",
    ),
}


@pytest.mark.parametrize(("caller", "reason", "because"), FAILING.values(), ids=FAILING)
async def test_a_handshake_that_fails_is_said_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, caller: Caller, reason: str, because: str
) -> None:
    """The line has the meaning, and the next caller is answered."""
    mounted = Mounted(tmp_path / "tls")
    certificate = ServingCertificate(asking_for_certificates(mounted))
    async with echoing(certificate, OURS.trust()) as server, asyncio.timeout(MAX_WAIT_SECONDS):
        await asyncio.to_thread(_fail, server.port, caller(tmp_path))
        async with await Wire.open(server.port, OURS.trust(CALLERS.issue(), tmp_path)) as wire:
            assert (await wire.ask(CALL)).status == 200
    (record,) = (each for each in caplog.records if each.name == "webhook")
    assert (record.levelname, record.getMessage()) == ("WARNING", "handshake failed")
    assert vars(record)["fields"] == {"reason": reason, "because": because, "so_far": 1}
    assert certificate.handshakes.failures == {reason: 1}


async def test_a_caller_without_tls_is_said_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An API server never does that, but a user with curl can."""
    certificate = ServingCertificate(asking_for_certificates(Mounted(tmp_path / "tls")))
    async with echoing(certificate, OURS.trust()) as server, await Wire.open(server.port) as wire:
        await wire.send(CALL)
        assert await wire.rest() == b""
    (record,) = (each for each in caplog.records if each.name == "webhook")
    assert vars(record)["fields"]["because"] == "the caller speaks plain HTTP"


def test_a_reason_is_said_once_a_minute_and_always_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A caller that tries again and again does not fill the log."""
    files = asking_for_certificates(Mounted(tmp_path / "tls"))
    context, _ = load(files, files.read(), datetime.now(UTC))
    clock = Clock()
    handshakes = Handshakes(clock)
    caplog.set_level(logging.WARNING)
    for clock.now in (NOON, NOON + SECOND, NOON + MINUTE - SECOND, NOON + MINUTE):
        for trust in (STRANGERS.trust(), OURS.trust()):
            with pytest.raises(ssl.SSLError) as failed:
                shake_hands(context, trust)
            handshakes.note(failed.value)
    assert [vars(record)["fields"]["so_far"] for record in caplog.records] == [1, 1, 4, 4]
    assert set(handshakes.failures.values()) == {4}
