"""The paths of the page: its files, and /api/state, which answers after a change, or after 10 s. GET and HEAD only.

Everything comes from memory, and the number of waiting pages is limited, so that pages do not slow the calls down.
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

from webhook.page import assets
from webhook.page.assets import Asset
from webhook.page.feed import Cursor, Feed
from webhook.serving.routes import Handler, refuse, shown

STATE: Final = "/api/state"
WATCHERS_MAX: Final = 32  # pages that wait for an answer
WAIT_SECONDS: Final = 10.0  # a page without an answer for 30 s reports that the connection is lost
_SEND_SECONDS: Final = 30.0

# No resources of other origins, no inline code, no evaluation of text, and no frames around the page.
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Final = {
    "Server": "kubevirt-coschedule",
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def page_handler(feed: Feed, otherwise: Handler, *, wait_seconds: float = WAIT_SECONDS) -> Handler:
    """Return a handler for the paths of the page. `otherwise` answers all other paths."""
    files = assets.load_assets()
    watchers = 0

    async def handle(request: web.BaseRequest) -> web.Response:
        nonlocal watchers
        asset = files.get(request.path)
        if asset is None and request.path != STATE:
            return await otherwise(request)
        if request.method not in ("GET", "HEAD"):
            return refuse(405, f"got {shown(request.method)}, expected GET", {"Allow": "GET, HEAD"})
        if asset is not None:
            return _file(asset, request)
        if watchers >= WATCHERS_MAX:
            return refuse(503, f"{WATCHERS_MAX} pages are open on this replica; close one", {"Retry-After": "5"})
        watchers += 1
        try:
            return await _sent(await _state(feed, request, wait_seconds), request)
        finally:
            watchers -= 1

    return handle


def _file(asset: Asset, request: web.BaseRequest) -> web.Response:
    headers = {**HEADERS, "Cache-Control": "no-cache", "ETag": asset.etag, "Vary": "Accept-Encoding"}
    if asset.etag in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers=headers)
    headers["Content-Type"] = asset.content_type
    if "gzip" not in request.headers.get("Accept-Encoding", ""):
        return web.Response(body=asset.plain, headers=headers)
    return web.Response(body=asset.packed, headers={**headers, "Content-Encoding": "gzip"})


async def _state(feed: Feed, request: web.BaseRequest, wait_seconds: float) -> web.Response:
    """The answer of /api/state."""
    cursor = Cursor.parse(request.query.get("after", ""))
    if cursor is not None and request.method == "GET":
        await feed.wait(cursor, wait_seconds)
    return _json(await feed.body(cursor))


def _json(packed: bytes) -> web.Response:
    """An answer in JSON. It is always gzipped: 0.1 MB instead of several MB."""
    headers = {**HEADERS, "Cache-Control": "no-store", "Content-Type": "application/json", "Content-Encoding": "gzip"}
    return web.Response(body=packed, headers=headers)


async def _sent(response: web.Response, request: web.BaseRequest) -> web.Response:
    """Send the response, and wait until the caller has read it, so that unread responses can't use up the memory."""
    try:
        await response.prepare(request)
        await response.write_eof()
        async with asyncio.timeout(_SEND_SECONDS):
            await request.writer.drain()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
    except ConnectionError:
        pass  # the page was closed while it waited
    return response
