"""What callers may take of time and connections, and how the server ends: over real sockets, with small limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import builders
import pytest
import pytest_asyncio
from serving import request
from wire import Wire, listening

from webhook import app
from webhook.core.placement import Policy
from webhook.record import AdmissionRecord, JSONFormatter
from webhook.serving.routes import Limits, health_handler, webhook_handler
from webhook.serving.server import Listener
from webhook.settings import Address

_SOON_SECONDS: Final = 0.05
_PATIENCE_SECONDS: Final = 10.0


async def same(body: bytes) -> bytes:
    """The body itself, in place of an admission."""
    return body


BEGINNINGS: Final = {
    "silence": b"",
    "half a request line": b"POST /mut",
    "half the headers": request(b"{}")[:40],
}


@pytest.mark.parametrize("again", [False, True], ids=["at first", "after an answer"])
@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS.keys())
async def test_a_connection_without_a_request_is_closed(tmp_path: Path, beginning: bytes, again: bool) -> None:  # noqa: FBT001 - a row
    """Whoever connects, or stays, and never finishes a head is hung up on after the keep-alive time."""
    limits = Limits(keepalive_seconds=_SOON_SECONDS)
    async with listening(webhook_handler(same), tmp_path, limits) as server, await server.connect() as wire:
        if again:
            assert (await wire.ask(request(b"{}"))).status == 200
        await wire.send(beginning)
        assert await wire.rest() == b""


@pytest.mark.parametrize("sent", [0, 1, 20_000], ids=str)
async def test_a_body_that_does_not_come_is_waited_for_no_longer(tmp_path: Path, sent: int) -> None:
    """408 after the time that a body may take, however much of it came."""
    limits = Limits(body_seconds=_SOON_SECONDS)
    async with listening(webhook_handler(same, limits), tmp_path, limits) as server:
        whole = request(b"x" * 40_000)
        reply = await server.ask(whole[: len(whole) - 40_000 + sent])
        assert (reply.status, reply.headers["connection"]) == (408, "close")
        assert reply.sentence == "the body did not come within 0.05 s"


async def test_a_handshake_that_does_not_come_is_waited_for_no_longer(tmp_path: Path) -> None:
    """A connection that never speaks TLS is hung up on."""
    limits = Limits(handshake_seconds=_SOON_SECONDS)
    async with listening(webhook_handler(same), tmp_path, limits) as server, await Wire.open(server.port) as wire:
        assert await wire.rest() == b""


async def test_bodies_that_are_read_at_once_are_bounded(tmp_path: Path) -> None:
    """A call beyond the room is told to come again; a body that was read, or given up, makes room."""
    limits = Limits(bodies_bytes=5)
    async with listening(webhook_handler(same, limits), tmp_path, limits) as server:
        whole = request(b"1234", expect="100-continue")
        async with await server.connect() as slow, await server.connect() as gone:
            assert (await slow.ask(whole[:-4])).status == 100  # its body is waited for
            refused = await server.ask(request(b"12"))
            assert (refused.status, refused.sentence) == (503, "5 bytes of other calls are being read; call again")
            assert (await gone.ask(request(b"1"))).status == 200
            assert (await slow.ask(whole[-4:])).body == b"1234"
        assert (await server.ask(request(b"12345"))).status == 200


async def test_connections_are_counted(tmp_path: Path) -> None:
    """The connection beyond the last is hung up on at once; one that ends makes room."""
    limits = Limits(connections=2)
    async with listening(webhook_handler(same), tmp_path, limits) as server:
        async with await server.connect() as first, await server.connect() as second:
            assert (await first.ask(request(b"1"))).body == b"1"
            assert (await second.ask(request(b"2"))).body == b"2"
            async with await server.connect() as third:
                assert await third.rest() == b""
            assert (await first.ask(request(b"3"))).body == b"3"
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while not await _answers(server.connect()):
                pass  # the server hears of the two hang-ups in its own time


async def _answers(connecting: Any) -> bool:
    try:
        async with await connecting as wire:
            return bool((await wire.ask(request(b"4"))).body == b"4")
    except (EOFError, ConnectionError):
        return False


class Gate:
    """An admission that says when it was asked, and answers when it is told to."""

    def __init__(self) -> None:
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def admit(self, body: bytes) -> bytes:
        """The body, in time."""
        self.asked.set()
        await self.go.wait()
        return body


async def test_a_call_in_flight_is_answered_while_draining(tmp_path: Path) -> None:
    """Stopping refuses new connections and ends idle ones, and still answers what was asked before."""
    gate = Gate()
    async with (
        listening(webhook_handler(gate.admit), tmp_path) as server,
        await server.connect() as busy,
        await server.connect() as idle,
    ):
        await busy.send(request(b"{}"))
        await gate.asked.wait()
        stopping = asyncio.create_task(server.listener.stop(_PATIENCE_SECONDS))
        assert await idle.rest() == b""
        with pytest.raises(ConnectionRefusedError):
            await server.connect()
        assert not stopping.done()
        gate.go.set()
        assert (await busy.reply()).body == b"{}"
        assert await busy.rest() == b""
        await stopping


async def test_an_answer_while_draining_says_that_it_is_the_last(tmp_path: Path) -> None:
    """With `Connection: close` a client does not send its next call into a closing connection."""
    gate = Gate()
    async with listening(webhook_handler(gate.admit), tmp_path) as server, await server.connect() as busy:
        await busy.send(request(b"{}"))
        await gate.asked.wait()
        stopping = asyncio.create_task(server.listener.stop(_PATIENCE_SECONDS))
        gate.go.set()
        assert (await busy.reply()).headers.get("connection") == "close"
        await stopping


async def test_a_body_in_flight_is_read_while_draining(tmp_path: Path) -> None:
    """A call whose head came before the end is answered, though its body comes after."""
    async with listening(webhook_handler(same), tmp_path) as server, await server.connect() as busy:
        whole = request(b"{}", expect="100-continue")
        assert (await busy.ask(whole[:-2])).status == 100  # the head was read, and the body is waited for
        stopping = asyncio.create_task(server.listener.stop(_PATIENCE_SECONDS))
        assert (await busy.ask(whole[-2:])).body == b"{}"
        await stopping


async def test_a_call_that_outlasts_the_grace_is_cut_off(tmp_path: Path) -> None:
    """Stopping ends in time, whatever a call waits for."""
    gate = Gate()
    async with listening(webhook_handler(gate.admit), tmp_path) as server, await server.connect() as busy:
        await busy.send(request(b"{}"))
        await gate.asked.wait()
        await server.listener.stop(_SOON_SECONDS)
        assert await busy.rest() == b""


async def test_stopping_without_grace_waits_for_nobody(tmp_path: Path) -> None:
    """A grace of no seconds is none, and not for ever."""
    gate = Gate()
    async with listening(webhook_handler(gate.admit), tmp_path) as server, await server.connect() as busy:
        await busy.send(request(b"{}"))
        await gate.asked.wait()
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS / 10):
                await server.listener.stop(0)
        finally:
            gate.go.set()
        assert await busy.rest() == b""


HEALTH: Final = {
    "alive": ("GET /healthz", True, 200, "ok"),
    "alive while draining": ("GET /healthz", False, 200, "ok"),
    "ready": ("GET /readyz", True, 200, "ok"),
    "draining": ("GET /readyz", False, 503, "shutting down"),
    "with a query": ("GET /readyz?verbose", True, 200, "ok"),
    "other path": ("GET /metrics", True, 404, "got path '/metrics', expected /healthz or /readyz"),
    "other method": ("POST /healthz", True, 405, "got POST, expected GET"),
    "no HTTP": ("garbage", True, 400, "no valid HTTP request: "),
}


@pytest_asyncio.fixture
async def health(request: pytest.FixtureRequest) -> AsyncIterator[Address]:
    """A health listener, its readiness given by the test's row."""
    ready = request.node.callspec.params["ready"]
    listener = Listener(health_handler(lambda: ready))
    yield await listener.start(Address("127.0.0.1", 0))
    await listener.stop(_SOON_SECONDS)


