"""The limits for callers, and a failure inside the webhook: over real sockets."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

import pytest
from support.drivers.http_calls import PATH, request
from support.fakes.wire import Wire, listening

from webhook.component_base.server.connection import Limits
from webhook.serving.routes import webhook_application

pytestmark = pytest.mark.slow

_SOON_SECONDS: Final = 0.05
_LATER_SECONDS: Final = 0.5  # where something has to come before, on a busy machine too


async def same(body: bytes, _deadline: float) -> bytes:
    """Return the body as the answer."""
    return body


BEGINNINGS: Final = {
    "silence": b"",
    "half a request line": b"POST /mut",
    "half the headers": request(b"{}")[:40],
}


@pytest.mark.parametrize("again", [False, True], ids=["at first", "after an answer"])
@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS.keys())
async def test_a_connection_without_a_request_is_closed(tmp_path: Path, beginning: bytes, again: bool) -> None:  # noqa: FBT001 - a row
    """A caller that never completes a head is disconnected after the keepalive time."""
    limits = Limits(keepalive_seconds=_LATER_SECONDS if again else _SOON_SECONDS)
    async with listening(webhook_application({PATH: same}), tmp_path, limits) as server, await server.connect() as wire:
        if again:
            assert (await wire.ask(request(b"{}"))).status == 200
        await wire.send(beginning)
        assert await wire.rest() == b""


@pytest.mark.parametrize("sent", [0, 1, 20_000], ids=str)
async def test_a_body_that_does_not_come_is_waited_for_no_longer(tmp_path: Path, sent: int) -> None:
    """The status is 408 after the time for a body, even if a part has arrived."""
    app = webhook_application({PATH: same}, body_seconds=_SOON_SECONDS)
    async with listening(app, tmp_path) as server:
        whole = request(b"x" * 40_000)
        reply = await server.ask(whole[: len(whole) - 40_000 + sent])
        assert (reply.status, reply.headers["connection"]) == (408, "close")
        assert reply.sentence == "the body did not come within 0.05 s"


async def test_a_caller_that_reads_nothing_is_cut_off(tmp_path: Path) -> None:
    """Its answers fill the buffers, and then one is waited for. The connection ends after the time for an answer."""
    limits = Limits(send_seconds=_SOON_SECONDS)
    async with listening(webhook_application({PATH: same}), tmp_path, limits) as server:
        async with await server.connect() as wire:
            with suppress(ConnectionError):
                while True:
                    await wire.send(request(b"x" * 40_000))
        assert (await server.ask(request(b"{}"))).status == 200


async def test_a_handshake_that_does_not_come_is_waited_for_no_longer(tmp_path: Path) -> None:
    """A connection that never starts TLS is closed."""
    limits = Limits(handshake_seconds=_SOON_SECONDS)
    handler = webhook_application({PATH: same})
    async with listening(handler, tmp_path, limits) as server, await Wire.open(server.port) as wire:
        assert await wire.rest() == b""


@pytest.mark.parametrize("again", [False, True], ids=["at first", "after an answer"])
async def test_a_head_that_comes_byte_by_byte_is_cut_off(tmp_path: Path, again: bool) -> None:  # noqa: FBT001 - a row
    """More bytes do not extend the time of a head, neither of the first nor of a later one."""
    limits = Limits(keepalive_seconds=_LATER_SECONDS)
    async with listening(webhook_application({PATH: same}), tmp_path, limits) as server, await server.connect() as wire:
        if again:
            assert (await wire.ask(request(b"{}"))).status == 200
        dribbling = asyncio.create_task(_dribble(wire))
        assert await wire.rest() == b""
        dribbling.cancel()


async def _dribble(wire: Wire) -> None:
    with suppress(ConnectionError):
        await wire.send(b"GET / HTTP/1.1\r\nX: ")
        while True:
            await wire.send(b"x")
            await asyncio.sleep(_LATER_SECONDS / 20)  # the caller sends slowly: that is the subject of the test


_MANY_FIELDS: Final = b"".join(b"X-%d: %s\r\n" % (number, b"x" * 4_000) for number in range(5))
_LONG_HEADS: Final = {
    "half": b"GET / HTTP/1.1\r\n" + _MANY_FIELDS,
    "whole": b"GET / HTTP/1.1\r\n" + _MANY_FIELDS + b"\r\n",
    "after empty lines": b"\r\n\r\nGET / HTTP/1.1\r\n" + _MANY_FIELDS,
}


@pytest.mark.parametrize("again", [False, True], ids=["at first", "after an answer"])
@pytest.mark.parametrize("head", _LONG_HEADS.values(), ids=_LONG_HEADS)
async def test_a_head_of_more_than_16_kib_ends_the_connection(
    tmp_path: Path,
    head: bytes,
    again: bool,  # noqa: FBT001 - a row
) -> None:
    """The server does not wait for its end: aiohttp alone would take 1 MiB of each connection."""
    async with listening(webhook_application({PATH: same}), tmp_path) as server, await server.connect() as wire:
        if again:
            assert (await wire.ask(request(b"x" * 40_000))).status == 200
        with suppress(ConnectionError):
            await wire.send(head[:3])
            await wire.send(head[3:])
        assert b" 200 " not in await wire.rest()


async def test_what_is_sent_behind_a_call_is_bounded_too(tmp_path: Path) -> None:
    """The connection ends, after the answer to the call or before it."""
    async with listening(webhook_application({PATH: same}), tmp_path) as server, await server.connect() as wire:
        await wire.send(request(b"1") + _LONG_HEADS["half"])
        assert (await wire.rest()).count(b"HTTP/1.1") <= 1


async def test_an_api_servers_spare_connection_is_left_alone(tmp_path: Path) -> None:
    """A connection may be silent for longer than a handshake may take: Go's client dials some for later."""
    app, limits = webhook_application({PATH: same}), Limits(handshake_seconds=_LATER_SECONDS)
    async with listening(app, tmp_path, limits) as server, await server.connect() as spare:
        async with await Wire.open(server.port) as raw:
            assert await raw.rest() == b""
        assert (await spare.ask(request(b"1"))).body == b"1"


