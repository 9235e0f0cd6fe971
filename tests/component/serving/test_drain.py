"""Drain and stop: every caller gets an answer, and the server ends in time. Over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from support.drivers.http_calls import PATH, Reply, request
from support.fakes.api_server import until
from support.fakes.wire import Listening, Wire, listening
from support.waits import MAX_WAIT_SECONDS

from webhook.component_base.server.connection import DEFAULT_LIMITS, Connection, Limits
from webhook.serving.routes import DEFAULT_TIMEOUT_SECONDS, MARGIN, webhook_application

_SOON_SECONDS: Final = 0.05
_ROUNDING: Final = 1e-9  # uvloop's time is in whole milliseconds: the three times can be equal
CALL: Final = request(b"{}")
WAITING: Final = request(b"{}", expect="100-continue")
IMPATIENT: Final = Limits(first_call_seconds=_SOON_SECONDS)


class Gate:
    """An admission that signals when it is called, and answers when the test permits it."""

    def __init__(self, *, opened: bool = False) -> None:
        self.asked, self.go = asyncio.Event(), asyncio.Event()
        self.deadlines: list[float] = []
        if opened:
            self.go.set()

    async def admit(self, body: bytes, deadline: float) -> bytes:
        """Return the body, within the time limit."""
        self.deadlines.append(deadline)
        self.asked.set()
        await self.go.wait()
        return body


@asynccontextmanager
async def gated(
    directory: Path, limits: Limits = DEFAULT_LIMITS, *, opened: bool = False
) -> AsyncIterator[tuple[Gate, Listening]]:
    """Return a server whose admission is this gate."""
    gate = Gate(opened=opened)
    async with listening(webhook_application({PATH: gate.admit}), directory, limits) as server:
        yield gate, server


async def assert_last(reply: Reply, wire: Wire) -> None:
    """Check that the call was answered completely, with `Connection: close`, and that the connection ended."""
    assert (reply.status, reply.body, reply.headers.get("connection")) == (200, b"{}", "close")
    assert await wire.rest() == b""


async def test_while_draining_old_and_new_connections_are_answered_for_the_last_time(tmp_path: Path) -> None:
    """An idle connection stays open for its next call, and a new one is accepted. Both get `Connection: close`."""
    async with (
        gated(tmp_path, opened=True) as (_, server),
        await server.connect() as old,
        await server.connect() as quiet,
    ):
        assert (await old.ask(CALL)).headers.get("connection") != "close"
        assert (await quiet.ask(CALL)).status == 200
        server.listener.begin_drain()
        async with await server.connect() as new:
            await assert_last(await new.ask(CALL), new)
        await assert_last(await old.ask(CALL), old)
        await assert_last(await quiet.ask(CALL), quiet)


BEGUN: Final = {  # what was said, and whether the connection is set up, silent and idle then
    "a handshake to come": (None, (False, True, True)),
    "nothing said": (b"", (True, True, True)),
    "half a head": (CALL[:40], (True, True, False)),
    "half a body": (CALL[:-1], (True, False, False)),
}


@pytest.mark.parametrize("stops", [False, True], ids=["draining", "stopping"])
@pytest.mark.parametrize(("begun", "state"), BEGUN.values(), ids=BEGUN.keys())
async def test_what_had_begun_is_answered(
    tmp_path: Path,
    begun: bytes | None,
    state: tuple[bool, bool, bool],
    stops: bool,  # noqa: FBT001 - a row
) -> None:
    """A caller that connected before the stop gets an answer, however much of its first call had arrived."""
    async with gated(tmp_path, opened=True) as (_, server):
        async with await Wire.open(server.port, None if begun is None else server.trust) as wire:
            await wire.send(begun or b"")
            [connection] = await _connections(server)
            await until(lambda: (connection.transport is not None, connection.silent, connection.idle) == state)
            server.listener.begin_drain()
            stopping = asyncio.create_task(server.listener.stop(MAX_WAIT_SECONDS)) if stops else None
            if stopping:
                await asyncio.sleep(0)  # it no longer accepts
            if begun is None:
                await wire.secure(server.trust)
            await assert_last(await wire.ask(CALL[len(begun or b"") :]), wire)
        if stopping:
            await stopping


async def _connections(server: Listening) -> list[Connection]:
    await until(lambda: len(server.listener.connections) > 0)
    return list(server.listener.connections)


async def test_pipelined_calls_behind_the_last_answer_are_dropped(tmp_path: Path) -> None:
    """The first request is answered, the connection ends, and nothing follows `Connection: close`."""
    async with gated(tmp_path) as (gate, server), await server.connect() as wire:
        await wire.send(CALL * 40)
        await gate.asked.wait()
        server.listener.begin_drain()
        gate.go.set()
        await assert_last(await wire.reply(), wire)
        assert len(gate.deadlines) == 1


async def test_stopping_ends_what_is_idle_and_takes_nobody_new(tmp_path: Path) -> None:
    """A call in flight gets its answer, an idle connection is closed, and a new one is refused."""
    async with gated(tmp_path) as (gate, server), await server.connect() as busy, await server.connect() as idle:
        gate.go.set()
        assert (await idle.ask(CALL)).status == 200
        gate.go.clear()
        gate.asked.clear()
        await busy.send(CALL)
        await gate.asked.wait()
        stopping = asyncio.create_task(server.listener.stop(MAX_WAIT_SECONDS))
        assert await idle.rest() == b""
        with pytest.raises(ConnectionRefusedError):
            await server.connect()
        assert not stopping.done()
        gate.go.set()
        await assert_last(await busy.reply(), busy)
        await stopping


async def test_a_call_that_comes_in_the_turn_of_the_end_is_answered(tmp_path: Path) -> None:
    """A connection whose head was read is not idle, even if its handling has not begun."""
    async with gated(tmp_path, opened=True) as (_, server), await server.connect() as wire:
        await wire.ask(CALL)
        [connection] = server.listener.connections
        await until(lambda: connection.idle)
        connection.data_received(CALL)  # as the transport does, when the bytes come right before the loop turns to us
        await server.listener.stop(MAX_WAIT_SECONDS)
        await assert_last(await wire.reply(), wire)


async def test_a_body_in_flight_is_read_while_stopping(tmp_path: Path) -> None:
    """A call whose head came before the stop is answered, even if its body comes later."""
    async with gated(tmp_path, opened=True) as (_, server), await server.connect() as busy:
        assert (await busy.ask(WAITING[:-2])).status == 100  # the head was read, and the body is waited for
        stopping = asyncio.create_task(server.listener.stop(MAX_WAIT_SECONDS))
        await assert_last(await busy.ask(WAITING[-2:]), busy)
        await stopping


@pytest.mark.parametrize("secure", [True, False], ids=["connected", "in its handshake"])
async def test_a_connection_that_never_asks_is_not_waited_for(tmp_path: Path, secure: bool) -> None:  # noqa: FBT001 - a row
    """Its first call has `first_call_seconds`, and not the whole grace period."""
    async with (
        gated(tmp_path, IMPATIENT) as (_, server),
        await Wire.open(server.port, server.trust if secure else None) as wire,
    ):
        await until(lambda: len(server.listener.connections) == 1)
        async with asyncio.timeout(MAX_WAIT_SECONDS / 2):
            await server.listener.stop(MAX_WAIT_SECONDS)
        assert not secure or await wire.rest() == b""


@pytest.mark.parametrize("grace_seconds", [_SOON_SECONDS, 0], ids=["a little", "none"])
async def test_a_call_that_outlasts_the_grace_is_cut_off(tmp_path: Path, grace_seconds: float) -> None:
    """`stop` ends in time, whatever a call waits for. A grace period of 0 s does not mean no limit."""
    async with gated(tmp_path) as (gate, server), await server.connect() as busy, await server.connect():
        await busy.send(CALL)
        await gate.asked.wait()
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            await server.listener.stop(grace_seconds)
        assert await busy.rest() == b""
        gate.go.set()


TIMEOUTS: Final = {"?timeout=3s": 3.0, "?timeout=soon": DEFAULT_TIMEOUT_SECONDS, "": DEFAULT_TIMEOUT_SECONDS}


@pytest.mark.parametrize("url", [PATH, f"https://localhost{PATH}", "/mutate/virt%2dlauncher"], ids=str)
@pytest.mark.parametrize(("query", "timeout_seconds"), TIMEOUTS.items(), ids=ascii)
async def test_the_deadline_counts_from_the_head(tmp_path: Path, url: str, query: str, timeout_seconds: float) -> None:
    """The admission gets its deadline: the caller's timeout less the margin, from before the body was read."""
    async with gated(tmp_path, opened=True) as (gate, server), await server.connect() as wire:
        now = asyncio.get_running_loop().time
        whole = request(b"{}", head=f"POST {url}{query} HTTP/1.1", expect="100-continue")
        before = now()
        assert (await wire.ask(whole[:-2])).status == 100
        after = now()
        assert (await wire.ask(whole[-2:])).status == 200
    [deadline] = gate.deadlines
    assert before - _ROUNDING <= deadline - timeout_seconds * (1 - MARGIN) <= after + _ROUNDING
