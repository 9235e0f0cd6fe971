"""The health port: /healthz, /readyz and /metrics.

No request changes anything here. /readyz answers 503 until the webhook can take calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from aiohttp import web
from msgspec import Struct

from webhook.serving.routes import SERVER_HEADER, Handler, refuse, reply, shown


class Check(Struct, frozen=True):
    """One condition of /readyz. `detail` says why the check is not `ok`, or gives more about a check that is.

    A check that does not gate is only shown: without it the webhook still answers calls.
    """

    name: str
    ok: bool
    detail: str = ""
    gates: bool = True


_PING: Final = Check("ping", ok=True)  # kube-apiserver's name for this check: the process answers

Expose = Callable[[str], tuple[str, bytes]]
"""Takes an Accept header; returns the content type and the body of /metrics."""


def health_handler(
    checks: Callable[[], Sequence[Check]], metrics: Expose = lambda _: ("text/plain; charset=utf-8", b"")
) -> Handler:
    """Return the handler of `/healthz` (the event loop answers), `/readyz` (all gating checks are ok) and `/metrics`.

    With `?verbose` every check has its own line, in kube-apiserver's format.
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
