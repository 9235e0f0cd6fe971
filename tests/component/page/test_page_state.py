"""What /api/state tells of a live fleet: what, when, to how many, and what it costs the others."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fleets import LATEST, served
from paging import REPLICA, Paged, answer, asking, paged, record, state, vm
from patience import PATIENCE_SECONDS
from wire import Wire

from webhook.core.placement import Policy
from webhook.kube.fleet import Fleet
from webhook.page.decisions import KEPT, Decisions
from webhook.page.news import Cursor, News
from webhook.page.routes import WATCHERS


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Paged]:
    """The page of two VMs, of which `web` is apart. It waits for news for a moment only."""
    objects = [*vm("db", "node-a", "node-a"), *vm("web", "node-a", "node-b")]
    async with paged(tmp_path, objects, wait_seconds=0.05) as found:
        yield found


async def test_a_page_that_knows_nothing_is_told_everything(page: Paged) -> None:
    """Rows with their reasons, the counts, the last decisions, and how far all of it can be trusted."""
    page.decisions.note(record(7))
    asked = len(page.server.asked)
    told = await state(page)
    assert len(page.server.asked) == asked
    rows = {row["name"]: row for row in told["rows"]}
    assert (rows["db"]["state"], rows["web"]["state"], rows["web"]["node"]) == ("together", "apart", "node-a")
    assert [(each["claim"], each["node"], each["together"]) for each in rows["web"]["volumes"]] == [
        ("web-root", "node-b", False)
    ]
    assert rows["web"]["because"] == "claim web-root: pod share-manager-web-root is on node node-b"
    assert (told["whole"], told["known"], told["follows"], told["late"]) == (True, True, True, [])
    assert (told["counts"]["apart"], told["replica"], told["gone"]) == (1, REPLICA, [])
    assert (told["decided"]["total"], [each["name"] for each in told["decided"]["new"]]) == (1, ["db07"])


async def test_a_page_is_told_what_has_changed_and_no_more(page: Paged) -> None:
    """The row of a VM whose share-manager moved, and the name of one that is gone."""
    cursor = (await state(page))["cursor"]
    await page.put(served("db-root", "node-c", LATEST)[1])
    moved = await state(page, cursor)
    assert [(row["name"], row["state"]) for row in moved["rows"]] == [("db", "apart")]
    assert (moved["whole"], moved["gone"], moved["decided"]["new"]) == (False, [], [])
    await page.remove(vm("web", "node-a", "node-b")[-1])
    gone = await state(page, moved["cursor"])
    assert (gone["rows"], gone["gone"]) == ([], [["vms", "web"]])


@pytest.mark.parametrize("news", ["row", "decision"])
async def test_whoever_waits_is_told_as_soon_as_there_is_news(tmp_path: Path, news: str) -> None:
    """A VM that becomes apart, and a decision; nobody asks again and again."""
    async with paged(tmp_path, vm("db", "node-a", "node-a"), wait_seconds=3600) as page:
        waiting = asyncio.create_task(state(page, (await state(page))["cursor"]))
        await asyncio.sleep(0)
        if news == "row":
            await page.put(served("db-root", "node-c", LATEST)[1])
        else:
            page.decisions.note(record(3))
        told = await asyncio.wait_for(waiting, PATIENCE_SECONDS)
    assert [row["state"] for row in told["rows"]] == (["apart"] if news == "row" else [])
    assert [each["name"] for each in told["decided"]["new"]] == ([] if news == "row" else ["db03"])


async def test_without_news_the_answer_says_that_all_is_as_it_was(page: Paged) -> None:
    """It comes when the wait is over: a page that hears nothing at all has lost its connection."""
    before = await state(page)
    after = await state(page, before["cursor"])
    assert (after["rows"], after["gone"], after["whole"]) == ([], [], False)
    assert (after["cursor"], after["counts"]) == (before["cursor"], before["counts"])


@pytest.mark.parametrize("cursor", ["0badcafe.1.0", "x", "1.2", "a.b.c", "a.-1.0", "a.1.99999999999999999999", "%00"])
async def test_a_cursor_of_another_process_gets_everything_at_once(page: Paged, cursor: str) -> None:
    """The server has restarted, or the Service has led to another replica: its versions mean nothing here."""
    told = await state(page, cursor)
    assert (told["whole"], len(told["rows"])) == (True, 2)


async def test_a_version_that_was_never_given_gets_everything(page: Paged) -> None:
    """From the right process, and from the future."""
    cursor = Cursor.parse((await state(page))["cursor"])
    assert cursor is not None
    told = await state(page, str(cursor._replace(version=99)))
    assert (told["whole"], len(told["rows"])) == (True, 2)


async def test_caches_that_are_not_up_to_date_are_named(page: Paged) -> None:
    """Rows may then be older than they seem."""
    cache = next(iter(page.store.caches.values()))
    page.fleet.snapshot = type(page.fleet.snapshot)(
        **{name: getattr(page.fleet.snapshot, name) for name in page.fleet.snapshot.__struct_fields__}
        | {"late": (f"{cache.resource.title}: no answer",)}
    )
    assert (await state(page))["late"] == [f"{cache.resource.title}: no answer"]


async def test_before_the_first_pass_no_vms_are_not_a_fleet_without_vms(page: Paged) -> None:
    """It is not known yet, and that is what is told."""
    told = await made(News(Fleet(page.store, Policy()), Decisions(), replica=REPLICA))
    assert (told["known"], told["follows"], told["rows"]) == (False, True, [])


async def test_a_server_of_files_says_that_it_follows_no_cluster(tmp_path: Path) -> None:
    """Its decisions are told."""
    async with paged(tmp_path, follows=False) as page:
        page.decisions.note(record(1))
        first = await state(page)
        page.decisions.note(record(2))
        then = await state(page, first["cursor"])
    assert (first["follows"], first["rows"], first["at"]) == (False, [], None)
    assert [each["name"] for each in then["decided"]["new"]] == ["db02"]


async def test_of_a_storm_the_last_decisions_are_kept(page: Paged) -> None:
    """All are counted; whoever lags behind is told those that are still there."""
    cursor = (await state(page))["cursor"]
    for number in range(KEPT + 50):
        page.decisions.note(record(number))
    told = (await state(page, cursor))["decided"]
    assert (told["total"], told["kept"], len(told["new"])) == (KEPT + 50, KEPT, KEPT)
    assert told["new"][-1]["name"] == f"db{KEPT + 49}"


# What it costs the others.


async def test_a_page_that_is_closed_while_it_waits_is_no_failure(
    page: Paged, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is logged, and the next one is served."""
    cursor = (await state(page))["cursor"]
    for _ in range(3):
        async with await Wire.open(page.port) as wire:
            await wire.send(asking(f"/api/state?after={cursor}"))
    for _ in range(2):
        assert (await state(page, cursor))["cursor"] == cursor
    assert caplog.records == []


