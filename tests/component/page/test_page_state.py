"""The answers of /api/state: their content, their time, the number of pages, and their cost for other calls."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.drivers.paging import REPLICA, Paged, answer, asking, paged, record, state, vm
from support.fakes.wire import Wire
from support.objects.fleets import LATEST, served
from support.waits import MAX_WAIT_SECONDS

from webhook.core.opt_in import Policy
from webhook.kube.vm_status import VMStatusTracker
from webhook.page.decisions import KEPT, Decisions
from webhook.page.feed import About, Cursor, Feed
from webhook.page.routes import WATCHERS_MAX


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Paged]:
    """The page of two VMs, of which `web` is apart. It waits only a short time for changes."""
    objects = [*vm("db", "node-a", "node-a"), *vm("web", "node-a", "node-b")]
    objects[-1]["metadata"]["annotations"]["kubevirt-scheduler/decision"] = (
        "preferred on node-b: ShareManagerPod: claim web-root: pod share-manager-web-root is on node node-b; not "
        "required, because NoRoom: node node-b has too little of memory"
    )
    async with paged(tmp_path, objects, wait_seconds=0.05) as found:
        yield found


async def test_a_page_without_a_cursor_gets_everything(page: Paged) -> None:
    """Rows with their reasons, the counts, the last decisions, and whether all of it is up to date."""
    page.decisions.note(record(7))
    asked = len(page.server.reads)
    body = await state(page)
    assert len(page.server.reads) == asked
    rows = {row["name"]: row for row in body["rows"]}
    assert (rows["db"]["state"], rows["web"]["state"], rows["web"]["node"]) == ("together", "apart", "node-a")
    assert [(each["claim"], each["node"], each["together"]) for each in rows["web"]["volumes"]] == [
        ("web-root", "node-b", False)
    ]
    assert rows["web"]["reason"] == "VmPreferred"
    assert rows["web"]["because"] == (
        "at the VM's start the webhook preferred node-b and did not require it, because NoRoom: node node-b has too "
        "little of memory; kube-scheduler chose node node-a"
    )
    assert rows["web"]["cure"] == "live-migrate the VM to node node-b, if it can run there"
    assert rows["db"]["cure"] == ""
    assert (body["whole"], body["known"], body["follows"], body["late"]) == (True, True, True, [])
    assert (body["counts"]["apart"], body["replica"], body["gone"]) == (1, REPLICA, [])
    assert (body["decided"]["total"], [each["name"] for each in body["decided"]["new"]]) == (1, ["db07"])


async def test_a_page_with_a_cursor_gets_only_the_changes(page: Paged) -> None:
    """The row of a VM whose share-manager moved, and the name of one that is gone."""
    cursor = (await state(page))["cursor"]
    await page.put(served("db-root", "node-c", LATEST)[1])
    moved = await state(page, cursor)
    assert [(row["name"], row["state"]) for row in moved["rows"]] == [("db", "apart")]
    assert (moved["whole"], moved["gone"], moved["decided"]["new"]) == (False, [], [])
    await page.remove(vm("web", "node-a", "node-b")[-1])
    gone = await state(page, moved["cursor"])
    assert (gone["rows"], gone["gone"]) == ([], [["vms", "web"]])


@pytest.mark.parametrize("change", ["row", "decision"])
async def test_a_waiting_page_gets_a_change_at_once(tmp_path: Path, change: str) -> None:
    """A VM that becomes apart, and a decision; the page does not poll."""
    async with paged(tmp_path, vm("db", "node-a", "node-a"), wait_seconds=3600) as page:
        waiting = asyncio.create_task(state(page, (await state(page))["cursor"]))
        await asyncio.sleep(0)
        if change == "row":
            await page.put(served("db-root", "node-c", LATEST)[1])
        else:
            page.decisions.note(record(3))
        body = await asyncio.wait_for(waiting, MAX_WAIT_SECONDS)
    assert [row["state"] for row in body["rows"]] == (["apart"] if change == "row" else [])
    assert [each["name"] for each in body["decided"]["new"]] == ([] if change == "row" else ["db03"])


async def test_without_changes_the_answer_is_empty(page: Paged) -> None:
    """It comes at the end of the wait, so that a page without answers knows that it has lost its connection."""
    before = await state(page)
    after = await state(page, before["cursor"])
    assert (after["rows"], after["gone"], after["whole"]) == ([], [], False)
    assert (after["cursor"], after["counts"]) == (before["cursor"], before["counts"])


@pytest.mark.parametrize("cursor", ["0badcafe.1.0", "x", "1.2", "a.b.c", "a.-1.0", "a.1.99999999999999999999", "%00"])
async def test_a_cursor_of_another_process_gets_everything_at_once(page: Paged, cursor: str) -> None:
    """After a restart, or from another replica of the Service, the versions of the cursor mean nothing."""
    body = await state(page, cursor)
    assert (body["whole"], len(body["rows"])) == (True, 2)


async def test_a_version_that_was_never_given_gets_everything(page: Paged) -> None:
    """From the right process, with a version that does not exist yet."""
    cursor = Cursor.parse((await state(page))["cursor"])
    assert cursor is not None
    body = await state(page, str(cursor._replace(version=99)))
    assert (body["whole"], len(body["rows"])) == (True, 2)


async def test_caches_that_are_not_up_to_date_are_named(page: Paged) -> None:
    """Their rows can be out of date."""
    cache = next(iter(page.store.caches.values()))
    page.fleet.snapshot = type(page.fleet.snapshot)(
        **{name: getattr(page.fleet.snapshot, name) for name in page.fleet.snapshot.__struct_fields__}
        | {"late": (f"{cache.resource.title}: no answer",)}
    )
    assert (await state(page))["late"] == [f"{cache.resource.title}: no answer"]


async def test_before_the_first_pass_the_vms_are_not_known(page: Paged) -> None:
    """The answer says that the VMs are not known, and not that there are none."""
    body = await made(Feed(VMStatusTracker(page.store.caches, Policy()), Decisions(), About(replica=REPLICA)))
    assert (body["known"], body["follows"], body["rows"]) == (False, True, [])


async def test_a_server_of_files_says_that_it_watches_no_cluster(tmp_path: Path) -> None:
    """Its answers have the decisions."""
    async with paged(tmp_path, follows=False) as page:
        page.decisions.note(record(1))
        first = await state(page)
        page.decisions.note(record(2))
        then = await state(page, first["cursor"])
    assert (first["follows"], first["rows"], first["at"]) == (False, [], None)
    assert [each["name"] for each in then["decided"]["new"]] == ["db02"]


async def test_of_a_storm_the_last_decisions_are_kept(page: Paged) -> None:
    """All decisions are counted; a page that lags behind gets those that are still stored."""
    cursor = (await state(page))["cursor"]
    for number in range(KEPT + 50):
        page.decisions.note(record(number))
    body = (await state(page, cursor))["decided"]
    assert (body["total"], body["kept"], len(body["new"])) == (KEPT + 50, KEPT, KEPT)
    assert body["new"][-1]["name"] == f"db{KEPT + 49}"


# What it costs the others.


async def test_a_page_that_is_closed_while_it_waits_is_no_failure(
    page: Paged, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is logged, and the next page is served."""
    cursor = (await state(page))["cursor"]
    for _ in range(3):
        async with await Wire.open(page.port) as wire:
            await wire.send(asking(f"/api/state?after={cursor}"))
    for _ in range(2):
        assert (await state(page, cursor))["cursor"] == cursor
    assert caplog.records == []


async def test_a_page_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    """Another page is served as soon as one is closed, or answered."""
    async with paged(tmp_path, vm("db", "node-a", "node-a"), wait_seconds=3600) as page:
        cursor = (await state(page))["cursor"]
        waiting = [asyncio.create_task(state(page, cursor)) for _ in range(WATCHERS_MAX)]
        refused = None
        while refused is None or refused.status == 200:
            refused = await answer(page, asking("/api/state"))
        assert (refused.status, refused.headers["retry-after"]) == (503, "5")
        page.decisions.note(record(1))
        assert len(await asyncio.gather(*waiting)) == WATCHERS_MAX
        assert (await state(page))["known"]


async def test_calls_are_answered_while_thousands_of_rows_are_made(page: Paged) -> None:
    """Other tasks run after each slice of rows, and the answer has each row once."""
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
    body = await made(page.feed)
    ticking.cancel()
    assert len(body["rows"]) == many
    assert turns >= 19


async def made(feed: Feed) -> dict[str, Any]:
    """The answer for a page without a cursor."""
    body: dict[str, Any] = json.loads(gzip.decompress(await feed.body(None)))
    return body
