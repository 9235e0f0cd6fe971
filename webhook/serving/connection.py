"""One connection: aiohttp's RequestHandler with a time limit for each request head.

A connection has `head_seconds` for its first head, the TLS handshake included, and for each later head from its first
byte on. API servers and kubelets use Go's HTTP client (net/http/transport.go), which needs two exceptions:

- While many calls begin at the same time, it dials more connections than it uses. It keeps the unused ones for later,
  and they send nothing for up to 90 s.
- It does not repeat a POST if the connection closes while the request is under way.

So the webhook does not close a silent connection from an address that has sent requests. It closes that connection only
if its slot is needed, or after `keepalive_seconds`.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from math import inf
from typing import Final, cast

from aiohttp import web

from webhook.serving.connection_slots import ConnectionSlots, Peer
from webhook.serving.routes import Limits, refuse
from webhook.telemetry.log import failure
from webhook.telemetry.record import LOGGER

CLOSE_SECONDS: Final = 1.0  # for a finished answer to be sent, and for the rest of a body that nobody reads
_HTTP_SERVER_ERROR: Final = 500


class Connection(web.RequestHandler):
    """A connection that a listener has accepted.

    A request that is not valid HTTP gets one sentence. No answer has a traceback. The properties read aiohttp's own
    state, the same state that its keepalive timer uses.
    """

    __slots__ = ("_accepted", "_begun", "_limits", "_lower", "_slots", "_timer", "last_request_at", "peer")

    def __init__(
        self,
        server: web.Server,
        slots: ConnectionSlots[Connection],
        accepted: socket.socket,
        peer: Peer,
        limits: Limits,
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=limits.keepalive_seconds,
            access_log=None,  # type: ignore[arg-type] # aiohttp accepts None, but its annotation does not
            auto_decompress=False,
            lingering_time=CLOSE_SECONDS,
        )
        self.peer = peer
        self.last_request_at = -inf
        self._limits = limits
        self._slots = slots
        self._accepted = accepted
        self._lower: asyncio.Transport | None = None  # aiohttp drops its own reference when it begins to close
        self._begun = -1  # the number of complete heads before the head that has begun
        self._timer: asyncio.TimerHandle | None = loop.call_later(self._limits.head_seconds, self._head_due)

    @property
    def handshake_done(self) -> bool:
        """Whether the TLS handshake is over. Without TLS: whether the connection is set up."""
        return self._lower is not None

    @property
    def no_request_yet(self) -> bool:
        """Whether no request was read on this connection. Its TLS handshake may still be under way."""
        return self._request_count == 0

    @property
    def idle(self) -> bool:
        """Whether the connection waits for a request: no head was read that is not answered."""
        return self._waiter is not None and not self._waiter.done()

    @property
    def busy(self) -> bool:
        """Whether a request was read, and its answer is not completely written."""
        task = self._task_handler
        return task is not None and not task.done() and not self.idle

    @property
    def caller_waits(self) -> bool:
        """Whether the connection is busy for less than `call_seconds`, the longest time that a caller waits."""
        late = self._request_in_progress and self._loop.time() - self.last_request_at >= self._limits.call_seconds
        return self.busy and not late

    def begin_request(self) -> None:
        """Note that the handling of a request begins now."""
        self.last_request_at = self._loop.time()
        self._slots.request_arrived(self)

    def abort(self) -> None:
        """Close the connection at once, without TLS's closing messages: the other side may never send its own."""
        if self._lower is not None:
            self._lower.abort()
        else:  # an event loop ends a handshake, at any point, when its socket ends
            with suppress(OSError):
                self._accepted.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Free the slot and the timer of this connection, which is closed."""
        self._slots.remove(self)
        if self._timer is not None:
            self._timer.cancel()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport. uvloop's transport has the methods of `asyncio.Transport`, but not its class."""
        self._lower = cast("asyncio.Transport", transport)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Release the connection after aiohttp has ended it."""
        super().connection_lost(exc)
        self.release()

    def data_received(self, data: bytes) -> None:
        """Start the timer of a head that begins. The timer of the first head runs from the start of the connection."""
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
        waits = self.idle or self.no_request_yet  # aiohttp becomes idle one turn of the loop after the handshake
        if not self.handshake_done or (waits and (begun or (self.no_request_yet and not self.peer.has_sent))):
            self.abort()

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002 - aiohttp's signature
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the answer to a request that aiohttp can't parse (400), or to an unexpected exception (500)."""
        if status < _HTTP_SERVER_ERROR:
            detail = (message or "malformed").strip().splitlines()[0][:200]
            return refuse(status, f"no valid HTTP request: {detail}")
        LOGGER.error("request failed", extra={"fields": failure(exc) if exc else {}})
        return refuse(status, "the request failed inside the server; its log says why")
