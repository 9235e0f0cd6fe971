"""Many VMs on many nodes: problems come first, and the list begins in the first screen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
from support.drivers.browser import WIDE, Browser, Size, Tab
from support.drivers.paging import LINES, Object, Paged, paged, vm, vms
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
    """The nodes are below the list, whatever their number."""
    async with browser.tab() as tab:
        await tab.size(size)
        await tab.open(page.url)
        await tab.until("document.querySelectorAll('#rows tr').length")
        assert (await vms(tab))[:APART] == [f"vms/vm-{number:02}" for number in range(APART)]
        begins, nodes = await tab.value(
            "['rows', 'fleet'].map((id) => document.getElementById(id).getBoundingClientRect().top)"
        )
        assert begins < size.height / 2 < nodes


async def test_further_rows_come_by_a_button(tab: Tab) -> None:
    """The focus goes to the first of them."""
    assert len(await vms(tab)) == 50
    assert await tab.text("#vms-hint") == "60 VMs; the first 50 are listed"
    await tab.click("#more")
    assert (len(await vms(tab)), await tab.value("document.getElementById('more').hidden")) == (60, True)
    assert await tab.value("document.activeElement.closest('tr').rowIndex") == 51


async def test_of_many_nodes_those_with_trouble_have_a_card_and_the_others_a_cell(tab: Tab) -> None:
    """A cell shows the part of the name that differs; screen readers hear the name and the numbers."""
    cards, cells = await tab.texts(".card h3"), await tab.texts("#cells li")
    assert sorted(cards) == [f"worker-{n:02}" for n in (*range(APART), *range(15, 15 + APART))]
    assert (len(cells), cells[0].split("\n")[0].strip()) == (NODES - 2 * APART, "09")
    assert "worker-09: 2 VMs, 2 together, 2 share-managers: list them" in cells[0]
    words = "12 other nodes, without the shared part of their names (worker-…)"
    assert await tab.text("#cells-hint") == f"{words}; grey: no VM there is stuck, not running, apart or unknown"


async def test_only_lines_that_a_reader_can_follow_are_drawn(tab: Tab) -> None:
    """Nine lines are too many: those of a card are drawn while it has the pointer."""
    assert len(await tab.value(LINES)) == APART
    links = "[...document.querySelectorAll('#lines .link')]"
    seen = f"{links}.filter((each) => getComputedStyle(each).display !== 'none').length"
    assert await tab.value(seen) == 0
    await tab.value("document.querySelector('.card').dispatchEvent(new PointerEvent('pointerover', { bubbles: true }))")
    assert await tab.value(seen) == 1


@pytest.mark.parametrize("width", [1000, 1400])
async def test_a_link_to_a_part_of_the_page_leads_below_the_filter(page: Paged, browser: Browser, width: int) -> None:
    """The filter covers the top of the window, in one line or in several."""
    async with browser.tab() as tab:
        await tab.size(Size(width, 400))
        await tab.open(page.url)
        await tab.until("document.querySelectorAll('#cells li').length")
        await tab.value("document.querySelector('nav a[href=\"#fleet\"]').click()")
        below = "document.querySelector('#fleet h2').getBoundingClientRect().top"
        await tab.until(f"{below} < 300")
        bar = "document.querySelector('search').getBoundingClientRect().bottom"
        assert await tab.value(f"{below} >= {bar}")


async def test_the_cells_are_one_stop_of_the_tab_key(tab: Tab) -> None:
    """Arrows, Home and End move between them, and Enter lists the VMs of a node."""
    stops = "document.querySelectorAll('#cells button[tabindex=\"0\"]').length"
    assert await tab.value(stops) == 1
    await tab.value("document.querySelector('#cells button[tabindex=\"0\"]').focus()")
    await tab.press("ArrowRight", 39)
    await tab.press("End", 35)
    await tab.press("ArrowLeft", 37)
    assert await tab.value("document.activeElement.title") == "worker-28: 2 VMs, 2 together, 2 share-managers"
    assert await tab.value(stops) == 1
    await tab.press("Enter", 13)
    assert await vms(tab) == ["vms/vm-28", "vms/vm-58"]
    assert await tab.value("document.getElementById('text').value") == "node:worker-28"
