"""The health port of both programs: /healthz, /readyz and /metrics, and the form of every answer of one sentence.

No request changes anything here. /readyz answers 503 until the program can do its work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from aiohttp import web
from msgspec import Struct

SERVER_HEADER: Final = {"Server": "kubevirt-coschedule"}
_SHOWN_CHARS: Final = 200

Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]


class Check(Struct, frozen=True):
    """One condition of /readyz or /healthz. `detail` says why it is not `ok`, or gives more about a check that is.

    A check that does not gate is only shown: without it the program still does its work.
    """

    name: str
    ok: bool
    detail: str = ""
    gates: bool = True


_PING: Final = Check("ping", ok=True)  # kube-apiserver's name for this check: the process answers

Expose = Callable[[str], tuple[str, bytes]]
"""Takes an Accept header; returns the content type and the body of /metrics."""


def health_handler(
    checks: Callable[[], Sequence[Check]],
    metrics: Expose = lambda _: ("text/plain; charset=utf-8", b""),
    alive: Callable[[], Sequence[Check]] = tuple,
) -> Handler:
    """Return the handler of `/healthz`, `/readyz` and `/metrics`.

    `/readyz` is ok while all gating `checks` are. `/healthz` is ok while the event loop answers and all of `alive` are.
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
        found = [_PING, *(checks() if name == "readyz" else alive())]
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


def shown(text: str) -> str:
    """Return a caller's text for use in a sentence: at most 200 characters, printable, ASCII."""
    return ascii(text[:_SHOWN_CHARS])[1:-1]


def reply(status: int, sentence: str, headers: dict[str, str] | None = None) -> web.Response:
    """Return a text answer with one sentence."""
    return web.Response(status=status, text=f"{sentence}\n", headers={**SERVER_HEADER, **(headers or {})})


def refuse(status: int, sentence: str, headers: dict[str, str] | None = None) -> web.Response:
    """Return an answer that ends the connection, because the server will not read the body that follows."""
    response = reply(status, sentence, headers)
    response.force_close()
    return response
