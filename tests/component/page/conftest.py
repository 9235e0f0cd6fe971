"""A page of five VMs, and a browser that has opened it.

Whatever a test does, the page says nothing on its console, breaks no policy, and asks nobody else for anything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.drivers.browser import WIDE, Browser, Tab, browsing
from support.drivers.paging import Paged, paged, stuck, vm


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests; each test has a page of its own in it."""
    with browsing(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Paged]:
    """Four VMs: two together, one apart, one stuck; and one of another namespace."""
    objects = [*vm("db1", "node-a", "node-a"), *vm("db2", "node-b", "node-b"), *vm("web", "node-a", "node-b")]
    other = vm("mail", "node-c", "node-c")
    for each in (other[0], other[-1]):
        each["metadata"]["namespace"] = "office"
    other[1]["spec"]["claimRef"]["namespace"] = "office"
    async with paged(tmp_path, [*objects, *stuck("big"), *other]) as found:
        yield found


@pytest.fixture
async def tab(page: Paged, browser: Browser) -> AsyncIterator[Tab]:
    """A browser that has opened the page. At the end of the test it must have no errors."""
    async with browser.tab() as found:
        await found.size(WIDE)
        await found.open(page.url)
        await found.until("document.querySelectorAll('#rows tr').length")
        yield found
        assert found.said == []
        assert [url for url in found.asked if not url.startswith(page.url)] == []
