"""The files of the page, read once: each with its type, its ETag, and its bytes, plain and gzipped."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Final

from msgspec import Struct

_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_INDEX: Final = "page.html"


class Asset(Struct, frozen=True, kw_only=True):
    """One file of the page."""

    content_type: str
    etag: str
    plain: bytes
    packed: bytes


def load_assets() -> Mapping[str, Asset]:
    """Return the file for each URL path; `/` is the page itself."""
    assets: dict[str, Asset] = {}
    for file in resources.files(__package__).joinpath("static").iterdir():
        content_type = _TYPES.get(file.name[file.name.rfind(".") :])
        if content_type is not None:
            path = "/" if file.name == _INDEX else f"/{file.name}"
            assets[path] = _asset(file.read_bytes(), content_type)
    return assets


def _asset(content: bytes, content_type: str) -> Asset:
    return Asset(
        content_type=content_type,
        etag=f'"{hashlib.sha256(content).hexdigest()[:20]}"',
        plain=content,
        packed=gzip.compress(content, mtime=0),
    )
