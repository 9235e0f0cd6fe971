"""A row of the list: what it shows when it is open, the commands to copy, and that nothing of it is ever cut."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from support.drivers.browser import Browser, Size, Tab
from support.drivers.paging import Paged, paged, record, stuck, vm
from support.objects import builders
from support.objects.builders_kubevirt import virtual_machine_instance

pytestmark = pytest.mark.slow

WIDTHS: Final = (390, 1024, 1280, 1400)
LONG: Final = "build-2026-10-31-a-very-long-name-of-a-vm-0001-0002-0003-0004"
OPEN_WEB: Final = "document.querySelector('#rows .apart .opener').click()"


async def test_an_open_row_has_its_decision_its_nodes_and_its_commands(page: Paged, tab: Tab) -> None:
    """A click opens the row, a second click closes it; the button says which of both it is."""
    page.decisions.note(record(1, vmi="web", because="claim web-root: pod share-manager-web-root is on node node-b"))
    await page.put(builders.node("node-a"), builders.node("node-b", cordoned=True), builders.longhorn_node("node-a"))
    await page.put(virtual_machine_instance("web", ["web-root"]))
    await tab.until("document.querySelectorAll('#decisions li').length")
    assert await tab.value("document.querySelector('#rows .apart .opener').ariaExpanded") == "false"
    await tab.click("#rows .apart .opener")
    detail = " ".join((await tab.text("#rows .apart .detail")).split())
    for part in (
        "Why VmWebhookNotAsked the VM's pod has no decision of",
        "What to do no VM can start on the node of its share-manager now: node node-b is cordoned",
        "The VM asks for “true”, which means required here.",
        "required → node-a ShareManagerPod claim web-root: pod share-manager-web-root is on node node-b",
        "node-a the VM runs here",
        "node-b apart from the VM share-manager of claim web-root, for",
        "kubevirt-coschedule explain vm/web -n vms",
        "kubevirt-coschedule status web -n vms",
    ):
        assert part in detail
    await tab.until_text("#rows .apart .detail", "node node-b is cordoned")
    assert await tab.value("document.querySelector('#rows .apart .opener').ariaExpanded") == "true"
    await tab.click("#rows .apart td.why")
    assert await tab.value("document.querySelector('.detail')") is None


async def test_a_command_is_copied_with_one_click(tab: Tab) -> None:
    """The button says that it is done, also to screen readers."""
    await tab.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    await tab.value(OPEN_WEB)
    await tab.click(".command:last-child button")
    await tab.until_text(".command:last-child button", "Copied")
    assert (
        await tab.value("document.getElementById('copied').textContent")
        == "Copied: kubevirt-coschedule reunite web -n vms -o yaml --now"
    )
    assert await tab.value("navigator.clipboard.readText()") == ("kubevirt-coschedule reunite web -n vms -o yaml --now")


async def test_a_command_for_a_cluster_in_files_names_the_files(tmp_path: Path, browser: Browser) -> None:
    """As the user named them, in quotes where a shell needs them. No VirtualMachine has this instance."""
    async with paged(tmp_path, vm("web", "node-a", "node-b"), files=True) as page, browser.tab() as tab:
        await tab.open(page.url)
        await tab.until("document.querySelectorAll('#rows tr').length === 1")
        await tab.value(OPEN_WEB)
        commands = await tab.texts(".command code")
    assert commands[0] == "kubevirt-coschedule explain vmi/web -n vms --manifests 'my cluster'"


async def test_the_ages_of_an_open_row_go_on(page: Paged, tab: Tab) -> None:
    """That of a share-manager, too, while nothing else of the row changes."""
    age = "document.querySelector('#rows .apart .detail .since')?.textContent"
    await tab.value(OPEN_WEB)
    now = page.fleet.snapshot
    named = {name: getattr(now, name) for name in now.__struct_fields__}
    page.fleet.snapshot = type(now)(**named | {"at": "2099-01-02T03:04:05Z", "as_of": "2099-01-02T03:04:05Z"})
    page.decisions.note(record(1))
    await tab.until(f"{age}.length === '26663 d'.length")


async def test_an_open_row_stays_open_while_the_page_changes(page: Paged, tab: Tab) -> None:
    """A new row above does not close it, and the focus stays in it."""
    await tab.value(OPEN_WEB)
    await tab.value("document.querySelector('.command button').focus()")
    await page.put(*vm("aaa", "node-a", "node-b"))
    await tab.until("document.querySelectorAll('#rows tr').length === 6")
    assert await tab.value("document.querySelector('.open th').textContent") == "vms/web"
    assert await tab.value("document.activeElement.textContent") == "Copy"


async def test_a_filter_without_hits_says_so(tab: Tab) -> None:
    """The words name the filter; an empty list alone could mean that there are no VMs."""
    await tab.value("document.getElementById('text').focus()")
    await tab.call("Input.insertText", text="nobody")
    await tab.value("document.querySelector('[data-state=apart]').click()")
    await tab.until_text("#none", "No VM matches the filter: name or node “nobody”, state apart.")
    assert await tab.text("#summary") == "60 % together: 3 of 5 VMs, 1 stuck, 1 apart"


# Nothing is cut, at any width.

# Elements of the list whose text is wider or higher than the element, or that end outside of the window.
_CUT: Final = """[...document.querySelectorAll('#rows td, #rows th, #rows td *, #rows th *')].filter((each) => {
  const box = each.getBoundingClientRect();
  if (!box.width || each.matches('.spoken')) return false;
  const inline = getComputedStyle(each).display === 'inline';
  return (!inline && (each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 3))
    || box.right > innerWidth || box.left < 0 || getComputedStyle(each).textOverflow === 'ellipsis';
}).map((each) => `${each.tagName}.${each.className} ${each.textContent}`)"""

# The last character of each line of the VM's name but the last line.
_ENDS: Final = """(() => {
  const walker = document.createTreeWalker(document.querySelector('#rows th .name'), NodeFilter.SHOW_TEXT);
  const range = document.createRange(), ends = [];
  let before = null;
  for (let node; (node = walker.nextNode()); ) {
    for (let at = 0; at < node.length; at++) {
      range.setStart(node, at); range.setEnd(node, at + 1);
      const { top } = range.getBoundingClientRect();
      if (before && top > before.top + 4) ends.push(before.sign);
      before = { top, sign: node.data[at] };
    }
  }
  return ends;
})()"""


@pytest.mark.parametrize("width", WIDTHS)
async def test_nothing_of_a_row_is_cut_and_names_break_at_their_signs(
    tmp_path: Path, browser: Browser, width: int
) -> None:
    """Reasons and names wrap; a line of a name ends after / or -, also before a digit."""
    apart = vm(LONG, f"ip-10-0-17-23-{LONG}", f"ip-10-0-17-24-{LONG}")
    async with paged(tmp_path, [*stuck("big"), *apart]) as page, browser.tab() as tab:
        await tab.size(Size(width, 900))
        await tab.open(page.url)
        await tab.until("document.querySelectorAll('#rows tr').length === 2")
        await tab.value("document.querySelectorAll('#rows .opener').forEach((each) => each.click())")
        await tab.laid_out()
        assert await tab.value(_CUT) == []
        assert await tab.value("document.documentElement.scrollWidth") <= width
        await tab.value("document.querySelector('#rows .stuck').remove()")
        ends = await tab.value(_ENDS)
        assert ends or width > 1024
        assert set(ends) <= {"-"}


async def test_on_a_phone_a_row_is_a_card(tab: Tab) -> None:
    """State, name, node, share-managers and reason are below each other, as wide as the window."""
    await tab.size(Size(390, 844))
    await tab.laid_out()
    tops = await tab.value(
        "['.state', '.vm', '.node', '.volumes', '.why'].map((part) =>"
        " document.querySelector(`#rows ${part}`).getBoundingClientRect().top)"
    )
    assert tops == sorted(set(tops))
    assert await tab.value("document.querySelector('#rows .why').getBoundingClientRect().width") > 340


async def test_a_row_that_is_apart_shows_what_reunite_said(page: Paged, tab: Tab) -> None:
    """The words come with the next answer, into the open row. A VM that is together shows none."""
    await tab.value("document.querySelectorAll('#rows .opener').forEach((each) => each.click())")
    page.words.update({("vms", "web"): "comes home by migration reunite-web", ("vms", "db1"): "comes home, too"})
    page.decisions.note(record(1, vmi="web"))
    await tab.until("document.querySelector('#rows').textContent.includes('comes home by migration')")
    assert "comes home, too" not in await tab.text("#rows")
