"""What the page says of its own age: it never says what the server does not know."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.drivers.browser import Browser, Tab
from support.drivers.paging import Paged, paged, record, vm, vms
from support.objects.fleets import LATEST, served

pytestmark = pytest.mark.slow


async def test_a_lost_connection_is_shown_until_it_is_back(page: Paged, tab: Tab) -> None:
    """The page keeps its content, marked as old with its time, until the server answers again."""
    await page.listener.stop(0)
    await tab.until_text("#banner", "Connection lost (no connection); trying again. This page shows the state of ")
    assert await tab.value("document.body.classList.contains('stale')")
    assert len(await vms(tab)) == 5
    await page.put(served("db1-root", "node-c", LATEST)[1])
    await page.listen()
    await tab.until("document.getElementById('banner').hidden")
    assert (await vms(tab))[1:3] == ["vms/db1", "vms/web"]
    errors = [each for each in tab.said if "ERR_CONNECTION_REFUSED" in each or "ERR_CONNECTION_RESET" in each]
    tab.said[:] = [each for each in tab.said if each not in errors and "ERR_EMPTY_RESPONSE" not in each]


async def test_caches_that_are_out_of_date_are_named(page: Paged, tab: Tab) -> None:
    """With the time of the content."""
    fleet = page.fleet.snapshot
    named = {name: getattr(fleet, name) for name in fleet.__struct_fields__}
    page.fleet.snapshot = type(fleet)(**named | {"late": ("persistentvolumes: no event for 40 s",)})
    page.decisions.note(record(1, vmi="web"))
    await tab.until_text("#banner", "Not up to date: persistentvolumes: no event for 40 s.")
    await tab.until_text("#summary", f"Not up to date. At {fleet.as_of[11:19]} UTC: 60 % together: 3 of 5 VMs, ")
    assert (await tab.value("document.title")).startswith("(?) ")
    await page.fleet.refresh()
    page.decisions.note(record(2))
    await tab.until("document.getElementById('banner').hidden")


async def test_rows_that_are_not_refreshed_are_marked_as_old(page: Paged, tab: Tab) -> None:
    """The server answers, but its last pass over the caches was long ago."""
    fleet = page.fleet.snapshot
    named = {name: getattr(fleet, name) for name in fleet.__struct_fields__}
    page.fleet.snapshot = type(fleet)(**named | {"at": "2026-01-02T03:04:05Z"})
    page.decisions.note(record(1, vmi="web"))
    await tab.until_text("#banner", "The server has not refreshed the VMs since 2026-01-02 03:04:05 UTC.")


async def test_a_time_of_another_day_has_its_date(page: Paged, tab: Tab) -> None:
    """Rows that have been late for days, and a call that was answered days ago, in the list and in an open row."""
    fleet = page.fleet.snapshot
    named = {name: getattr(fleet, name) for name in fleet.__struct_fields__}
    old = {"late": ("persistentvolumes: cut",), "as_of": "2026-01-02T03:04:05Z"}
    page.fleet.snapshot = type(fleet)(**named | old)
    page.decisions.note(record(1, vmi="web", time=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)))
    await tab.until_text("#banner", "This page shows the state of 2026-01-02 03:04:05 UTC, which can have changed.")
    await tab.until_text("#summary", "Not up to date. At 2026-01-02 03:04:05 UTC: ")
    assert await tab.texts("#decisions time") == ["2026-01-02 03:04:05"]
    page.fleet.snapshot = type(fleet)(**named)
    page.decisions.note(record(2))
    await tab.until("document.getElementById('banner').hidden")
    await tab.value("document.querySelector('#rows .apart .opener').click()")
    await tab.until_text("#rows .detail", "The last call about it on this replica: 2026-01-02 03:04:05 UTC")


async def test_a_pause_is_a_pause(page: Paged, tab: Tab) -> None:
    """The reader can stop all changes. The page shows since when, and shows all changes after it resumes."""
    await tab.value("document.getElementById('pause').click()")
    await tab.until_text("#banner", "Paused: the page shows the state of ")
    page.decisions.note(record(1, vmi="web"))
    await page.put(served("db1-root", "node-c", LATEST)[1])
    assert (await vms(tab))[1:3] == ["vms/web", "vms/db1"]
    await tab.value("document.getElementById('pause').click()")
    await tab.until_text("#summary", "2 apart")
    assert (await tab.value("document.getElementById('banner').hidden"), len(await tab.texts("#decisions li"))) == (
        True,
        1,
    )


async def test_files_are_as_old_as_they_are(tmp_path: Path, browser: Browser) -> None:
    """Ages count up to the time of the objects, which the header has with its date; no light says that all is well."""
    objects = vm("web", "node-a", "node-b")
    async with paged(tmp_path, objects, files=True) as page, browser.tab() as tab:
        fleet = page.fleet.snapshot
        named = {name: getattr(fleet, name) for name in fleet.__struct_fields__}
        old = {"at": "2026-01-02T04:04:05Z", "as_of": "2026-01-02T04:04:05Z"}
        page.fleet.snapshot = type(fleet)(**named | old)
        await tab.open(page.url)
        await tab.until("document.querySelectorAll('#rows tr').length")
        assert (await tab.text("#as-of")).startswith("as of 2026-01-02 04:04:05 UTC")
        assert await tab.value("getComputedStyle(document.getElementById('light')).display") == "none"
        assert await tab.text("#rows td.since") == "1 h"


async def test_while_the_api_server_is_away_the_vms_are_not_known(tmp_path: Path, browser: Browser) -> None:
    """The headline, the list and the counts say so; none of them says that there are no VMs."""
    async with paged(tmp_path, away=True) as page, browser.tab() as tab:
        await tab.open(page.url)
        await tab.until_text("#summary", "The VMs are not known: the server has not read the cluster")
        await tab.until_text("#banner", "The server has not read the VMs: persistentvolumeclaims: not listed yet;")
        assert await tab.text("#none") == "The VMs are not known: the server has not read the cluster."
        assert await tab.text("[data-state=apart] b") == "?"
        assert "No VM" not in await tab.text("body")


async def test_a_cluster_without_such_vms_says_how_a_vm_asks(tmp_path: Path, browser: Browser) -> None:
    """All caches are there, and no VM has the annotation."""
    async with paged(tmp_path) as page, browser.tab() as tab:
        await tab.open(page.url)
        await tab.until_text("#summary", "No VM that runs asks for co-scheduling")
        assert 'kubevirt-scheduler/co-schedule: "true"' in await tab.text("#none")
        assert await tab.text("[data-state=apart] b") == "0"
