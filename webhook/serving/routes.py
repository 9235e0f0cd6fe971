"""The HTTP side of the admission calls: which requests reach the admission function, and what all others get.

The size and the time of a body are limited here. A wrong request gets the HTTP status that says so, and one sentence.
Invariant: a call always gets some time, even if the `?timeout=` that the API server sends with it can't be parsed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Final
from urllib.parse import parse_qs

from aiohttp import web

from webhook.component_base.log_line import OnceAMinute
from webhook.component_base.server.application import application, shown
from webhook.core.api.admission_review import BadReview, uid_of
from webhook.telemetry.record import LOGGER

MAX_BODY_BYTES: Final = (3 * 1024 + 64) * 1024
"""A CREATE has one object of at most 3 MiB (apiserver MaxRequestBodyBytes). The rest of its review has no more than 64
KiB: the user with groups and extra fields, which arrived in a header or a certificate."""

LARGE_BODY_BYTES: Final = 128 * 1024
"""Six times the review of a launcher pod, so that no ordinary pod waits for a large one."""
LARGE_AT_ONCE: Final = 2  # of them, so that they take 6 MiB of memory
BODY_SECONDS: Final = 5.0  # for each; longer than the usual timeoutSeconds of the webhook configuration

DEFAULT_TIMEOUT_SECONDS: Final = 10.0  # admissionregistration.k8s.io/v1: the default of timeoutSeconds
MAX_TIMEOUT_SECONDS: Final = 30.0  # the same: the largest timeoutSeconds
MARGIN: Final = 0.2
"""The share of the caller's timeout that the webhook does not use.

The API server starts its clock before it dials. The share covers three round trips and about 2 ms of CPU for TCP and
TLS, the wait for the event loop, and the way back. Of 3 s it is 0.6 s, enough for one lost packet each way: Linux sends
a packet again after 0.2 s at the earliest.

The share does not cover the API server's rounding. It rounds the time up to whole seconds, also the rest of a request's
own deadline, so that "1s" can mean any part of a second.
"""

_UNIT_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
# There is one way to read each text. With two ways for each number, a wrong text of 100 characters would take hours.
_PART: Final = rf"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)({'|'.join(_UNIT_SECONDS)})"
_PARTS: Final = re.compile(_PART)
_DURATION: Final = re.compile(f"(?:{_PART})+")

_BAD_REVIEW: Final = "bad review"
_JSON: Final = "application/json"

Admit = Callable[[bytes, float], Awaitable[bytes]]
"""Takes the body of an AdmissionReview and a deadline; returns the body of the answer. Raises only BadReview.

