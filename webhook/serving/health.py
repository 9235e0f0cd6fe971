"""/healthz, /readyz and /metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from aiohttp import web
from msgspec import Struct

from webhook.serving.routes import SERVER_HEADER, Handler, refuse, reply, shown


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
            return web.Response(body=body, headers={**SERVER_HEADER, "Content-Type": content_type})
        found = [_PING, *checks()] if name == "readyz" else [_PING]
        failed = [check for check in found if check.gates and not check.ok]
        text = "; ".join(f"{check.name}: {check.detail}" for check in failed) or "ok"
        if "verbose" in request.query:
            text = "\n".join([*map(_line, found), f"{name} check {'failed' if failed else 'passed'}"])
        return reply(503 if failed else 200, text)

    return handle


def _line(check: Check) -> str:
    detail = f": {check.detail}" if check.detail else ""
    if check.ok:
        return f"[+]{check.name} ok{detail}"
    return f"[-]{check.name} failed{detail}{'' if check.gates else ' (not required)'}"