@pytest.mark.parametrize(("line", "ready", "status", "sentence"), HEALTH.values(), ids=HEALTH.keys())
async def test_health(health: Address, line: str, ready: bool, status: int, sentence: str) -> None:  # noqa: ARG001, FBT001 - a row
    """Health is plain HTTP: alive as long as it answers, ready as long as calls are taken."""
    async with await Wire.open(health.port) as wire:
        reply = await wire.ask(f"{line} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert reply.status == status
    assert reply.sentence.startswith(sentence)


async def test_health_answers_a_head_without_a_body() -> None:
    """HEAD is a GET whose body is not sent."""
    listener = Listener(health_handler(lambda: True))
    address = await listener.start(Address("127.0.0.1", 0))
    async with await Wire.open(address.port) as wire:
        await wire.send(b"HEAD /healthz HTTP/1.0\r\n\r\n")
        head, _, body = (await wire.rest()).partition(b"\r\n\r\n")
    assert (head.split(b" ")[1], body) == (b"200", b"")
    await listener.stop(_SOON_SECONDS)


class BrokenView:
    """A cluster whose every question fails."""

    def __getattr__(self, question: str) -> Any:
        raise RuntimeError(f"no {question}\nat all")


async def test_a_failure_of_ours_admits_the_pod_unchanged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The VM starts, the answer says why nothing was done, and the log has the error in one line."""
    noted: list[AdmissionRecord] = []
    admit = app.admitter(BrokenView(), Policy(), noted.append)  # type: ignore[arg-type] # that is the point
    review = builders.review(builders.virt_launcher_pod(claims=["disk"]))
    async with listening(webhook_handler(admit), tmp_path) as server:
        reply = await server.ask(request(json.dumps(review).encode()))
    assert b"Traceback" not in reply.body
    assert reply.response["allowed"] is True
    assert reply.response["uid"] == review["request"]["uid"]
    assert reply.response["auditAnnotations"]["decision"] == "unchanged"
    assert reply.response["auditAnnotations"]["reason"] == "InternalError"
    assert reply.response.keys().isdisjoint({"patch", "patchType"})
    [failure] = [JSONFormatter().format(record) for record in caplog.records]
    assert "\n" not in failure
    assert json.loads(failure)["error"] == "RuntimeError: no persistent_volume_claim\nat all"
    assert any(place.startswith("claims.py:") for place in json.loads(failure)["at"])
    assert [record.reason for record in noted] == ["InternalError"]
