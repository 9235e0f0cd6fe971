"""The paths of the page: its files, and /api/state. GET and HEAD only.

The state comes from memory, so that pages do not slow the calls down. The page answers only on the loopback address,
which `kubectl port-forward` reaches, and no other pod. It refuses a foreign name in the header Host.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from aiohttp import web

from webhook.component_base.server.application import check_local
from webhook.page.feed import Feed

STATE: Final = "/api/state"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_INDEX: Final = "page.html"

# No resources of other origins, no inline code, no evaluation of text, and no frames around the page.
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def page_routes(feed: Feed) -> list[web.RouteDef]:
    """Return the routes of the page, for the application of the health port. `/` is the page itself."""
    files = [each for each in Path(__file__).with_name("static").iterdir() if each.suffix in _TYPES]
    paths = ("/" if each.name == _INDEX else f"/{each.name}" for each in files)
    return [web.get(STATE, partial(_state, feed)), *map(web.get, paths, (partial(_file, each) for each in files))]


async def _file(file: Path, request: web.Request) -> web.FileResponse:
    check_local(request)
    headers = {**HEADERS, "Cache-Control": "no-cache", "Content-Type": _TYPES[file.suffix]}
    return web.FileResponse(file, headers=headers)


async def _state(feed: Feed, request: web.Request) -> web.Response:
    """The answer of /api/state: without a body if the page has this state. JSON is always gzipped: 0.1 MB, not several.

    The page takes the time of the server from the header Date.
    """
    check_local(request)
    body = await feed.body()
    headers = {**HEADERS, "Cache-Control": "no-store", "ETag": body.etag}
    if body.etag in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers=headers)
    headers |= {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    return web.Response(body=body.packed, headers=headers)
