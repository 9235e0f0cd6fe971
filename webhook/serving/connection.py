"""One connection: aiohttp's, with a time for each request head, and with what is under way on it.

It has `head_seconds` for its first head, the TLS handshake included, and for each later one from its first byte on.
Two things that Go's HTTP client does bear on the first (net/http/transport.go; API servers and kubelets have it). While
many calls begin at once it dials more connections than it comes to use, and keeps them for later: those say nothing for
up to 90 s. And it does not repeat a POST whose connection is closed while it is on its way. So where requests have come
from an address its silent connections are left alone, until their places are needed or the keep-alive time is over.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from math import inf
from typing import Final, cast

from aiohttp import web

from webhook.serving.places import Peer, Places
from webhook.serving.routes import Limits, refuse
from webhook.telemetry.log import failure
from webhook.telemetry.record import LOGGER

CLOSE_SECONDS: Final = 1.0  # for an answer to leave once it is made, and for the rest of a body that is not read
_HTTP_SERVER_ERROR: Final = 500


class Connection(web.RequestHandler):
    """A request that is no HTTP gets one sentence, and no traceback gets anywhere.

    What is under way is told from aiohttp's own state: the same that its keep-alive timer goes by.
    """

    __slots__ = ("_accepted", "_begun", "_limits", "_lower", "_places", "_timer", "asked_at", "peer")

    def __init__(
        self, server: web.Server, places: Places[Connection], accepted: socket.socket, peer: Peer, limits: Limits
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=limits.keepalive_seconds,
            access_log=None,  # type: ignore[arg-type] # aiohttp takes None, its annotation does not say so
            auto_decompress=False,
            lingering_time=CLOSE_SECONDS,
        )
        self.peer = peer
        self.asked_at = -inf
        self._limits = limits
        self._places = places
        self._accepted = accepted
        self._lower: asyncio.Transport | None = None  # aiohttp forgets its own as soon as it begins to close it
        self._begun = -1  # after how many whole heads one has begun
        self._timer: asyncio.TimerHandle | None = loop.call_later(self._limits.head_seconds, self._head_due)

    @property
    def made(self) -> bool:
        """Its TLS handshake, if it has one, is over."""
        return self._lower is not None

    @property
    def unasked(self) -> bool:
        """It was accepted, its TLS handshake may still be under way, and no request was read on it."""
        return self._request_count == 0

    @property
    def idle(self) -> bool:
        """A request is waited for: no head was read, not even one whose handling has not begun yet."""
        return self._waiter is not None and not self._waiter.done()

    @property
    def busy(self) -> bool:
        """A request was read, and its answer is not all written."""
        task = self._task_handler
        return task is not None and not task.done() and not self.idle

    @property
    def waited_for(self) -> bool:
        """It is busy, and not for longer than anybody waits."""
        late = self._request_in_progress and self._loop.time() - self.asked_at >= self._limits.call_seconds
        return self.busy and not late

    def asks(self) -> None:
        """A request is about to be handled."""
        self.asked_at = self._loop.time()
        self._places.asked(self)

    def cut(self) -> None:
        """Close it at once, without the end of TLS: the other side might never say its part of that."""
        if self._lower is not None:
            self._lower.abort()
        else:  # loops end a handshake whose socket ends, at whatever point it is
            with suppress(OSError):
                self._accepted.shutdown(socket.SHUT_RDWR)

    def forget(self) -> None:
        """It is gone."""
        self._places.leave(self)
        if self._timer is not None:
            self._timer.cancel()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As aiohttp has it. uvloop's transport is one by its methods only, not by its class."""
        self._lower = cast("asyncio.Transport", transport)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """As aiohttp has it."""
        super().connection_lost(exc)
        self.forget()

    def data_received(self, data: bytes) -> None:
        """As aiohttp has it; a head that begins is timed, and the timer of the first one goes on."""
        super().data_received(data)
        if self.idle and self._begun != self._request_count:
            self._begun = self._request_count
            if self._timer is not None and self._request_count:
                self._timer.cancel()
                self._timer = None
            if self._timer is None:
                self._timer = self._loop.call_later(self._limits.head_seconds, self._head_due)

    def _head_due(self) -> None:
        self._timer = None
        begun = self._begun == self._request_count
        waits = self.idle or self.unasked  # aiohttp waits for a head from the turn after the handshake on
        if not self.made or (waits and (begun or (self.unasked and not self.peer.asks))):
            self.cut()

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
