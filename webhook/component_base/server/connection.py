"""One connection: aiohttp's RequestHandler, and whether it is between two calls.

Only public methods of aiohttp and asyncio are used here. aiohttp closes a connection that has sent no complete head for
`keepalive_seconds`. API servers use Go's HTTP client (net/http/transport.go), which dials more connections than it uses
if many calls begin at the same time. It keeps the unused ones for up to 90 s, and its call is lost if such a connection
closes while the request is under way. So the first head has no shorter limit than the later ones.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Any, Final

from aiohttp import HttpVersion11, web
from msgspec import Struct

from webhook.component_base.log_line import failure
from webhook.component_base.server.application import SERVER

LOGGER: Final = logging.getLogger(__name__)
CLOSE_SECONDS: Final = 1.0  # for a finished answer to be sent, and for the rest of a body that nobody reads
_HTTP_SERVER_ERROR: Final = 500
MOST_HEAD_BYTES: Final = 16 * 1024
"""Of a call, and of what is sent behind it before its answer. aiohttp alone takes 128 lines of 8 KiB: with 1,024
connections that is 1 GiB, and twice as much in memory. An API server sends 1 KiB."""
_END_OF_HEAD: Final = b"\r\n\r\n"
_EXPECT: Final = "Expect"


class Limits(Struct, frozen=True, kw_only=True):
    """How many connections callers can have, and for how long they can use one."""

    keepalive_seconds: float = (
        120.0  # Go's client closes an idle connection after 90 s, and must be the first to close it
    )
    handshake_seconds: float = 10.0  # for which Go's client waits, too (TLSHandshakeTimeout)
    first_call_seconds: float = (
        1.0  # at the stop, for a client that has just connected: it dials in order to send a call
    )
    send_seconds: float = 30.0  # for a client to read an answer
    connections: int = 1024  # an API server uses few; the rest is for scans and mistakes


DEFAULT_LIMITS: Final = Limits()


class Connection(web.RequestHandler):
    """A connection that a listener has accepted.

    A request that is not valid HTTP gets one sentence. No answer has a traceback.

    Attributes:
        silent: no request was read on it. Its TLS handshake may still be under way.
        holds_body: the caller sends the body of its call once it is asked for it.
        idle: nothing was received since its last answer was written.
    """

    __slots__ = (
        "_accepted",
        "_allowed_bytes",
        "_behind_bytes",
        "_head_bytes",
        "_on_lost",
        "_send_seconds",
        "_tail",
        "holds_body",
        "idle",
        "silent",
    )

    def __init__(
        self, server: web.Server, accepted: socket.socket, limits: Limits, on_lost: Callable[[Connection], object]
    ) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=limits.keepalive_seconds,
            access_log=None,  # type: ignore[arg-type] # aiohttp accepts None, but its annotation does not
            auto_decompress=False,
            lingering_time=CLOSE_SECONDS,
        )
        self.silent = self.idle = True
        self._accepted = accepted
        self._send_seconds = limits.send_seconds
        self._on_lost = on_lost
        self.holds_body = False
        self._expect_head()

    def _expect_head(self) -> None:
        self._head_bytes: int | None = 0  # that came; None if its end came
        self._tail = b""  # of them, where the end can begin
        self._behind_bytes, self._allowed_bytes = 0, inf  # those that came behind the head, and that may come

    def begin(self, request: web.BaseRequest) -> None:
        """Note that a call was read: its head, and perhaps a part of its body."""
        self.silent = self.idle = False
        self._head_bytes, self._allowed_bytes = None, (request.content_length or 0) + MOST_HEAD_BYTES

    async def ask_for_body(self, request: web.BaseRequest) -> None:
        """Ask a caller for the body that it holds back. Another `Expect` means nothing (RFC 9110, 10.1.1)."""
        if self.holds_body:
            with suppress(ConnectionError):  # the caller has left: there will be no body
                await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0  # as in aiohttp's own handler: the answer has not begun

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Write the whole answer, and wait for `send_seconds` at most until the client has read it."""
        if self._behind_bytes > self._allowed_bytes:
            resp.force_close()
        self._expect_head()
        if resp.keep_alive is False:
            self._head_bytes = None  # aiohttp drops what still comes
        try:
            async with asyncio.timeout(self._send_seconds):  # a client that reads nothing must not hold a connection
                return await super().finish_response(request, resp, start_time)
        except TimeoutError:
            self.abort()
            return resp, True
        finally:
            self.idle = resp.keep_alive is not False  # otherwise aiohttp ends the connection

    def abort(self) -> None:
        """Close the connection at once. An event loop ends a connection, even in its handshake, with its socket."""
        with suppress(OSError):
            self._accepted.shutdown(socket.SHUT_RDWR)

    def data_received(self, data: bytes) -> None:
        """Note that a call may have begun. Close the connection if more comes than a head, or than a call."""
        self.idle = False
        end, head, came = -1, 0, data
        if self._head_bytes is None:
            self._behind_bytes += len(data)
        else:
            came = self._tail + data if self._head_bytes else data.lstrip(b"\r\n")  # empty lines do not end a head
            end = came.find(_END_OF_HEAD)
            self._head_bytes += len(came) - len(self._tail)
            self._tail = came[1 - len(_END_OF_HEAD) :]
            head = self._head_bytes if end < 0 else self._head_bytes - len(came) + end
        if head > MOST_HEAD_BYTES or self._behind_bytes > self._allowed_bytes:
            self.abort()
            return
        if end >= 0:
            self._behind_bytes, self._head_bytes = len(came) - end - len(_END_OF_HEAD), None
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell the listener after aiohttp has ended the connection."""
        super().connection_lost(exc)
        self._on_lost(self)

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002 - aiohttp's signature
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the answer to a request that aiohttp can't parse (400), or to an unexpected exception (500)."""
        if status < _HTTP_SERVER_ERROR:
            text = f"no valid HTTP request: {(message or 'malformed').strip().splitlines()[0][:200]}\n"
        else:
            LOGGER.error("request failed", extra={"fields": failure(exc) if exc else {}})
            text = "the request failed inside the server; its log says why\n"
        response = web.Response(status=status, text=text, headers={"Server": SERVER})
        response.force_close()
        return response


def without_expect(make: Any, message: Any, payload: Any, connection: Connection, *parts: Any) -> web.BaseRequest:
    """Return the request that `make` makes of a head and the rest, without the header Expect.

    aiohttp answers that header by itself, before it calls a middleware. `Connection.ask_for_body` does it. HTTP/1.0
    does not know the header.
    """
    waits = message.version >= HttpVersion11 and message.headers.get(_EXPECT, "").lower() == "100-continue"
    connection.holds_body = waits
    if _EXPECT in message.headers:
        headers = message.headers.copy()
        del headers[_EXPECT]
        message = message._replace(headers=headers)
    request: web.BaseRequest = make(message, payload, connection, *parts)
    return request
