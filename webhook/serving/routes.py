"""The HTTP side of the admission calls: which requests reach the admission function, and what all others get.

The size and the time of a body are limited here. A wrong request gets the HTTP status that says so, and one sentence.
Invariant: no exception leaves a handler, and no answer contains a traceback.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from aiohttp import web
from msgspec import Struct

from webhook.component_base.health import SERVER_HEADER, Handler, refuse, reply, shown
from webhook.core.api.admission_review import BadReview, uid_of
from webhook.serving.deadline import budget_seconds
from webhook.telemetry.once_a_minute import OnceAMinute
from webhook.telemetry.record import LOGGER

MAX_BODY_BYTES: Final = (3 * 1024 + 64) * 1024
"""A CREATE has one object of at most 3 MiB (apiserver MaxRequestBodyBytes). The rest of its review has no more than 64
KiB: the user with groups and extra fields, which arrived in a header or a certificate."""

LARGE_BODY_BYTES: Final = 128 * 1024
"""Six times the review of a launcher pod, so that no ordinary pod waits for a large one."""
LARGE_AT_ONCE: Final = 2  # of them, so that they take 6 MiB of memory

_BAD_REVIEW: Final = "bad review"
_OK: Final = 200
_JSON: Final = "application/json"
_ANSWER_HEADERS: Final = {**SERVER_HEADER, "Content-Type": _JSON}


class BodyLimits(Struct, frozen=True, kw_only=True):
    """How much time and memory the bodies of calls can use."""

    seconds: float = 5.0  # for each; longer than the usual timeoutSeconds of the webhook configuration
    all_bytes: int = 256 * 1024 * 1024  # of all that are being read: 12,000 ordinary ones


DEFAULT_BODY_LIMITS: Final = BodyLimits()

Admit = Callable[[bytes, float], Awaitable[bytes]]
"""Takes the body of an AdmissionReview and a deadline; returns the body of the answer. Raises only BadReview.

The deadline is a time of the event loop. A slow body can arrive after it. This module does not cancel the call at the
deadline: every wait inside the call ends by then, and a late answer does no more harm than no answer.
"""


def webhook_handler(entries: Mapping[str, Admit], limits: BodyLimits = DEFAULT_BODY_LIMITS) -> Handler:
    """Return the HTTP handler that calls the function of each path. Call this while the event loop runs."""
    loop_time = asyncio.get_running_loop().time
    expected = " or ".join(entries)
    bodies, large = _Bodies(limits), asyncio.Semaphore(LARGE_AT_ONCE)
    bad_reviews = OnceAMinute()

    async def handle(request: web.BaseRequest) -> web.Response:
        arrived = loop_time()
        path, _, query = request.raw_path.partition("?")
        admit = entries.get(path) or entries.get(request.path)  # the second: an absolute URL, or a path with escapes
        if admit is None:
            return refuse(404, f"got path '{shown(request.path)}', expected {expected}")
        refusal = _refusal(request)
        if refusal is not None:
            return refusal
        deadline = arrived + budget_seconds(query)
        if (request.content_length or 0) <= LARGE_BODY_BYTES:
            return await _answer(request, bodies, admit, deadline, bad_reviews)
        try:
            async with asyncio.timeout_at(deadline):
                await large.acquire()
        except TimeoutError:
            return refuse(503, f"{LARGE_AT_ONCE} calls of more than {LARGE_BODY_BYTES} bytes are in work; call again")
        try:
            return await _answer(request, bodies, admit, deadline, bad_reviews)
        finally:
            large.release()

    return handle


async def _answer(
    request: web.BaseRequest, bodies: _Bodies, admit: Admit, deadline: float, bad_reviews: OnceAMinute
) -> web.Response:
    """Read the body of a call and return its answer."""
    body = await bodies.read(request)
    if isinstance(body, web.Response):
        return body
    try:
        answer = await admit(body, deadline)
    except BadReview as error:
        if bad_reviews.is_due(_BAD_REVIEW):
            fields = {"uid": uid_of(body), "because": str(error), "so_far": bad_reviews.so_far[_BAD_REVIEW]}
            LOGGER.warning(_BAD_REVIEW, extra={"fields": fields})
        return reply(400, str(error))
    return web.Response(body=answer, headers=_ANSWER_HEADERS)


def count_refusals(handler: Handler, refused: Callable[[int], None]) -> Handler:
    """Return `handler` with a call of `refused` for each HTTP error, with its status."""

    async def handle(request: web.BaseRequest) -> web.Response:
        response = await handler(request)
        if response.status != _OK:
            refused(response.status)
        return response

    return handle


def require_client(name: str, handler: Handler) -> Handler:
    """Return `handler` for callers whose client certificate has this name, and 403 for all others.

    The handshake has already verified the certificate's authority and dates (`tls`).
    """

    async def handle(request: web.BaseRequest) -> web.Response:
        transport = request.transport
        names = _client_names(transport.get_extra_info("peercert") or {}) if transport else []
        if name in names:
            return await handler(request)
        got = shown(", ".join(names)) or "one without a name"
        return refuse(403, f"got the client certificate of {got}, expected that of {name}")

    return handle


def _client_names(peercert: Mapping[str, Any]) -> list[str]:
    """Return the common names (Kubernetes' user names) and DNS names of a certificate in the form of `ssl`."""
    subject = [value for rdn in peercert.get("subject", ()) for key, value in rdn if key == "commonName"]
    return subject + [value for key, value in peercert.get("subjectAltName", ()) if key == "DNS"]


def _refusal(request: web.BaseRequest) -> web.Response | None:
    """Return the answer to a request whose head is wrong, before its body is read. None: the head is right."""
    headers = request.headers
    if request.method != "POST":
        return refuse(405, f"got {shown(request.method)}, expected POST", {"Allow": "POST"})
    content_type = headers.get("Content-Type", "")
    if content_type != _JSON and content_type.partition(";")[0].strip().lower() != _JSON:
        return refuse(415, f"got Content-Type {shown(content_type)}, expected {_JSON}")
    encoding = headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        return refuse(415, f"got Content-Encoding {shown(encoding)}, expected none", {"Accept-Encoding": "identity"})
    length = request.content_length
    if length is None:
        return refuse(411, "got no Content-Length, expected the body's length in bytes")
    if length > MAX_BODY_BYTES:
        return refuse(413, f"got {length} bytes, expected at most {MAX_BODY_BYTES}")
    return None


class _Bodies:
    """Reads the bodies of calls. Those that are being read have `all_bytes` in total, and `seconds` each."""

    def __init__(self, limits: BodyLimits) -> None:
        self._limits = limits
        self._free_bytes = limits.all_bytes

    async def read(self, request: web.BaseRequest) -> bytes | web.Response:
        """Return the body, or the answer that refuses the request."""
        limits, length = self._limits, request.content_length or 0
        if length > self._free_bytes:
            return refuse(503, f"{limits.all_bytes} bytes of other calls are being read; call again")
        self._free_bytes -= length
        try:
            return await _body(request, limits.seconds)
        except TimeoutError:
            return refuse(408, f"the body did not come within {limits.seconds:g} s")
        except (ConnectionError, web.RequestPayloadError):
            return refuse(400, "the body ended before its Content-Length")
        finally:
            self._free_bytes += length


async def _body(request: web.BaseRequest, seconds: float) -> bytes:
    if request.content.is_eof():
        return await request.read()
    if request.headers.get("Expect", "").lower() == "100-continue" and request.transport:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    async with asyncio.timeout(seconds):
        return await request.read()
