"""What is answered to whom: the webhook's path, the health paths, and one sentence for every wrong call.

Bytes and time of a body are bounded here. Whoever calls wrongly gets the HTTP status that says so. Invariant: no
exception leaves a handler, and no answer carries a traceback.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from aiohttp import web
from msgspec import Struct

from webhook.core.api.admission_review import BadReview, uid_of
from webhook.serving.deadline import budget_seconds
from webhook.telemetry.record import LOGGER

MAX_BODY_BYTES: Final = 7 * 1024 * 1024
"""An object is at most 3 MiB in a request (apiserver MaxRequestBodyBytes); a review may carry it and its old self."""

_OK: Final = 200
_SHOWN_CHARS: Final = 200
_JSON: Final = "application/json"
_SERVER_HEADER: Final = {"Server": "kubevirt-coschedule"}
_ANSWER_HEADERS: Final = {**_SERVER_HEADER, "Content-Type": _JSON}


class Limits(Struct, frozen=True, kw_only=True):
    """What callers may take of time and connections."""

    body_seconds: float = 5.0  # longer than any sane timeoutSeconds of the webhook configuration
    keepalive_seconds: float = 120.0  # Go's client idles a connection for 90 s, and must be the one that closes it
    head_seconds: float = 10.0  # for a head, with the handshake before the first: Go's client gives one up then
    call_seconds: float = 60.0  # twice as long as an API server waits: an answer not taken by then never is
    first_call_seconds: float = 1.0  # at the end, for whoever connected a moment ago: a client dials in order to ask
    bodies_bytes: int = 256 * 1024 * 1024  # of all bodies being read at once: 12,000 ordinary ones
    connections: int = 1024  # a few per API server are in use; the rest is room for scans and mistakes
    connections_per_peer: int = 512  # half: one address can't take all, and all API servers may come from one (NAT)


DEFAULT_LIMITS: Final = Limits()

Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]
Admit = Callable[[bytes, float], Awaitable[bytes]]
"""The body of an AdmissionReview to the body that answers it; raises BadReview, and nothing else.

The number is the time of the event loop by which the answer must be made; a body that was slow may have used it up.
Nothing here cuts the call off at that time: whatever it waits for ends by then, and an answer that is late is no worse
than none.
"""


def webhook_handler(entries: Mapping[str, Admit], limits: Limits = DEFAULT_LIMITS) -> Handler:
    """The HTTP side of the webhook around what answers at each path, for the event loop that runs."""
    loop_time = asyncio.get_running_loop().time
    expected = " or ".join(entries)
    room_bytes = limits.bodies_bytes

    async def handle(request: web.BaseRequest) -> web.Response:
        nonlocal room_bytes
        arrived = loop_time()
        path, _, query = request.raw_path.partition("?")
        admit = entries.get(path) or entries.get(request.path)  # the latter: what an absolute URL, or escapes, come to
        if admit is None:
            return refuse(404, f"got path '{shown(request.path)}', expected {expected}")
        refusal = _refusal(request)
        if refusal is not None:
            return refusal
        length = request.content_length or 0
        if length > room_bytes:
            return refuse(503, f"{limits.bodies_bytes} bytes of other calls are being read; call again")
        room_bytes -= length
        try:
            body = await _body(request, limits.body_seconds)
        except TimeoutError:
            return refuse(408, f"the body did not come within {limits.body_seconds:g} s")
        except (ConnectionError, web.RequestPayloadError):
            return refuse(400, "the body ended before its Content-Length")
        finally:
            room_bytes += length
        try:
            answer = await admit(body, arrived + budget_seconds(query))
        except BadReview as error:
            LOGGER.warning("bad review", extra={"fields": {"uid": uid_of(body), "because": str(error)}})
            return _reply(400, str(error))
        return web.Response(body=answer, headers=_ANSWER_HEADERS)

    return handle


def count_refusals(handler: Handler, refused: Callable[[int], None]) -> Handler:
    """`handler`, and `refused` hears the status of each call that got an HTTP error."""

    async def handle(request: web.BaseRequest) -> web.Response:
        response = await handler(request)
        if response.status != _OK:
            refused(response.status)
        return response

    return handle


def _refusal(request: web.BaseRequest) -> web.Response | None:
    """What is wrong with a request before a byte of its body is read; None where nothing is."""
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


def shown(text: str) -> str:
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


def refuse(status: int, sentence: str, headers: dict[str, str] | None = None) -> web.Response:
    """A reply that ends the connection: what follows on it is a body nobody will read."""
    response = _reply(status, sentence, headers)
    response.force_close()
    return response


class Check(Struct, frozen=True):
    """One thing that readiness is made of. `detail`: why it is not `ok`, or more about it where it is.

    One that does not gate is shown, and changes nothing: calls are answered without it.
    """

    name: str
    ok: bool
    detail: str = ""
    gates: bool = True


_PING: Final = Check("ping", ok=True)  # the API server's own word for: this event loop answers


Expose = Callable[[str], tuple[str, bytes]]
"""An Accept header to the content type and the body of /metrics."""


def health_handler(
    checks: Callable[[], Sequence[Check]], metrics: Expose = lambda _: ("text/plain; charset=utf-8", b"")
) -> Handler:
    """`/healthz` (this event loop answers), `/readyz` (calls are taken) and `/metrics`; no side effects.

    With `?verbose` every check has its line, in the API server's own format.
    """

    async def handle(request: web.BaseRequest) -> web.Response:
        if request.path not in ("/healthz", "/readyz", "/metrics"):
            return refuse(404, f"got path '{shown(request.path)}', expected /healthz, /readyz or /metrics")
        if request.method not in ("GET", "HEAD"):
            return refuse(405, f"got {shown(request.method)}, expected GET", {"Allow": "GET, HEAD"})
        name = request.path[1:]
        if name == "metrics":
            content_type, body = metrics(request.headers.get("Accept", ""))
            return web.Response(body=body, headers={**_SERVER_HEADER, "Content-Type": content_type})
        found = [_PING, *checks()] if name == "readyz" else [_PING]
        failed = [check for check in found if check.gates and not check.ok]
        text = "; ".join(f"{check.name}: {check.detail}" for check in failed) or "ok"
        if "verbose" in request.query:
            text = "\n".join([*map(_line, found), f"{name} check {'failed' if failed else 'passed'}"])
        return _reply(503 if failed else 200, text)

    return handle


def _line(check: Check) -> str:
    detail = f": {check.detail}" if check.detail else ""
    if check.ok:
        return f"[+]{check.name} ok{detail}"
    return f"[-]{check.name} failed{detail}{'' if check.gates else ' (not required)'}"
