"""The health port of both programs: /healthz, /readyz and /metrics. The last refuses a foreign name as the page does.

No request changes anything here. /readyz answers 503 until the program can do its work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aiohttp import web
from msgspec import Struct

from webhook.component_base.server.application import application, check_host


class Check(Struct, frozen=True):
    """One condition of /readyz or /healthz. `detail` says why it is not `ok`, or gives more about a check that is.

    A check that does not gate is only shown: without it the program still does its work.
    """

    name: str
    ok: bool
    detail: str = ""
    gates: bool = True


Expose = Callable[[str], tuple[str, bytes]]
"""Takes an Accept header; returns the content type and the body of /metrics."""


def health_application(
    checks: Callable[[], Sequence[Check]],
    metrics: Expose = lambda _: ("text/plain; charset=utf-8", b""),
    alive: Callable[[], Sequence[Check]] = tuple,
) -> web.Application:
    """Return the application of `/healthz`, `/readyz` and `/metrics`.

    `/readyz` is ok while all gating `checks` are. `/healthz` is ok while the event loop answers and all of `alive` are.
    With `?verbose` every check has its own line, in kube-apiserver's format.
    """

    async def answer(request: web.Request) -> web.Response:
        name = request.path[1:]
        found = [Check("ping", ok=True), *(checks() if name == "readyz" else alive())]  # kube-apiserver's name
        failed = [check for check in found if check.gates and not check.ok]
        text = "; ".join(f"{check.name}: {check.detail}" for check in failed) or "ok"
        if "verbose" in request.query:
            text = "\n".join([*map(_line, found), f"{name} check {'failed' if failed else 'passed'}"])
        return web.Response(status=503 if failed else 200, text=f"{text}\n")

    async def scrape(request: web.Request) -> web.Response:
        check_host(request)
        content_type, body = metrics(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    app = application()
    app.add_routes([web.get("/healthz", answer), web.get("/readyz", answer), web.get("/metrics", scrape)])
    return app


def _line(check: Check) -> str:
    detail = f": {check.detail}" if check.detail else ""
    if check.ok:
        return f"[+]{check.name} ok{detail}"
    return f"[-]{check.name} failed{detail}{'' if check.gates else ' (not required)'}"
