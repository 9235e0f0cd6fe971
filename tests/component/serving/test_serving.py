"""The webhook's HTTP side over real TLS sockets: a wrong call gets one sentence that says what is wrong."""

from __future__ import annotations

import asyncio
import json
import resource
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from pytest_aiohttp import AiohttpClient
from support.drivers.http_calls import PATH, request
from support.fakes.wire import Listening, listening
from yarl import URL

from webhook.core.api.admission_review import BadReview
from webhook.serving.routes import MAX_BODY_BYTES, webhook_application

_GIBIBYTE: Final = 1024**3
_CHUNK_BYTES: Final = 16 * 1024**2


async def count(body: bytes, _deadline: float) -> bytes:
    """Answer with the number of bytes. A body of `bad` can't be read."""
    if body == b"bad":
        raise BadReview("kind: got nothing, expected AdmissionReview")
    return json.dumps({"response": {"bytes": len(body)}}).encode()


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[Listening]:
    """A webhook whose admission is `count`."""
    async with listening(webhook_application({PATH: count}), tmp_path) as server:
        yield server


def gzip_bomb() -> bytes:
    """A gzip member of about a mebibyte that inflates to a gibibyte of zeros.

    A full flush makes the compressor forget what came before, so one chunk can be said again and again.
    """
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    chunk = deflate.compress(bytes(_CHUNK_BYTES)) + deflate.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08" + bytes(7) + chunk * (_GIBIBYTE // _CHUNK_BYTES) + deflate.flush()


JSON: Final = "application/json"
NO_LENGTH: Final = "got no Content-Length, expected the body's length in bytes"
REFUSED: Final[dict[str, tuple[str, dict[str, str], int, str]]] = {
    "path": ("POST /mutate", {}, 404, f"got path '/mutate', expected {PATH}"),
    "path with a newline": ("POST /a%0Ab", {}, 404, f"got path '/a\\nb', expected {PATH}"),
    "path above": (f"POST {PATH}/", {}, 404, f"got path '{PATH}/', expected {PATH}"),
    "method": (f"PUT {PATH}", {}, 405, "got PUT, expected POST"),
    "content type": (
        f"POST {PATH}",
        {"Content-Type": "text/yaml"},
        415,
        f"got Content-Type text/yaml, expected {JSON}",
    ),
}


@pytest.mark.parametrize(("line", "headers", "status", "sentence"), REFUSED.values(), ids=REFUSED)
async def test_a_refusal_is_its_status_and_one_sentence(
    aiohttp_client: AiohttpClient, line: str, headers: dict[str, str], status: int, sentence: str
) -> None:
    """405 has the header Allow, as RFC 9110 requires."""
    client = await aiohttp_client(webhook_application({PATH: count}))
    method, path = line.split()
    given = {"Content-Type": JSON, **headers}
    async with client.request(method, URL(path, encoded=True), data=b"{}", headers=given) as reply:
        assert (reply.status, await reply.text()) == (status, f"{sentence}\n")
        assert reply.headers.get("Allow") == ("POST" if status == 405 else None)


MISTAKES: Final = {
    "path of other bytes": (request(b"", head="POST /\xff HTTP/1.1"), 400, "no valid HTTP request: "),
    "no content type": (request(b"{}", content_type=None), 415, f"expected {JSON}"),
    "content type of other bytes": (request(b"{}", content_type="a/\xff"), 415, f"expected {JSON}"),
    "encoding of other bytes": (request(b"{}", content_encoding="\xff"), 415, "expected none"),
    "chunked": (
        request(b"2\r\n{}\r\n0\r\n\r\n", content_length=None, transfer_encoding="chunked"),
        411,
        NO_LENGTH,
    ),
    "no length": (request(b"", content_length=None), 411, NO_LENGTH),
    "too long, and never sent": (
        request(b"", content_length=str(MAX_BODY_BYTES + 1)),
        413,
        f"got {MAX_BODY_BYTES + 1} bytes, expected at most {MAX_BODY_BYTES}",
    ),
    "no review": (request(b"bad"), 400, "kind: got nothing, expected AdmissionReview"),
    "length and chunks": (request(b"", transfer_encoding="chunked"), 400, "no valid HTTP request: "),
    "header without end": (request(b"", x="y" * 10_000), 400, "no valid HTTP request: "),
}


@pytest.mark.parametrize(("data", "status", "sentence"), MISTAKES.values(), ids=MISTAKES.keys())
async def test_a_mistake_gets_its_status_and_one_sentence(
    server: Listening, data: bytes, status: int, sentence: str
) -> None:
    """Each wrong call gets the status for its mistake, and the next caller is served."""
    reply = await server.ask(data)
    assert reply.status == status
    assert sentence in reply.sentence
    assert (await server.ask(request(b"{}"))).response == {"bytes": 2}


async def test_a_refusal_ends_the_connection(server: Listening) -> None:
    """The body after a refused head is not read as the next request."""
    async with await server.connect() as wire:
        reply = await wire.ask(request(request(b"{}"), content_type="text/plain"))
        assert (reply.status, reply.headers["connection"]) == (415, "close")
        assert await wire.rest() == b""


