"""Large bodies, over real sockets: few are in work at a time, whatever callers send."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from support.drivers.http_calls import PATH, request
from support.fakes.api_server import until
from support.fakes.wire import listening

from webhook.serving.routes import LARGE_AT_ONCE, LARGE_BODY_BYTES, webhook_application

pytestmark = pytest.mark.slow


async def test_two_large_bodies_are_decided_at_a_time(tmp_path: Path) -> None:
    """A third waits for one of them, and no longer than its caller does; an ordinary call does not wait."""
    go, begun = asyncio.Event(), 0

    async def waits(body: bytes, _deadline: float) -> bytes:
        nonlocal begun
        if len(body) > LARGE_BODY_BYTES:
            begun += 1
            await go.wait()
        return body[:1]

    large = request(b"x" * (LARGE_BODY_BYTES + 1))
    async with listening(webhook_application({PATH: waits}), tmp_path) as server, AsyncExitStack() as wires:
        first, second, third = [await wires.enter_async_context(await server.connect()) for _ in range(3)]
        asked = [asyncio.create_task(wire.ask(large)) for wire in (first, second)]
        await until(lambda: begun == LARGE_AT_ONCE)
        assert (await server.ask(request(b"y"))).body == b"y"
        hurried = request(b"x" * (LARGE_BODY_BYTES + 1), head=f"POST {PATH}?timeout=1s HTTP/1.1")
        refused = await server.ask(hurried)
        assert (refused.status, refused.sentence) == (503, "2 calls of more than 131072 bytes are in work; call again")
        asked.append(asyncio.create_task(third.ask(large)))
        go.set()
        assert [(await each).body for each in asked] == [b"x"] * 3