The deadline is a time of the event loop. A slow body can arrive after it. This module does not cancel the call at the
deadline: every wait inside the call ends by then, and a late answer does no more harm than no answer.
"""


def webhook_application(
    entries: Mapping[str, Admit],
    *,
    client_name: str | None = None,
    refused: Callable[[int], object] = lambda _: None,
    body_seconds: float = BODY_SECONDS,
) -> web.Application:
    """Return the application that calls the function of each path.

    Args:
        entries: the admission function of each path.
        client_name: the name that a caller's certificate must have; None if it can have any, or none.
        refused: called with the status of each HTTP error.
        body_seconds: how long the body of a call may take to arrive.
    """
    guards = [] if client_name is None else [_require_client(client_name)]
    app = application(*guards, refused=refused, client_max_size=MAX_BODY_BYTES)
    calls = _Calls(body_seconds)
    for path, admit in entries.items():
        app.router.add_post(path, partial(calls.answer, admit))
    return app


class _Calls:
    """Reads the bodies of calls and answers them. Those with large bodies wait for each other."""

    def __init__(self, body_seconds: float) -> None:
        self._body_seconds = body_seconds
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)
        self._bad_reviews = OnceAMinute()

    async def answer(self, admit: Admit, request: web.Request) -> web.Response:
        """Return the answer to a call. It has its time from now on."""
        deadline = asyncio.get_running_loop().time() + budget_seconds(request.rel_url.raw_query_string)
        if _length(request) <= LARGE_BODY_BYTES:
            return await self._answer(admit, request, deadline)
        try:
            async with asyncio.timeout_at(deadline):
                await self._large.acquire()
        except TimeoutError:
            text = f"{LARGE_AT_ONCE} calls of more than {LARGE_BODY_BYTES} bytes are in work; call again"
            raise web.HTTPServiceUnavailable(text=text) from None
        try:
            return await self._answer(admit, request, deadline)
        finally:
            self._large.release()

    async def _answer(self, admit: Admit, request: web.Request, deadline: float) -> web.Response:
        body = await self._read(request)
        try:
            return web.Response(body=await admit(body, deadline), headers={"Content-Type": _JSON})
        except BadReview as error:
            if self._bad_reviews.is_due(_BAD_REVIEW):
                fields = {"uid": uid_of(body), "because": str(error), "so_far": self._bad_reviews.so_far[_BAD_REVIEW]}
                LOGGER.warning(_BAD_REVIEW, extra={"fields": fields})
            raise web.HTTPBadRequest(text=str(error)) from None

    async def _read(self, request: web.Request) -> bytes:
        try:
            async with asyncio.timeout(self._body_seconds):
                return await request.read()
        except TimeoutError:
            text = f"the body did not come within {self._body_seconds:g} s"
            raise web.HTTPRequestTimeout(text=text) from None
        except (ConnectionError, web.RequestPayloadError):
            raise web.HTTPBadRequest(text="the body ended before its Content-Length") from None


def _length(request: web.Request) -> int:
    """Return the length of a body that can be a review, before it is read."""
    if request.content_type != _JSON:
        got = shown(request.headers.get("Content-Type", ""))
        raise web.HTTPUnsupportedMediaType(text=f"got Content-Type {got}, expected {_JSON}")
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        accepted = {"Accept-Encoding": "identity"}
        raise web.HTTPUnsupportedMediaType(
            text=f"got Content-Encoding {shown(encoding)}, expected none", headers=accepted
        )
    length = request.content_length
    if length is None:
        raise web.HTTPLengthRequired(text="got no Content-Length, expected the body's length in bytes")
    if length > MAX_BODY_BYTES:  # aiohttp alone would read so much of it first
        text = f"got {length} bytes, expected at most {MAX_BODY_BYTES}"
        raise web.HTTPRequestEntityTooLarge(MAX_BODY_BYTES, length, text=text)
    return length


def _require_client(name: str) -> Any:
    """Return a middleware that answers 403 to each caller whose client certificate has another name.

    The handshake has already verified the certificate's authority and dates (`tls`).
    """

    @web.middleware
    async def guard(request: web.Request, handler: Any) -> web.StreamResponse:
        names = _client_names(request.get_extra_info("peercert") or {})
        if name not in names:
            got = shown(", ".join(names)) or "one without a name"
            raise web.HTTPForbidden(text=f"got the client certificate of {got}, expected that of {name}")
        response: web.StreamResponse = await handler(request)
        return response

    return guard


def _client_names(peercert: Mapping[str, Any]) -> list[str]:
    """Return the common names (Kubernetes' user names) and DNS names of a certificate in the form of `ssl`."""
    subject = [value for rdn in peercert.get("subject", ()) for key, value in rdn if key == "commonName"]
    return subject + [value for key, value in peercert.get("subjectAltName", ()) if key == "DNS"]


@lru_cache(maxsize=64)  # a cluster sends few different queries, so nearly no call parses one
def budget_seconds(query: str) -> float:
    """Return the seconds that a call with this query has: its `timeout`, or the default, less the margin."""
    seconds = _duration_seconds(parse_qs(query).get("timeout", [""])[0])
    return min(seconds or DEFAULT_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS) * (1 - MARGIN)


def _duration_seconds(text: str) -> float:
    """Return a Go duration in seconds; 0 if the text is not a duration, or is negative."""
    if not _DURATION.fullmatch(text):
        return 0.0
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _PARTS.findall(text))
