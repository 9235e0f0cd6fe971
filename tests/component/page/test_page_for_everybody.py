"""The page for all readers: at two sizes, in light and dark, with a keyboard and with a screen reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from support.drivers.browser import WIDE, Size, Tab
from support.drivers.paging import Paged, vms
from support.objects.fleets import LATEST, served

pytestmark = pytest.mark.slow

SIZES: Final = {"wide": WIDE, "narrow": Size(390, 844)}
_ENTER, _TAB = ("Enter", 13), ("Tab", 9)
_FOCUSED: Final = "(document.activeElement.innerText || document.activeElement.id).trim().split('\\n')[0]"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
async def test_it_fits_at_every_size_in_light_and_in_dark(tab: Tab, tmp_path: Path, size: str, scheme: str) -> None:
    """Nothing is wider than the window, and all text has enough contrast."""
    await tab.size(SIZES[size])
    await tab.media(prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
    assert (await tab.shoot(tmp_path / f"page-{size}-{scheme}.png")).stat().st_size > 10_000
    assert await tab.value("document.documentElement.scrollWidth") <= SIZES[size].width
    dark = await tab.value("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, dark[4:-1].split(","))) < 3 * 64) == (scheme == "dark")
    assert await tab.value(_CONTRAST) == []


# Each text whose contrast with its ground is below 4.5 to 1 (WCAG 2.2, 1.4.3).
_CONTRAST: Final = """(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgb = (colors) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const color of colors) { canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (color) => {
    const [r, g, b] = color.map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const faint = [];
  for (const each of document.querySelectorAll("header *, search *, main *")) {
    const written = [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!written || !each.offsetParent || each.closest(".heard") || each.matches("option")) continue;
    const grounds = [];
    for (let at = each; at; at = at.parentElement) grounds.unshift(getComputedStyle(at).backgroundColor);
    const one = light(rgb(grounds)), other = light(rgb([...grounds, getComputedStyle(each).color]));
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) faint.push(`${ratio.toFixed(2)} ${each.tagName}.${each.className}: ${each.innerText}`);
  }
  return faint;
})()"""


async def test_everything_can_be_done_with_the_keyboard(tab: Tab) -> None:
    """In reading order, with a ring around the focus; the first stop skips to the list."""
    stops = []
    for _ in range(15):
        await tab.press(*_TAB)
        stops.append(await tab.value(_FOCUSED))
        assert await tab.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert stops[:4] == ["Skip to the list of VMs", "Pause", "all namespaces (2)", "text"]
    assert [stop[1:].rstrip("0123456789 ") for stop in stops[4:7]] == ["stuck", "apart", "together"]
    causes = ["VmStuck 1", "VmWebhookNotAsked 1"]
    assert stops[7:] == ["VMs", "Decisions", "Documents", *causes, "State", "VM", "Node"]
    await tab.press(*_TAB, shift=True)
    await tab.press(*_ENTER)
    assert (await vms(tab))[0] == "office/mail"


async def test_the_focus_stays_while_the_page_changes(page: Paged, tab: Tab) -> None:
    """An update does not move the focus."""
    await tab.value("document.querySelector('[data-state=apart]').focus()")
    await page.put(served("db1-root", "node-c", LATEST)[1])
    await tab.until_text("#summary", "2 apart")
    assert await tab.value("document.activeElement.dataset.state") == "apart"


async def test_a_screen_reader_finds_its_way(tab: Tab) -> None:
    """Landmarks, headings, a table with headers, named fields, and live regions."""
    tree = (await tab.call("Accessibility.getFullAXTree"))["nodes"]
    heard = {(role(each), name(each)) for each in tree if not each["ignored"]}
    for expected in (
        ("banner", ""), ("search", "Filter"), ("main", ""), ("region", "Last decisions"),
        ("heading", "VMs"),
        ("status", ""), ("combobox", "Namespace"), ("searchbox", "Name or node"), ("group", "State"),
        ("button", "apart 1"), ("button", "Pause"), ("table", "VMs"), ("columnheader", "Share-managers"),
        ("rowheader", "vms/web"), ("log", "Last decisions"),
    ):  # fmt: skip
        assert expected in heard, sorted(heard)
    unnamed = [each for each in heard if each[0] in ("button", "link", "combobox", "searchbox") and not each[1]]
    assert unnamed == []


def role(node: dict[str, Any]) -> str:
    """The role of a node of the accessibility tree."""
    return str(node.get("role", {}).get("value", ""))


def name(node: dict[str, Any]) -> str:
    """The name that a screen reader announces."""
    return " ".join(str(node.get("name", {}).get("value", "")).split())
