"""The candidates on the page: their count, their rows, the line to copy, and what the page does not know of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
from support.drivers.browser import WIDE, Browser, Size, Tab
from support.drivers.paging import Object, Paged, other_vm, paged, record, vm
from support.objects import builders

pytestmark = pytest.mark.slow

NODES: Final = [made for name in ("node-a", "node-b") for made in (builders.node(name), builders.longhorn_node(name))]
ROWS: Final = "document.querySelectorAll('#candidate-rows tr').length"
NAMES: Final = "[...document.querySelectorAll('#candidate-rows th')].map((each) => each.textContent)"
LINE: Final = (
    "kubectl patch virtualmachine mail -n office --type merge -p "
    """'{"spec":{"template":{"metadata":{"annotations":{"kubevirt-scheduler/co-schedule":"true"}}}}}'"""
)
SUMMARY: Final = (
    "1 of 1 VM together with their share-manager. 2 other VMs that run have a share-manager and do not ask, 1 apart"
)


def fleet(many: int = 0) -> list[Object]:
    """One VM that asks, two that do not, and so many more that do not."""
    objects = [*NODES, *vm("db", "node-a", "node-a")]
    objects += [*other_vm("mail", "node-a", "node-b", namespace="office")]
    objects += other_vm("cache", "node-a", "node-a", annotation="false")
    for number in range(many):
        objects += other_vm(f"vm-{number:02}", "node-a", "node-a")
    return objects


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Paged]:
    """The page of the fleet."""
    async with paged(tmp_path, fleet()) as found:
        yield found


async def test_few_candidates_are_listed_below_the_vms_and_counted_in_the_headline(tab: Tab) -> None:
    """Each with what its next start would decide."""
    await tab.until(f"{ROWS} === 2")
    await tab.until_text("#summary", SUMMARY)
    assert await tab.text("#candidates-hint") == "2 running VMs, 1 apart"
    assert await tab.value(NAMES) == ["office/mail", "vms/cache"]
    row = " ".join((await tab.text("#candidate-rows tr.apart")).split())
    for part in ("apart", "mail-root → on node-b", "required node-b", "pod share-manager-mail-root is on node node-b"):
        assert part in row
    assert LINE in row
    how = await tab.text("#candidates-how")
    assert how.startswith("These VMs run, have a share-manager and do not ask for co-scheduling. ")
    assert how.endswith(" are not in this list: kubevirt-coschedule candidates -A shows these, too.")
    said = 'Its annotation says kubevirt-scheduler/co-schedule: "false"'
    assert said in " ".join((await tab.text("#candidate-rows tr.together")).split())
    tops = "['vms', 'candidates', 'fleet'].map((id) => document.getElementById(id).getBoundingClientRect().top)"
    assert (found := await tab.value(tops)) == sorted(found)


async def test_the_line_is_copied_with_one_click(tab: Tab) -> None:
    """As it is shown."""
    await tab.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    await tab.until(f"{ROWS} === 2")
    await tab.click("#candidate-rows tr.apart .change button")
    await tab.until_text("#candidate-rows tr.apart .change button", "Copied")
    assert await tab.value("navigator.clipboard.readText()") == LINE


async def test_many_candidates_are_folded_and_cost_no_decision(
    tmp_path: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server decides for those that the reader unfolds, and for more when asked."""
    async with paged(tmp_path, fleet(many=40)) as page, browser.tab() as tab:
        decided: list[str] = []
        decide = page.tracker.candidate
        monkeypatch.setattr(page.tracker, "candidate", lambda row: decided.append(row.name) or decide(row))
        await tab.size(WIDE)
        await tab.open(page.url)
        await tab.until_text("#candidates-hint", "42 running VMs, 1 apart")
        assert (await tab.value(ROWS), decided) == (0, [])
        assert await tab.value("document.getElementById('unfold').ariaExpanded") == "false"
        await tab.click("#unfold")
        await tab.until(f"{ROWS} === 20")
        assert await tab.text("#candidates-hint") == "42 running VMs, 1 apart; the first 20 are listed"
        assert len(set(decided)) == 20
        await tab.click("#more-candidates")
        await tab.until(f"{ROWS} === 42")
        assert await tab.value("document.getElementById('more-candidates').hidden")
        await tab.click("#unfold")
        await tab.until("document.getElementById('candidates-shown').hidden")


