"""The paths of the page: its files, and /api/state. GET and HEAD only.

Everything comes from memory, and nothing waits, so that pages do not slow the calls down. The page answers only on the
loopback address, which `kubectl port-forward` reaches, and no other pod. It refuses a foreign name in the header Host.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from functools import partial
from importlib import resources
from typing import Final

from aiohttp import web
from msgspec import Struct

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
    """Return the routes of the page, for the application of the health port."""
    files = (web.get(path, partial(_file, asset)) for path, asset in load_assets().items())
    return [web.get(STATE, partial(_state, feed)), *files]


async def _file(asset: Asset, request: web.Request) -> web.Response:
    check_local(request)
    headers = {**HEADERS, "Cache-Control": "no-cache", "ETag": asset.etag, "Vary": "Accept-Encoding"}
    if asset.etag in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers=headers)
    headers["Content-Type"] = asset.content_type
    if "gzip" not in request.headers.get("Accept-Encoding", ""):
        return web.Response(body=asset.plain, headers=headers)
    return web.Response(body=asset.packed, headers={**headers, "Content-Encoding": "gzip"})


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


class Asset(Struct, frozen=True, kw_only=True):
    """One file of the page, read once: its type, its ETag, and its bytes, plain and gzipped."""

    content_type: str
    etag: str
    plain: bytes
    packed: bytes


def load_assets() -> Mapping[str, Asset]:
    """Return the file for each URL path; `/` is the page itself."""
    assets: dict[str, Asset] = {}
    for file in resources.files(__package__).joinpath("static").iterdir():
        content_type, plain = _TYPES.get(file.name[file.name.rfind(".") :]), file.read_bytes()
        if content_type is not None:
            etag = f'"{hashlib.sha256(plain).hexdigest()[:20]}"'
            packed = gzip.compress(plain, mtime=0)
            path = "/" if file.name == _INDEX else f"/{file.name}"
            assets[path] = Asset(content_type=content_type, etag=etag, plain=plain, packed=packed)
    return assets
