"""The HTTP connection to an API server: why a call gets no answer, what an error says, how long to wait after it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from math import inf
from typing import Final

import aiohttp
import msgspec
from msgspec import Struct

CONNECT_SECONDS: Final = 10.0
PIECE_BYTES: Final = 64 * 1024  # of a stream, between which admissions run
_KEEPALIVE: Final = (  # a dead peer is noticed after 10 s + 3 x 5 s
    ("SO_KEEPALIVE", socket.SOL_SOCKET, 1),
    ("TCP_KEEPIDLE", socket.IPPROTO_TCP, 10),
    ("TCP_KEEPINTVL", socket.IPPROTO_TCP, 5),
    ("TCP_KEEPCNT", socket.IPPROTO_TCP, 3),
    ("TCP_USER_TIMEOUT", socket.IPPROTO_TCP, 25_000),
)


class Stream:
    """An answer that is read piece by piece. `status` is the HTTP status, `retry_after` the header Retry-After."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.retry_after = response.headers.get("Retry-After")
        self._response = response

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces of at most 64 KiB, which take less than a millisecond each to work on."""
        while piece := await self._response.content.read(PIECE_BYTES):
            yield piece
            await asyncio.sleep(0)  # `read` does not wait for buffered bytes: let admissions run


def set_keepalive(response: aiohttp.ClientResponse) -> None:
    """Set TCP keepalive on the connection of a response: a dead peer is noticed after 25 s."""
    transport = response.connection.transport if response.connection else None
    live = transport.get_extra_info("socket") if transport else None
    if live is None:
        return
    with socket.socket(fileno=os.dup(live.fileno())) as same:  # uvloop's socket object has no setsockopt
        for name, level, value in _KEEPALIVE:
            if hasattr(socket, name):
                same.setsockopt(level, getattr(socket, name), value)


def close_at_once(response: aiohttp.ClientResponse) -> None:
    """Close a response whose end has not come, and its connection at once.

    A graceful end of TLS waits for the peer. A command that ends meanwhile would leave the connection open.
    """
    transport = response.connection.transport if response.connection else None
    response.close()
    if transport:
        transport.abort()


class ApiError(Exception):
    """No answer: the API server could not be reached, or its answer broke off. `silent`: no byte came in time.

    `forbidden`: the API server answered that this account may not read it.
    """

    def __init__(self, sentence: str, *, silent: bool = False, forbidden: bool = False) -> None:
        super().__init__(sentence)
        self.silent = silent
        self.forbidden = forbidden


class TooLong(ApiError):
    """The answer has more bytes than a client takes."""


# What an error says. Nothing here raises.

_SENTENCE_CHARS: Final = 300
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_NO_SUCH_KIND: Final = b"404 page not found"  # the API server's words for a path that it does not serve
UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # all that msgspec raises


class Failure(Struct, frozen=True, kw_only=True):
    """Why the server refused.

    Attributes:
        code: the HTTP status, or the code of the Status in an ERROR event.
        sentence: code, reason and message on one line.
        foreign: no API server sends such an answer: a proxy on the way, or another server, does.
        absent: the API server has no such object, or no such kind. A 404 of a proxy on the way is not `absent`.
        lacks_right: the account has no right to the request, in RBAC's words. A quota and a policy have others.
        names_object: it says of which object. A 404 for an object has a name, and a 404 for a kind has none.
        too_new: the API server has not reached the resourceVersion of the request yet.
    """

    code: int
    sentence: str
    retry_after_seconds: float = 0.0
    foreign: bool = False
    absent: bool = False
    lacks_right: bool = False
    names_object: bool = False
    too_new: bool = False


class _Cause(Struct):
    reason: str = ""


class _Details(Struct, rename="camel"):
    name: str = ""
    retry_after_seconds: float = 0.0
    causes: list[_Cause] | None = None


class ApiStatus(Struct):
    """metav1.Status: why the API server refuses a request."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None

    def failure(self, http_status: int = 0) -> Failure:
        """Return what it says. `http_status` is 0 in an ERROR event, whose code is in the Status."""
        # The HTTP status counts first: the `code` in a body may be that of a proxy before the API server.
        code, details = http_status or self.code, self.details or _Details()
        return Failure(
            code=code,
            sentence=_printable(f"{code} {self.reason}: {self.message}"),
            retry_after_seconds=details.retry_after_seconds,
            foreign=not (self.reason or self.message),
            absent=code == _NOT_FOUND and self.reason == "NotFound",
            lacks_right=code == _FORBIDDEN and ' is forbidden: User "' in self.message,
            names_object=bool(details.name),
            too_new=any(cause.reason == "ResourceVersionTooLarge" for cause in details.causes or ()),
        )


_STATUS: Final = msgspec.json.Decoder(ApiStatus)


def read_failure(body: bytes, http_status: int) -> Failure:
    """Decode the body of an HTTP error. A body that is not a Status becomes part of the sentence."""
    try:
        return _STATUS.decode(body).failure(http_status)
    except UNDECODABLE:
        absent = http_status == _NOT_FOUND and body.strip() == _NO_SUCH_KIND
        sentence = f"{http_status}: {_printable(body.decode('latin-1'))}"
        return Failure(code=http_status, sentence=sentence, foreign=not absent, absent=absent)


def retry_after_seconds(header: str | None) -> float:
    """Return the seconds of a Retry-After header; 0 if there is none, or if it is a date."""
    return float(header) if header and header.isdecimal() else 0.0


def _printable(text: str) -> str:
    """Return a server's words as one line of printable ASCII, 300 characters at most."""
    return ascii(" ".join(text.split())[:_SENTENCE_CHARS])[1:-1]


_BACKOFF_SECONDS: Final = 0.1
_BACKOFF_MAX_SECONDS: Final = 10.0  # a cache then sends 6 requests a minute, which costs the API server nothing
_FAILURES_MAX: Final = 10  # 0.1 s doubled 10 times is more than the maximum
_RETRY_AFTER_MAX_SECONDS: Final = 60.0


class Backoff:
    """The wait after failures: doubled each time, from 0.1 s to 10 s, and at least the server's Retry-After.

    All times are seconds of a clock that only goes forward. `random` returns numbers from 0 to 1: clients that failed
    at the same time come back at different times.
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._failures = 0
        self._not_before = -inf

    def wait(self, now: float) -> float:
        """Return the seconds until the next request is due; 0 or less if it is due now."""
        return self._not_before - now

    def failed(self, now: float, retry_after_seconds: float) -> None:
        """Take a failure into account. The server asked for `retry_after_seconds`; at most 60 s of it count."""
        backoff = min(_BACKOFF_SECONDS * 2.0**self._failures, _BACKOFF_MAX_SECONDS) * (1 + self._random()) / 2
        asked = min(retry_after_seconds, _RETRY_AFTER_MAX_SECONDS) * (1 + self._random() / 4)
        self._not_before = now + max(backoff, asked)
        self._failures = min(self._failures + 1, _FAILURES_MAX)

    def succeeded(self) -> None:
        """End the run of failures: the next one waits the shortest time."""
        self._failures = 0
