"""A listening address: connections, TLS, and how they end.

Who may connect for how long is bounded here; what is answered is routes' business. Invariant: stopping ends in time,
and answers every call in flight that comes to its end before that.

A client that keeps connections can't be told to go but by an answer: whoever closes an idle connection may do so while
a call is on its way, and Go's client does not repeat a POST. So `drain` closes nothing, and says `Connection: close` in
every answer; what is idle after it was idle for all of it, and `stop` closes that.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final, cast
from weakref import WeakSet

from aiohttp import web

from webhook.errors import UserError
from webhook.log import failure
from webhook.options import Address
from webhook.record import LOGGER
from webhook.serving.routes import DEFAULT_LIMITS, MAX_BODY_BYTES, Handler, Limits, refuse

_BACKLOG: Final = 512
_CLOSE_SECONDS: Final = 1.0  # for an answer to leave, once it is made
_NO_SECONDS: Final = 0.001  # aiohttp takes 0 for no limit at all
_LOOK_SECONDS: Final = 0.01  # between two looks at what is left while stopping
_HTTP_SERVER_ERROR: Final = 500


class _Protocol(web.RequestHandler):
    """aiohttp's, but a request that is no HTTP gets one sentence, and no traceback gets anywhere.

    It also says what is under way on it, from aiohttp's own state: the same that its keep-alive timer goes by.
    """

    __slots__ = ("__weakref__",)

    @property
    def unasked(self) -> bool:
        """It was accepted, its TLS handshake may still be under way, and no request was read on it."""
        return self._manager is not None and self._request_count == 0

    @property
    def idle(self) -> bool:
        """A request is waited for: no head was read, not even one whose handling has not begun yet."""
        return self._waiter is not None and not self._waiter.done()

    @property
    def busy(self) -> bool:
        """A request was read, and its answer is not all written."""
        task = self._task_handler
        return task is not None and not task.done() and not self.idle

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002 - aiohttp's signature
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to what aiohttp could not parse (400), or to an exception that should not be (500)."""
        if status < _HTTP_SERVER_ERROR:
            detail = (message or "malformed").strip().splitlines()[0][:200]
            return refuse(status, f"no valid HTTP request: {detail}")
        LOGGER.error("request failed", extra={"fields": failure(exc) if exc else {}})
        return refuse(status, "the request failed inside the server; its log says why")


class _Full(asyncio.Protocol):
    """What a connection beyond the last gets: nothing, at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hang up. uvloop's transport is one by its methods only, not by its class."""
        cast("asyncio.Transport", transport).abort()


class BadAddress(UserError):
    """An address that can't be listened on."""


class Listener:
    """One listening address with its HTTP server. Start it once, drain it, stop it once."""

    def __init__(self, handler: Handler, *, tls: ssl.SSLContext | None = None, limits: Limits = DEFAULT_LIMITS) -> None:
        self._loop = loop = asyncio.get_running_loop()

        def request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
            return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES)

        def connection() -> asyncio.Protocol:
            if len(self._http.connections) >= limits.connections:
                return _Full()
            accepted = _Protocol(
                self._http,
                loop=loop,
                keepalive_timeout=limits.keepalive_seconds,
                access_log=None,  # type: ignore[arg-type] # aiohttp takes None, its annotation does not say so
                auto_decompress=False,
            )
            self._accepted.add(accepted)
            return accepted

        self._http = web.Server(self._answer, request_factory=request)
        # aiohttp knows a connection from the end of its handshake, and hears of no handshake that failed: hence weak.
        self._accepted: WeakSet[_Protocol] = WeakSet()
        self._handler = handler
        self._draining = False
        self._connection = connection
        self._tls = tls
        self._limits = limits
        self._server: asyncio.Server | None = None

    async def start(self, address: Address) -> Address:
        """Listen, and return the address that it came to (a port of 0 becomes a real one).

        Raises:
            BadAddress: it is in use, not ours, or not allowed.
        """
        try:
            self._server = await self._loop.create_server(
                self._connection,
                address.host or None,
                address.port,
                ssl=self._tls,
                ssl_handshake_timeout=self._limits.handshake_seconds if self._tls else None,
                backlog=_BACKLOG,
            )
        except OSError as error:
            # asyncio words an address in use itself; the errno's own words are the ones that people search for.
            what = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
            raise BadAddress(f"can't listen on {address}: {what}; choose another address") from None
        host, port = self._server.sockets[0].getsockname()[:2]
        return Address(address.host or host, port)

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        response = await self._handler(request)
        if self._draining:
            response.force_close()
        return response

    def drain(self) -> None:
        """From now on each answer says `Connection: close`, and ends its connection. Everything else stays as it is.

        New connections are taken and answered: whoever has not heard yet that we go may still come. Requests that
        were pipelined behind such an answer are dropped, as RFC 9112 (9.6) asks; Go's client does not pipeline.
        """
        self._draining = True

    async def stop(self, grace_seconds: float) -> None:
        """Take no new connection, let calls in flight finish for up to `grace_seconds`, then close what is left.

        A connection that was accepted a moment ago is there for a call: that is waited for, for a moment, before what
        is idle is closed. aiohttp's own shutdown would stop reading the bodies that are still on their way.
        """
        end = self._loop.time() + grace_seconds
        self.drain()
        if self._server is not None:
            self._server.close()
        await self._until_none(
            lambda connection: connection.unasked, min(grace_seconds, self._limits.first_call_seconds)
        )
        for connection in self._accepted:
            if connection.idle:
                connection.force_close()
        in_time = await self._until_none(lambda connection: connection.busy, end - self._loop.time())
        await self._http.shutdown(_CLOSE_SECONDS if in_time else _NO_SECONDS)

    async def _until_none(self, still: Callable[[_Protocol], bool], seconds: float) -> bool:
        """Whether none is left in time."""
        try:
            async with asyncio.timeout(seconds):
                while any(map(still, self._accepted)):  # noqa: ASYNC110 - an event would be paid for by every call
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError:
            return False
        return True
