"""A listening address: it accepts connections, drains them and stops.

aiohttp makes the HTTP server of an application. Its sites count a connection only after its TLS handshake, and have no
limit for that. So this module accepts connections itself, and limits their number and the time of their handshakes.
Invariant: `stop` ends in time, and every call in flight that ends before that gets its answer.

Only an answer can ask a client to leave. If the server closes an idle connection, a call may already be on its way, and
Go's client does not repeat a POST. So `begin_drain` closes no connection, and adds `Connection: close` to every answer.
`stop` closes the connections that stayed idle until then.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

from aiohttp import web

from webhook.component_base.errors import UserError
from webhook.component_base.log_line import OnceAMinute
from webhook.component_base.options import Address
from webhook.component_base.server.connection import CLOSE_SECONDS, DEFAULT_LIMITS, Connection, Limits, without_expect

LOGGER: Final = logging.getLogger(__name__)
_NO_FILES_SECONDS: Final = 1.0  # as in asyncio's own server (base_events.py, ACCEPT_RETRY_DELAY)
_NO_SECONDS: Final = 0.001  # for aiohttp a timeout of 0 means no timeout
_POLL_SECONDS: Final = 0.01  # between two checks whether connections have ended
_FLOOD: Final = "too many connections"
_BACKLOG: Final = 512
_FILES: Final = 65_536  # many times what two listeners and the connections to the API server need


class BadAddress(UserError):
    """An address that can't be listened on."""