async def test_more_pages_than_are_allowed_are_told_so(tmp_path: Path) -> None:
    """The next one finds room as soon as one is closed, or answered."""
    async with paged(tmp_path, vm("db", "node-a", "node-a"), wait_seconds=3600) as page:
        cursor = (await state(page))["cursor"]
        waiting = [asyncio.create_task(state(page, cursor)) for _ in range(WATCHERS)]
        refused = None
        while refused is None or refused.status == 200:
            refused = await answer(page, asking("/api/state"))
        assert (refused.status, refused.headers["retry-after"]) == (503, "5")
        page.decisions.note(record(1))
        assert len(await asyncio.gather(*waiting)) == WATCHERS
        assert (await state(page))["known"]


async def test_calls_are_answered_while_thousands_of_rows_are_made(page: Paged) -> None:
    """Others have their turn after each slice; and all rows are there once."""
    (row, *_) = page.fleet.snapshot.rows
    many = 64 * 20
    page.fleet.snapshot = type(page.fleet.snapshot)(
        version=5, at=LATEST, rows=(row,) * many, counts={}, by_namespace={}, late=()
    )
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(other())
    told = await made(page.news)
    ticking.cancel()
    assert len(told["rows"]) == many
    assert turns >= 19


async def made(news: News) -> dict[str, Any]:
    """What it tells whoever knows nothing."""
    told: dict[str, Any] = json.loads(gzip.decompress(await news.body(None)))
    return told
