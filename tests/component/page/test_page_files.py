"""The page's files over real sockets: types, ETags, security headers, and that nothing can be changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest
from support.drivers.paging import Paged, answer, asking, paged
from support.fakes.wire import Wire

from webhook.page import routes
from webhook.page.routes import CONTENT_SECURITY_POLICY

PATHS: Final = {
    "/": "text/html; charset=utf-8",
    "/page.css": "text/css; charset=utf-8",
    "/page.js": "text/javascript; charset=utf-8",
    "/detail.js": "text/javascript; charset=utf-8",
    "/dom.js": "text/javascript; charset=utf-8",
    "/feed.js": "text/javascript; charset=utf-8",
    "/model.js": "text/javascript; charset=utf-8",
    "/lists.js": "text/javascript; charset=utf-8",
    "/trust.js": "text/javascript; charset=utf-8",
    "/icon.svg": "image/svg+xml",
}


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Paged]:
    """A page without VMs."""
    async with paged(tmp_path) as found:
        yield found


@pytest.mark.parametrize(("path", "content_type"), PATHS.items(), ids=PATHS)
async def test_each_file_is_served_with_its_type_and_is_kept_by_its_etag(
    page: Paged, path: str, content_type: str
) -> None:
    """And 304 for a client that has the file."""
    plain = await answer(page, asking(path))
    known = await answer(page, asking(path, If_None_Match=plain.headers["etag"]))
    assert (plain.status, plain.headers["content-type"], plain.headers["cache-control"]) == (
        200, content_type, "no-cache",
    )  # fmt: skip
    assert (known.status, known.body, known.headers["etag"]) == (304, b"", plain.headers["etag"])


def test_no_file_is_left_out() -> None:
    """The files are those of the table above."""
    static = (each.name for each in Path(routes.__file__).with_name("static").iterdir())
    assert {"/" if name == "page.html" else f"/{name}" for name in static} == set(PATHS)


@pytest.mark.parametrize("path", ["/", "/page.js", "/api/state"])
async def test_every_answer_is_held_by_the_same_policy(page: Paged, path: str) -> None:
    """No resources of other origins, no guessing of types, no frames, and no referrer."""
    headers = (await answer(page, asking(path))).headers
    assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY
    assert "frame-ancestors 'none'" in CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"


class _Inline(HTMLParser):
    """Finds what a strict policy forbids: inline code and resources of other origins."""

    found: list[str]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Check the attributes of an element."""
        named = dict(attrs)
        self.found += [f"{tag} {name}" for name in named if name.startswith("on") or name == "style"]
        self.found += [f"{tag} {value}" for value in named.values() if value and ("//" in value or value[0] == "/")]
        if tag == "style" or (tag == "script" and "src" not in named):
            self.found.append(tag)


async def test_the_page_has_nothing_inline_and_nothing_from_elsewhere(page: Paged) -> None:
    """URLs are relative, so that the page also works behind `kubectl proxy`."""
    parser = _Inline()
    parser.found = []
    parser.feed((await answer(page, asking("/"))).body.decode())
    assert parser.found == []


@pytest.mark.parametrize("path", ["/", "/page.css", "/api/state"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_nothing_can_be_changed(page: Paged, method: str, path: str) -> None:
    """Only GET and HEAD are allowed."""
    reply = await answer(page, asking(path, method))
    assert (reply.status, reply.headers["allow"]) == (405, "GET,HEAD")


@pytest.mark.parametrize("path", ["/", "/api/state"])
async def test_a_head_gets_no_body(page: Paged, path: str) -> None:
    """The answer does not wait for a change."""
    async with await Wire.open(page.port) as wire:
        await wire.send(asking(path, "HEAD", Connection="close"))
        head, _, body = (await wire.rest()).partition(b"\r\n\r\n")
    assert (head.split(b" ")[1], body) == (b"200", b"")


async def test_health_is_beside_the_page(page: Paged) -> None:
    """The health paths answer as without the page; other paths get 404."""
    assert (await answer(page, asking("/healthz"))).sentence == "ok"
    assert (await answer(page, asking("/page.html"))).status == 404