def allow_files() -> None:
    """Raise this process's limit of open files. Containers often start with 1,024, and one listener can use all."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _listen(address: Address) -> socket.socket:
    """Return a listening socket; without a host it is for every interface, of IPv6 and of IPv4."""
    both = not address.host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both or ":" in address.host else socket.AF_INET
    try:
        listening = socket.create_server(address, family=family, backlog=_BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        # Python has its own message for an address in use. The message of the errno is the one that people search for.
        what = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        raise BadAddress(f"can't listen on {address}: {what}; choose another address") from None
    listening.settimeout(0)
    return listening


class Listener:
    """One listening address of an application. Call `start` once, then `begin_drain`, then `stop` once.

    Attributes:
        connections: those that are open, from the longest to the shortest time since they were accepted or sent a call.
    """

    def __init__(
        self,
        app: web.Application,
        *,
        tls: Callable[[], ssl.SSLContext] | None = None,
        refused: Callable[[ssl.SSLError], object] = lambda _: None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Take what answers.

        Args:
            app: the application. It gets a middleware of this listener.
            tls: returns the context for the next connection; None for plain HTTP.
            refused: called with the error of each handshake that fails, which the event loop does not log.
            limits: those of the connections.
        """
        self._loop = asyncio.get_running_loop()
        app.middlewares.insert(0, self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=_NO_SECONDS)
        self.connections: dict[Connection, None] = {}
        self._draining = False
        self._tls, self._refused = tls, refused
        self._limits = limits
        self._listening: socket.socket | None = None
        self._joining: set[asyncio.Task[None]] = set()
        self._floods = OnceAMinute()
        self._closed = 0

    async def start(self, address: Address) -> Address:
        """Listen on `address`. Return it with the real port if the port was 0.

        Raises:
            BadAddress: the address is in use, does not belong to this machine, or is not permitted.
        """
        self._listening = _listen(address)
        await self._runner.setup()
        self._server.request_factory = partial(without_expect, self._server.request_factory)
        self._accept_again()
        host, port = self._listening.getsockname()[:2]
        return Address(address.host or host, port)

    def _accept_again(self) -> None:
        if self._listening:
            self._loop.add_reader(self._listening, self._accept, self._listening)

    def _accept(self, listening: socket.socket) -> None:
        """Accept one connection. The event loop's other work continues before the next one."""
        try:
            accepted, _ = listening.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:
            self._no_files(listening, error)
            return
        if len(self.connections) >= self._limits.connections and not self._close_one():
            accepted.close()
            return
        accepted.settimeout(0)
        connection = Connection(self._server, accepted, self._limits, self._forget)
        self.connections[connection] = None
        task = self._loop.create_task(self._join(accepted, connection))
        self._joining.add(task)
        task.add_done_callback(self._joining.discard)

    def _close_one(self) -> bool:
        """Close the oldest connection without a request, or else the longest idle one. Return False if none is."""
        if self._floods.is_due(_FLOOD):
            LOGGER.warning(_FLOOD, extra={"fields": {"held": len(self.connections), "closed_so_far": self._closed}})
        silent = (each for each in self.connections if each.silent)
        idle = (each for each in self.connections if each.idle)
        chosen = next(silent, None) or next(idle, None)
        if chosen is None:
            return False
        self._forget(chosen)
        chosen.abort()
        self._closed += 1
        return True

    @property
    def _server(self) -> web.Server:
        assert self._runner.server, "it has not started"  # noqa: S101 - for the type checker
        return self._runner.server

    def _forget(self, connection: Connection) -> None:
        self.connections.pop(connection, None)

    def _no_files(self, listening: socket.socket, error: OSError) -> None:
        """Close one connection, because the process can't open more files; accept the next one after that."""
        seconds = _POLL_SECONDS
        if not self._close_one():
            LOGGER.error("can't accept connections", extra={"fields": {"because": error.strerror}})
            seconds = _NO_FILES_SECONDS
        self._loop.remove_reader(listening)
        self._loop.call_later(seconds, self._accept_again)

    async def _join(self, accepted: socket.socket, connection: Connection) -> None:
        """Give the connection to the event loop. With TLS this ends with the handshake."""
        tls = self._tls() if self._tls else None
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=tls,
                ssl_handshake_timeout=self._limits.handshake_seconds if tls else None,
                ssl_shutdown_timeout=CLOSE_SECONDS if tls else None,
            )
        except OSError as error:  # the client left, or its handshake failed
            if isinstance(error, ssl.SSLError):
                self._refused(error)
            self._forget(connection)
            accepted.close()

    @web.middleware
    async def _answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        connection = cast("Connection", request.protocol)
        connection.begin(request)
        if connection in self.connections:  # it is not closed for another
            self.connections[connection] = self.connections.pop(connection)
        await connection.ask_for_body(request)
        response: web.StreamResponse = await handler(request)
        if self._draining:
            response.force_close()
        return response

    def begin_drain(self) -> None:
        """Add `Connection: close` to every answer from now on, and end the connection after it.

        The listener still accepts new connections, because a client learns late that this replica stops. It drops
        requests that are pipelined behind such an answer, as RFC 9112 (9.6) requires. Go's client does not pipeline.
        """
        self._draining = True

    async def stop(self, grace_seconds: float) -> None:
        """Accept no new connection, wait up to `grace_seconds` for calls in flight, then close all connections.

        A client dials in order to send a call. So each connection without a request gets `first_call_seconds` before
        idle connections are closed. aiohttp's own shutdown comes last, because it stops reading bodies.
        """
        end = self._loop.time() + grace_seconds
        self.begin_drain()
        if self._listening:
            self._loop.remove_reader(self._listening)
            self._listening.close()
        self._listening = None
        first_calls = min(grace_seconds, self._limits.first_call_seconds)
        await self._wait_while(lambda: any(each.silent for each in self.connections), first_calls)
        await self._wait_while(self._end_idle, end - self._loop.time())
        await self._runner.cleanup()
        for connection in list(self.connections):
            connection.abort()

    def _end_idle(self) -> bool:
        """Close the idle connections. Return whether connections are open."""
        for connection in list(self.connections):
            if connection.idle and connection.transport:
                connection.force_close()
            elif connection.idle:  # its handshake is under way
                connection.abort()
        return bool(self.connections)

    async def _wait_while(self, still: Callable[[], bool], seconds: float) -> None:
        """Wait until `still` no longer holds, up to `seconds`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while still():  # noqa: ASYNC110 - an event would cost each call time
                    await asyncio.sleep(_POLL_SECONDS)
