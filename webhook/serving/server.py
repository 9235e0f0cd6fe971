"""The two listeners: the webhook over TLS, and health in the clear.

Everything a caller can do is bounded here: bytes, time and connections. Whoever calls wrongly gets the HTTP status
that says so and one sentence. Invariant: no exception leaves `handle`, and no answer carries a traceback.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web
from msgspec import Struct

from webhook.core.review import BadReview
from webhook.errors import UserError
from webhook.record import LOGGER
from webhook.settings import Address

WEBHOOK_PATH: Final = "/mutate/virt-launcher"
MAX_BODY_BYTES: Final = 7 * 1024 * 1024
"""An object is at most 3 MiB in a request (apiserver MaxRequestBodyBytes); a review may carry it and its old self."""

_BACKLOG: Final = 512
_SHOWN_CHARS: Final = 200
_JSON: Final = "application/json"
_SERVER_HEADER: Final = {"Server": "kubevirt-coschedule"}
_ANSWER_HEADERS: Final = {**_SERVER_HEADER, "Content-Type": _JSON}
_CLOSE_SECONDS: Final = 1.0  # for an answer to leave, once it is made
_NO_SECONDS: Final = 0.001  # aiohttp takes 0 for no limit at all

_HTTP_SERVER_ERROR: Final = 500


class Limits(Struct, frozen=True, kw_only=True):
    """What callers may take of time and connections."""

    body_seconds: float = 5.0  # longer than any sane timeoutSeconds of the webhook configuration
    keepalive_seconds: float = 120.0  # Go's client idles a connection for 90 s, and must be the one that closes it
    handshake_seconds: float = 10.0  # Go's client gives up after that
    bodies_bytes: int = 256 * 1024 * 1024  # of all bodies being read at once: 12,000 ordinary ones
    connections: int = 1024  # a few per API server are in use; the rest is room for scans and mistakes


DEFAULT_LIMITS: Final = Limits()

Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]
Admit = Callable[[bytes], Awaitable[bytes]]
"""The body of an AdmissionReview to the body that answers it; raises BadReview, and nothing else."""


def webhook_handler(admit: Admit, limits: Limits = DEFAULT_LIMITS) -> Handler:
    """The HTTP side of the webhook around `admit`."""
    room_bytes = limits.bodies_bytes

    async def handle(request: web.BaseRequest) -> web.Response:
        nonlocal room_bytes
        refusal = _refusal(request)
        if refusal is not None:
            return refusal
        length = request.content_length or 0
        if length > room_bytes:
            return _refuse(503, f"{limits.bodies_bytes} bytes of other calls are being read; call again")
        room_bytes -= length
        try:
            body = await _body(request, limits.body_seconds)
        except TimeoutError:
            return _refuse(408, f"the body did not come within {limits.body_seconds:g} s")
        except (ConnectionError, web.RequestPayloadError):
            return _refuse(400, "the body ended before its Content-Length")
        finally:
            room_bytes += length
        try:
            answer = await admit(body)
        except BadReview as error:
            LOGGER.warning("bad review", extra={"fields": {"because": str(error)}})
            return _reply(400, str(error))
        return web.Response(body=answer, headers=_ANSWER_HEADERS)

    return handle


def _refusal(request: web.BaseRequest) -> web.Response | None:
    """What is wrong with a request before a byte of its body is read; None where nothing is."""
    headers = request.headers
    if request.raw_path.partition("?")[0] != WEBHOOK_PATH and request.path != WEBHOOK_PATH:
        return _refuse(404, f"got path '{_shown(request.path)}', expected {WEBHOOK_PATH}")
    if request.method != "POST":
        return _refuse(405, f"got {_shown(request.method)}, expected POST", {"Allow": "POST"})
    content_type = headers.get("Content-Type", "")
    if content_type != _JSON and content_type.partition(";")[0].strip().lower() != _JSON:
        return _refuse(415, f"got Content-Type {_shown(content_type)}, expected {_JSON}")
    encoding = headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        return _refuse(415, f"got Content-Encoding {_shown(encoding)}, expected none", {"Accept-Encoding": "identity"})
    length = request.content_length
    if length is None:
        return _refuse(411, "got no Content-Length, expected the body's length in bytes")
    if length > MAX_BODY_BYTES:
        return _refuse(413, f"got {length} bytes, expected at most {MAX_BODY_BYTES}")
    return None


def _shown(text: str) -> str:
    """What a caller sent, fit for a sentence: short, printable, ASCII."""
    return ascii(text[:_SHOWN_CHARS])[1:-1]


async def _body(request: web.BaseRequest, seconds: float) -> bytes:
    if request.content.is_eof():
        return await request.read()
    if request.headers.get("Expect", "").lower() == "100-continue" and request.transport:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    async with asyncio.timeout(seconds):
        return await request.read()


def _reply(status: int, sentence: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, text=f"{sentence}\n", headers={**_SERVER_HEADER, **(headers or {})})


def _refuse(status: int, sentence: str, headers: dict[str, str] | None = None) -> web.Response:
    """A reply that ends the connection: what follows on it is a body nobody will read."""
    response = _reply(status, sentence, headers)
    response.force_close()
    return response


def health_handler(ready: Callable[[], bool]) -> Handler:
    """`/healthz` (this event loop answers) and `/readyz` (calls are taken); nothing else, and no side effects."""

    async def handle(request: web.BaseRequest) -> web.Response:
        if request.path not in ("/healthz", "/readyz"):
            return _refuse(404, f"got path '{_shown(request.path)}', expected /healthz or /readyz")
        if request.method not in ("GET", "HEAD"):
            return _refuse(405, f"got {_shown(request.method)}, expected GET", {"Allow": "GET, HEAD"})
        if request.path == "/readyz" and not ready():
            return _reply(503, "shutting down")
        return _reply(200, "ok")

    return handle


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
            return _refuse(status, f"no valid HTTP request: {detail}")
        LOGGER.error("request failed", extra={"fields": {"error": f"{type(exc).__name__}: {exc}"}})
        return _refuse(status, "the request failed inside the server; its log says why")


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
