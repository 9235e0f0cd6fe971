"""A listening address: connections, TLS, and how they end.

Who may connect for how long is bounded here; what is answered is routes' business. Invariant: stopping ends in time,
and answers every call in flight that comes to its end before that.

A client that keeps connections can't be told to go but by an answer: whoever closes an idle connection may do so while
a call is on its way, and Go's client does not repeat a POST. So `drain` closes nothing, and says `Connection: close` in
every answer; what is idle after it was idle for all of it, and `stop` closes that.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final, cast

from aiohttp import web

from webhook.component_base.address import Address
from webhook.serving.connection import CLOSE_SECONDS, Connection
from webhook.serving.places import Places
from webhook.serving.routes import DEFAULT_LIMITS, MAX_BODY_BYTES, Handler, Limits
from webhook.serving.sockets import listen
from webhook.telemetry.record import LOGGER

_ACCEPT_AT_ONCE: Final = 64  # of a flood; then whatever else there is to do has its turn
_NO_FILES_SECONDS: Final = 1.0  # as asyncio's own server has it (base_events.py, ACCEPT_RETRY_DELAY)
_NO_SECONDS: Final = 0.001  # aiohttp takes 0 for no limit at all
_LOOK_SECONDS: Final = 0.01  # between two looks at what is being closed


class Listener:
    """One listening address with its HTTP server. Start it once, drain it, stop it once."""

    def __init__(self, handler: Handler, *, tls: ssl.SSLContext | None = None, limits: Limits = DEFAULT_LIMITS) -> None:
        self._loop = loop = asyncio.get_running_loop()

        def request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
            return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES)

        self._http = web.Server(self._answer, request_factory=request)
        self.connections: Places[Connection] = Places(limits, loop.time)
        self._handler = handler
        self._draining = False
        self._tls = tls
        self._limits = limits
        self._sockets: list[socket.socket] = []
        self._joining: set[asyncio.Task[None]] = set()

    @property
    def listens(self) -> bool:
        """Whether it takes new connections."""
        return bool(self._sockets)

    async def start(self, address: Address) -> Address:
        """Listen, and return the address that it came to (a port of 0 becomes a real one).

        Raises:
            BadAddress: it is in use, not ours, or not allowed.
        """
        self._sockets = await listen(address)
        for each in self._sockets:
            self._loop.add_reader(each, self._accept, each)
        host, port = self._sockets[0].getsockname()[:2]
        return Address(address.host or host, port)

    def _accept(self, listening: socket.socket) -> None:
        """Take the connections that wait.

        Not by the loop's `create_server`: what it has accepted is not told of, and can't be closed, before the end of
        the handshake.
        """
        for _ in range(_ACCEPT_AT_ONCE):
            try:
                accepted, (host, *_) = listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                self._no_files(listening, error)
                return
            peer = self.connections.room(host)
            if peer is None:
                accepted.close()
                continue
            accepted.settimeout(0)
            connection = Connection(self._http, self.connections, accepted, peer, self._limits)
            self.connections.take(connection)
            task = self._loop.create_task(self._join(accepted, connection))
            self._joining.add(task)
            task.add_done_callback(self._joining.discard)

    def _no_files(self, listening: socket.socket, error: OSError) -> None:
        """The process can have no more sockets. One gives way, and whoever waits is taken when it is closed."""
        seconds = _LOOK_SECONDS
        if not self.connections.give_way():
            LOGGER.error("no connection can be taken", extra={"fields": {"because": error.strerror}})
            seconds = _NO_FILES_SECONDS
        self._loop.remove_reader(listening)
        self._loop.call_later(seconds, self._accept_again, listening)

    def _accept_again(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            self._loop.add_reader(listening, self._accept, listening)

    async def _join(self, accepted: socket.socket, connection: Connection) -> None:
        """Have the loop read and write it; with TLS, until the end of the handshake."""
        seconds = CLOSE_SECONDS if self._tls else None
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection, accepted, ssl=self._tls, ssl_shutdown_timeout=seconds
            )
        except OSError:  # it went, or its handshake failed: handshakes has told that
            connection.forget()
            accepted.close()

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        cast("Connection", request.protocol).asks()
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
        for each in self._sockets:
            self._loop.remove_reader(each)
            each.close()
        self._sockets = []
        await self._until_none(
            lambda connection: connection.unasked, min(grace_seconds, self._limits.first_call_seconds)
        )
        for connection in self.connections:
            if connection.idle:
                connection.force_close()
        in_time = await self._until_none(lambda connection: connection.busy, end - self._loop.time())
        await self._http.shutdown(CLOSE_SECONDS if in_time else _NO_SECONDS)
        for connection in self.connections:
            if not connection.made:
                connection.cut()

    async def _until_none(self, still: Callable[[Connection], bool], seconds: float) -> bool:
        """Whether none is left in time."""
        try:
            async with asyncio.timeout(seconds):
                while any(map(still, self.connections)):  # noqa: ASYNC110 - an event would be paid for by every call
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError:
            return False
        return True