async def test_a_gzip_bomb_takes_no_memory(server: Listening) -> None:
    """A mebibyte that inflates to a gibibyte is refused without inflating it."""
    bomb = gzip_bomb()
    inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    assert len(bomb) < 2 * 1024**2
    assert len(inflate.decompress(bomb, _CHUNK_BYTES)) == _CHUNK_BYTES
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reply = await server.ask(request(bomb, content_encoding="gzip"))
    assert (reply.status, "expected none" in reply.sentence) == (415, True)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # KiB


@pytest.mark.parametrize("size", [0, 1, 16 * 1024, 16 * 1024 + 1, 21_000, MAX_BODY_BYTES], ids=str)
async def test_a_body_up_to_the_limit_is_read_whole(server: Listening, size: int) -> None:
    """Bodies of any length up to 3 MiB and an envelope arrive complete, across TLS records."""
    assert (await server.ask(request(b"x" * size))).response == {"bytes": size}


ACCEPTED: Final = {
    "a charset": request(b"{}", content_type="application/json; charset=utf-8"),
    "upper case": request(b"{}", content_type="Application/JSON"),
    "identity": request(b"{}", content_encoding="identity"),
    "the API server's timeout": request(b"{}", head=f"POST {PATH}?timeout=10s HTTP/1.1"),
    "HTTP/1.0": request(b"{}", head=f"POST {PATH} HTTP/1.0"),
    "HTTP/1.0, which knows no Expect": request(b"{}", head=f"POST {PATH} HTTP/1.0", expect="100-continue"),
    "an absolute URL": request(b"{}", head=f"POST https://localhost{PATH} HTTP/1.1"),
}


@pytest.mark.parametrize("data", ACCEPTED.values(), ids=ACCEPTED.keys())
async def test_a_call_in_another_form_is_served(server: Listening, data: bytes) -> None:
    """HTTP that the API server does not use today is still accepted."""
    assert (await server.ask(data)).response == {"bytes": 2}


async def test_an_answer_says_nothing_of_the_software(server: Listening) -> None:
    """The Server header has the name of the program, without libraries and versions."""
    for data in (request(b"{}"), request(b"bad"), b"garbage\r\n\r\n"):
        assert (await server.ask(data)).headers["server"] == "kubevirt-coschedule"


async def test_pipelined_calls_are_answered_in_order(server: Listening) -> None:
    """Requests sent together are answered one by one, even more than the parser holds, and also after a bad one."""
    async with await server.connect() as wire:
        await wire.send(b"".join(request(b"x" * size) for size in range(100)) + request(b"bad") + request(b"{}"))
        for size in range(100):
            assert (await wire.reply()).response == {"bytes": size}
        assert (await wire.reply()).status == 400
        assert (await wire.reply()).response == {"bytes": 2}


async def test_expect_100_continue_is_answered_before_the_body(server: Listening) -> None:
    """A caller with `Expect: 100-continue` gets the interim answer, then its answer."""
    async with await server.connect() as wire:
        whole = request(b"{}", expect="100-continue")
        assert (await wire.ask(whole[:-2])).status == 100
        assert (await wire.ask(whole[-2:])).response == {"bytes": 2}


@pytest.mark.parametrize("expect", ["100-continue", "other", "\xff"])
@pytest.mark.parametrize(("line", "status"), [("POST /mutate", 404), (f"GET {PATH}", 405), (f"POST {PATH}", 200)])
async def test_what_a_caller_expects_changes_no_answer(
    server: Listening, line: str, status: int, expect: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither on a path without a call. The answer is the program's own, and no error in the log."""
    async with await server.connect() as wire:
        await wire.send(request(b"{}", head=f"{line} HTTP/1.1", expect=expect))
        if expect == "100-continue":
            assert (await wire.reply()).status == 100
        reply = await wire.reply()
    assert (reply.status, reply.headers["server"]) == (status, "kubevirt-coschedule")
    assert [record.message for record in caplog.records] == []


@pytest.mark.parametrize(
    "data", [request(b"x" * 30_000)[:-10_000], request(b"", content_length="9", expect="100-continue")]
)
async def test_a_caller_that_goes_away_in_its_body_is_forgotten(
    server: Listening, caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    """Half a body and then nothing: no answer, no error in the log, and the next caller is served."""
    async with await server.connect() as wire:
        await wire.send(data)
    assert (await server.ask(request(b"{}"))).status == 200
    assert [record.message for record in caplog.records] == []


async def test_http_1_1_is_what_alpn_settles_on(server: Listening) -> None:
    """A caller that prefers HTTP/2 gets HTTP/1.1. A caller without a common protocol is still served."""
    for offered, settled in ((["h2", "http/1.1"], "http/1.1"), (["h2"], None)):
        server.trust.set_alpn_protocols(offered)
        _, writer = await asyncio.open_connection(
            "127.0.0.1", server.port, ssl=server.trust, server_hostname="localhost"
        )
        assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == settled
        writer.transport.abort()
