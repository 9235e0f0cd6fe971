"""A listening address: connections, TLS, and how they end.

Who may connect for how long is bounded here; what is answered is routes' business. Invariant: stopping ends in time,
and answers every call in flight that comes to its end before that.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from typing import Any, Final

from aiohttp import web

from webhook.errors import UserError
from webhook.record import LOGGER
from webhook.serving.routes import DEFAULT_LIMITS, MAX_BODY_BYTES, Handler, Limits, refuse
from webhook.settings import Address

_BACKLOG: Final = 512
_CLOSE_SECONDS: Final = 1.0  # for an answer to leave, once it is made
_NO_SECONDS: Final = 0.001  # aiohttp takes 0 for no limit at all
_HTTP_SERVER_ERROR: Final = 500


class _Protocol(web.RequestHandler):
    """aiohttp's, but a request that is no HTTP gets one sentence, and no traceback gets anywhere."""

    __slots__ = ()

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
        LOGGER.error("request failed", extra={"fields": {"error": f"{type(exc).__name__}: {exc}"}})
        return refuse(status, "the request failed inside the server; its log says why")


class _Full(asyncio.Protocol):
    """What a connection beyond the last gets: nothing, at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hang up."""
        if isinstance(transport, asyncio.Transport):
            transport.abort()


class BadAddress(UserError):
    """An address that can't be listened on."""


class Listener:
    """One listening address with its HTTP server. Start it once, stop it once."""

    def __init__(self, handler: Handler, *, tls: ssl.SSLContext | None = None, limits: Limits = DEFAULT_LIMITS) -> None:
        loop = asyncio.get_running_loop()

        def request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
            return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES)

        def connection() -> asyncio.Protocol:
            if len(self._http.connections) >= limits.connections:
                return _Full()
            return _Protocol(
                self._http,
                loop=loop,
                keepalive_timeout=limits.keepalive_seconds,
                access_log=None,  # type: ignore[arg-type] # aiohttp takes None, its annotation does not say so
                auto_decompress=False,
            )

        self._http = web.Server(self._tracked, request_factory=request)
        self._handler = handler
        self._in_flight: set[object] = set()
        self._idle = asyncio.Event()
        self._stopping = False
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
            self._server = await asyncio.get_running_loop().create_server(
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

    async def _tracked(self, request: web.BaseRequest) -> web.Response:
        connection = request.protocol
        self._in_flight.add(connection)
        try:
            response = await self._handler(request)
        finally:
            self._in_flight.discard(connection)
            if self._stopping and not self._in_flight:
                self._idle.set()
        if self._stopping:
            response.force_close()
        return response

    async def stop(self, grace_seconds: float) -> None:
        """Take no new connection, let calls in flight finish for up to `grace_seconds`, then close what is left.

        Each answer from now on says `Connection: close`. aiohttp's own shutdown would stop reading the bodies that
        are still on their way.
        """
        self._stopping = True
        if self._server is not None:
            self._server.close()
        for connection in self._http.connections:
            if connection not in self._in_flight:
                connection.force_close()
        try:
            if self._in_flight:
                async with asyncio.timeout(grace_seconds):
                    await self._idle.wait()
            await self._http.shutdown(_CLOSE_SECONDS)
        except TimeoutError:
            await self._http.shutdown(_NO_SECONDS)