async def test_a_new_connection_takes_the_place_of_an_unused_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """First of the oldest without a request, then of the one that is idle for longest. A call in flight stays."""
    gate, asked, limits = asyncio.Event(), asyncio.Event(), Limits(connections=5)

    async def waits(body: bytes, _deadline: float) -> bytes:
        asked.set()
        await gate.wait()
        return body

    async with (
        AsyncExitStack() as stack,
        listening(webhook_application({PATH: same, "/wait": waits}), tmp_path, limits) as server,
        await server.connect() as busy,
        await server.connect() as used,
        await server.connect() as idle,
        await Wire.open(server.port) as raw,
        await server.connect() as silent,
    ):
        await busy.send(request(b"1", head="POST /wait HTTP/1.1"))
        await asked.wait()
        for each in (used, idle, used):
            assert (await each.ask(request(b"2"))).body == b"2"
        for gone in (raw, silent, idle, used):
            new = await stack.enter_async_context(await server.connect())
            assert (await new.ask(request(b"3"))).body == b"3"
            assert await gone.rest() == b""
        gate.set()
        assert (await busy.reply()).body == b"1"
    [line] = caplog.records
    assert (line.getMessage(), vars(line)["fields"]) == ("too many connections", {"held": 5, "closed_so_far": 0})


async def test_a_new_connection_is_refused_if_all_have_calls_in_flight(tmp_path: Path) -> None:
    """Until one call is answered."""
    asked, gate, limits = asyncio.Semaphore(0), asyncio.Event(), Limits(connections=2)

    async def waits(body: bytes, _deadline: float) -> bytes:
        asked.release()
        await gate.wait()
        return body

    async with (
        listening(webhook_application({PATH: waits}), tmp_path, limits) as server,
        await server.connect() as first,
        await server.connect() as second,
    ):
        for each in (first, second):
            await each.send(request(b"1"))
            await asked.acquire()
        async with await Wire.open(server.port) as refused:
            assert await refused.rest() == b""
        gate.set()
        assert (await first.reply()).body == b"1"
        async with await server.connect() as new:
            assert (await new.ask(request(b"2"))).body == b"2"
