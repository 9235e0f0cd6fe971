"""Many VMs on many nodes: problems come first, and the list begins in the first screen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
from support.drivers.browser import WIDE, Browser, Size, Tab
from support.drivers.paging import Object, Paged, paged, vm, vms
from support.objects import builders

pytestmark = pytest.mark.slow

NODES: Final = 30
APART: Final = 9


def fleet() -> list[Object]:
    """Two VMs on each of 30 nodes; the nine of the first nodes are apart, and all of their share-managers are apart."""
    names = [f"worker-{number:02}" for number in range(NODES)]
    objects: list[Object] = [*map(builders.node, names), *map(builders.longhorn_node, names)]
    for number in range(2 * NODES):
        node = f"worker-{number % NODES:02}"
        objects += vm(f"vm-{number:02}", node, f"worker-{number + 15:02}" if number < APART else node)
    return objects


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Paged]:
    """The page of the fleet."""
    async with paged(tmp_path, fleet()) as found:
        yield found


@pytest.mark.parametrize("size", [WIDE, Size(390, 844)], ids=["wide", "phone"])
async def test_the_list_begins_in_the_first_screen_with_the_worst(page: Paged, browser: Browser, size: Size) -> None:
    """On a phone in its first third."""
    async with browser.tab() as tab:
        await tab.size(size)
        await tab.open(page.url)
        await tab.until("document.querySelectorAll('#rows tr').length")
        assert (await vms(tab))[:APART] == [f"vms/vm-{number:02}" for number in range(APART)]
        begins = await tab.value("document.getElementById('rows').getBoundingClientRect().top")
        assert begins < size.height / 3


async def test_further_rows_come_by_a_button(tab: Tab) -> None:
    """The focus goes to the first of them."""
    assert len(await vms(tab)) == 50
    assert await tab.text("#vms-hint") == "60 VMs; the first 50 are listed"
    await tab.click("#more")
    assert (len(await vms(tab)), await tab.value("document.getElementById('more').hidden")) == (60, True)
    assert await tab.value("document.activeElement.closest('tr').rowIndex") == 51


@pytest.mark.parametrize("width", [1000, 1400])
async def test_a_link_to_a_part_of_the_page_leads_below_the_filter(page: Paged, browser: Browser, width: int) -> None:
    """The filter covers the top of the window, in one line or in several."""
    async with browser.tab() as tab:
        await tab.size(Size(width, 400))
        await tab.open(page.url)
        await tab.until("document.querySelectorAll('#rows tr').length")
        await tab.value("window.scrollTo(0, document.body.scrollHeight)")
        await tab.value("document.querySelector('nav a[href=\"#vms\"]').click()")
        below = "document.querySelector('#vms h2').getBoundingClientRect().top"
        bar = "document.querySelector('search').getBoundingClientRect().bottom"
        await tab.until(f"{below} >= {bar}")
