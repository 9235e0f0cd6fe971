"""The page in a real browser: what it shows, how it changes, what the filter selects, and whether it is up to date."""

from __future__ import annotations

import pytest
from support.drivers.browser import Tab
from support.drivers.paging import DOCUMENTS, REPLICA, Paged, record, vm, vms
from support.objects.fleets import LATEST, running_pod, served

from webhook import __version__

pytestmark = pytest.mark.slow

# What is shown.


async def test_every_vm_is_listed_the_worst_first_with_its_reason(tab: Tab) -> None:
    """State in words, node, the share-manager's node, and the cause in a few words."""
    assert await vms(tab) == ["vms/big", "vms/web", "vms/db1", "vms/db2", "office/mail"]
    assert (await tab.texts("#rows td.state .badge"))[:2] == ["■\nstuck", "▲\napart"]
    row = await tab.text("#rows tr:nth-child(2)")
    for part in ("node-a", "web-root → on node-b", "VmWebhookNotAsked"):
        assert part in " ".join(row.split())
    assert await tab.text("#summary") == "60 % together: 3 of 5 VMs, 1 stuck, 1 apart"
    assert await tab.value("document.title") == "(2) kubevirt-coschedule"
    assert await tab.text("h1") == f"kubevirt-coschedule {__version__}"
    for part in ("https://api.example", f"replica {REPLICA}"):
        assert part in await tab.text("#as-of")
    assert await tab.value("document.getElementById('documents').href") == DOCUMENTS


async def test_the_vms_of_a_cause_are_one_click_away(tab: Tab) -> None:
    """Each cause has its number, and is kept in the address of the page."""
    assert await tab.texts("#causes button") == ["VmStuck 1", "VmWebhookNotAsked 1"]
    await tab.click("#causes span:last-child button")
    await tab.until("document.querySelectorAll('#rows tr').length === 1")
    assert await vms(tab) == ["vms/web"]
    assert "cause=VmWebhookNotAsked" in await tab.value("location.search")
    await tab.open(await tab.value("location.href"))
    await tab.until("document.querySelectorAll('#rows tr').length === 1")
    await tab.click("#clear")
    await tab.until("document.querySelectorAll('#rows tr').length === 5")


async def test_a_state_without_vms_has_no_filter(page: Paged, tab: Tab) -> None:
    """It has one as soon as a VM is in it."""
    buttons = "[...document.querySelectorAll('#states button')]"
    shown = f"{buttons}.filter((each) => !each.hidden).map((each) => each.dataset.state)"
    assert await tab.value(shown) == ["stuck", "apart", "together"]
    await page.put(running_pod("idle", "none"))
    await tab.until(f"{shown}.length === 4")


async def test_a_vm_that_becomes_apart_moves_up_without_a_reload(page: Paged, tab: Tab) -> None:
    """The summary shows the change."""
    loads = tab.asked.count(page.url)
    await page.put(served("db1-root", "node-c", LATEST)[1])
    await tab.until_text("#summary", "2 apart")
    assert (await vms(tab))[1:3] == ["vms/db1", "vms/web"]
    await page.put(served("db1-root", "node-a", LATEST)[1])
    await tab.until_text("#summary", "1 apart")
    await page.remove(vm("web", "node-a", "node-b")[-1])
    await tab.until_text("#summary", "3 of 4 VMs")
    assert tab.asked.count(page.url) == loads


async def test_decisions_appear_as_they_are_made(page: Paged, tab: Tab) -> None:
    """The last one first, with its reason; only those that the filter selects."""
    assert await tab.text("#decisions-hint") == "this replica has decided nothing yet"
    for number, name in enumerate(("db1", "db2", "web")):
        page.decisions.note(record(number, vmi=name))
    await tab.until("document.querySelectorAll('#decisions li').length === 3")
    page.decisions.note(
        record(9, vmi="mail", decision="unchanged", reason="NoClaims", because="none", namespace="office", nodes=())
    )
    await tab.until("document.querySelectorAll('#decisions li').length === 4")
    first, second, *_ = await tab.texts("#decisions li")
    assert "unchanged office/mail" in " ".join(first.split())
    assert "required vms/web → node-a" in " ".join(second.split())
    assert "ShareManagerPod claim db02-root: pod share-manager-db02-root is on node node-a 85 µs" in second
    await choose(tab, "office")
    assert len(await tab.texts("#decisions li")) == 1
    assert await tab.text("#decisions-hint") == "1 of 4 by this replica"


async def test_what_a_name_says_is_text_and_never_markup(page: Paged, tab: Tab) -> None:
    """Sentences come from the cluster, and other users can write to the cluster."""
    hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    page.decisions.note(record(1, entry="share-manager", because=hostile, vmi=hostile, nodes=(hostile,)))
    await tab.until_text("#decisions", hostile)
    assert await tab.value("document.querySelectorAll('main img, main script').length") == 0


# The filter.


async def choose(tab: Tab, namespace: str) -> None:
    """Choose a namespace as a reader does."""
    await tab.value(
        f"(() => {{ const it = document.getElementById('namespace'); it.value = '{namespace}';"
        " it.dispatchEvent(new Event('change')); })()"
    )


async def write(tab: Tab, text: str) -> None:
    """Type into the search field."""
    await tab.value("document.getElementById('text').focus()")
    await tab.call("Input.insertText", text=text)


async def test_the_filter_is_by_namespace_state_and_name(tab: Tab) -> None:
    """It applies to the list and the decisions. It is in the URL, so that a reload or a link has it too."""
    assert await tab.texts("#namespace option") == ["all namespaces (2)", "office (1)", "vms (4)"]
    await choose(tab, "office")
    assert await vms(tab) == ["office/mail"]
    await tab.value("document.getElementById('clear').click()")
    await tab.value("document.querySelector('[data-state=apart]').click()")
    assert await vms(tab) == ["vms/web"]
    assert await tab.value("document.querySelector('[data-state=apart]').getAttribute('aria-pressed')") == "true"
    assert await tab.value("location.search") == "?state=apart"
    await tab.call("Page.reload")
    await tab.until("document.querySelectorAll('#rows tr').length === 1")
    await tab.value("document.getElementById('clear').click()")
    await write(tab, "node-c")
    await tab.until("document.querySelectorAll('#rows tr').length === 1")
    assert await vms(tab) == ["office/mail"]


async def test_the_list_can_be_sorted(tab: Tab) -> None:
    """By a click on a column's title, which screen readers announce; a second click reverses the order."""
    await tab.value("document.querySelector('#columns .vm button').click()")
    assert (await vms(tab))[:2] == ["office/mail", "vms/big"]
    assert await tab.value("document.querySelector('#columns .vm').getAttribute('aria-sort')") == "ascending"
    await tab.value("document.querySelector('#columns .vm button').click()")
    assert (await vms(tab))[0] == "vms/web"
    assert await tab.value("document.querySelector('#columns .vm').getAttribute('aria-sort')") == "descending"