async def test_the_filter_selects_candidates_too(tab: Tab) -> None:
    """A namespace in which no VM asks can be chosen."""
    await tab.until("document.querySelectorAll('#namespace option').length === 3")
    await tab.value(
        "(() => { const select = document.getElementById('namespace'); select.value = 'office';"
        " select.dispatchEvent(new Event('change')); })()"
    )
    await tab.until(f"{ROWS} === 1")
    assert await tab.value(NAMES) == ["office/mail"]
    assert await tab.text("#candidates-hint") == "2 running VMs, 1 apart; the filter selects 1"


async def test_without_candidates_nothing_is_shown(tmp_path: Path, browser: Browser) -> None:
    """No empty part, and no link to it."""
    async with paged(tmp_path, vm("db", "node-a", "node-a")) as page, browser.tab() as tab:
        await tab.open(page.url)
        await tab.until("performance.getEntriesByType('resource').some(({ name }) => name.includes('api/candidates'))")
        await tab.until_text("#summary", "1 of 1 VM together")
        assert await tab.value("document.getElementById('candidates').hidden")
        assert await tab.value("document.getElementById('to-candidates').hidden")


@pytest.mark.parametrize(
    ("case", "hint"),
    [
        ({"away": True}, "not known: persistentvolumeclaims: not listed yet"),
        ({"follows": False}, "not known, because this server watches no pods: run kubevirt-coschedule candidates -A"),
    ],
    ids=["away", "no pods"],
)
async def test_what_is_not_known_is_not_counted(
    tmp_path: Path, browser: Browser, case: dict[str, bool], hint: str
) -> None:
    """Neither in the headline nor in a list."""
    async with paged(tmp_path, fleet(), **case) as page, browser.tab() as tab:
        await tab.open(page.url)
        await tab.until_text("#candidates-hint", hint)
        assert "do not ask" not in await tab.text("#summary")
        assert await tab.value(ROWS) == 0
        assert await tab.value("document.getElementById('candidates-shown').hidden")


async def test_after_a_lost_connection_the_rows_are_marked_as_old(page: Paged, tab: Tab) -> None:
    """They stay, with their time, and leave the headline."""
    await tab.until(f"{ROWS} === 2")
    await page.listener.stop(0)
    await tab.value("document.querySelector('[data-state=apart]').click()")  # the page asks at once
    await tab.until_text("#candidates-hint", "2 running VMs, 1 apart; not up to date (no connection): as of ")
    await tab.until_text("#summary", "Not up to date. At ")
    assert "do not ask" not in await tab.text("#summary")
    await page.listen()
    await tab.value("document.querySelector('[data-state=apart]').click()")
    await tab.until("document.getElementById('candidates-hint').textContent === '2 running VMs, 1 apart'")
    tab.said[:] = [each for each in tab.said if "ERR_CONNECTION_" not in each and "ERR_EMPTY_RESPONSE" not in each]


async def test_a_pause_stops_the_candidates_too(page: Paged, tab: Tab) -> None:
    """Unless the reader asks for something else."""
    await tab.until(f"{ROWS} === 2")
    await tab.value("document.getElementById('pause').click()")
    await tab.value("document.dispatchEvent(new Event('visibilitychange'))")
    asked = len([url for url in tab.asked if "api/candidates" in url])
    page.decisions.note(record(1))
    await tab.value("document.querySelector('[data-state=apart]').click()")
    await tab.until(f"{ROWS} === 1")
    assert len([url for url in tab.asked if "api/candidates" in url]) == asked + 1


# Elements of the list whose text is wider or higher than the element, or that end outside of the window.
_CUT: Final = """[...document.querySelectorAll('#candidates td *, #candidates th *')].filter((each) => {
  const box = each.getBoundingClientRect();
  if (!box.width || each.matches('.spoken')) return false;
  const inline = getComputedStyle(each).display === 'inline';
  return (!inline && each.scrollWidth > each.clientWidth + 1) || box.right > innerWidth || box.left < 0;
}).map((each) => `${each.tagName}.${each.className} ${each.textContent}`)"""


@pytest.mark.parametrize("width", [320, 390, 768, 1400])
async def test_nothing_is_cut_at_any_width(tmp_path: Path, browser: Browser, width: int) -> None:
    """Names of the greatest length wrap, and so does the line."""
    long = "a-very-long-name-of-a-virtual-machine-of-63-characters-in-total"
    objects = [*NODES, *other_vm(long, f"ip-10-0-17-23-{long}", f"ip-10-0-17-24-{long}")]
    async with paged(tmp_path, objects) as page, browser.tab() as tab:
        await tab.size(Size(width, 900))
        await tab.open(page.url)
        await tab.until(f"{ROWS} === 1")
        await tab.laid_out()
        assert await tab.value(_CUT) == []
        assert await tab.value("document.documentElement.scrollWidth") <= width
