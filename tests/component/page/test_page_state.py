"""The answers of /api/state: their content, when they change, and their cost for other calls."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import nullcontext
from email.message import Message
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from support.drivers.paging import REPLICA, Paged, answer, asking, paged, record, state, vm
from support.objects.fleets import LATEST

from webhook.component_base.server.application import check_local
from webhook.core.opt_in import Policy
from webhook.kube.vm_status import VMStatusTracker
from webhook.page import feed
from webhook.page.feed import KEPT, About, Decisions, Feed, published_documents


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Paged]:
    """The page of two VMs, of which `web` is apart."""
    async with paged(tmp_path, [*vm("db", "node-a", "node-a"), *vm("web", "node-a", "node-b")]) as found:
        yield found


@pytest.mark.parametrize(
    ("urls", "expected"),
    [
        pytest.param(["Source, https://a", "Documentation, https://b/"], "https://b/", id="published"),
        pytest.param([], "", id="not published"),
    ],
)
def test_the_documents_are_where_the_package_says(
    monkeypatch: pytest.MonkeyPatch, urls: list[str], expected: str
) -> None:
    """`project.urls` of pyproject.toml, as the wheel has it."""
    installed = Message()
    for url in urls:
        installed["Project-URL"] = url
    monkeypatch.setattr(feed, "metadata", lambda _: installed)
    assert published_documents() == expected


async def test_a_page_gets_everything(page: Paged) -> None:
    """The counts, the last decisions, and whether all of it is up to date. The rows are those of `status`."""
    page.decisions.note(record(7, vmi="db"))
    asked = len(page.server.reads)
    body = await state(page)
    assert len(page.server.reads) == asked
    assert (body["known"], body["late"]) == (True, [])
    assert (body["counts"]["apart"], body["together"], body["replica"]) == (1, 50, REPLICA)
    assert (body["decided"]["total"], [each["name"] for each in body["decided"]["last"]]) == (1, ["db"])


async def test_a_decision_on_a_vm_that_the_cluster_does_not_have_is_not_shown(page: Paged) -> None:
    """Anybody can send a pod for a VM that never existed, and a VM can be deleted. A share-manager pod has none."""
    for number, fields in enumerate(({"vmi": "db"}, {"vmi": "gone"}, {"vmi": "pvc-root", "entry": "share-manager"})):
        page.decisions.note(record(number, **fields))
    shown = (await state(page))["decided"]["last"]
    assert [each["name"] for each in shown] == ["pvc-root", "db"]


async def test_a_page_that_has_the_state_gets_no_body(page: Paged) -> None:
    """The ETag changes with a pass, a decision, and a word of `reunite`. A page of another process gets all."""
    before = await answer(page, asking("/api/state"))
    same = asking("/api/state", If_None_Match=before.headers["etag"])
    unchanged = await answer(page, same)
    assert (unchanged.status, unchanged.body, unchanged.headers["etag"]) == (304, b"", before.headers["etag"])
    assert "date" in unchanged.headers, "the page takes the time of the server from it"
    etags = [before.headers["etag"]]
    for change in (page.fleet.refresh, partial(told, page), partial(decided, page)):
        await change()
        etags.append((await answer(page, same)).headers["etag"])
    assert len(set(etags)) == 4
    assert (await answer(page, asking("/api/state", If_None_Match='"0badcafe-1"'))).status == 200


async def told(page: Paged) -> None:
    """Let `reunite` say a word."""
    page.words = {("vms", "web"): "waits for a window"}


async def decided(page: Paged) -> None:
    """Let the webhook decide a pod."""
    page.decisions.note(record(3))


async def test_a_page_gets_what_reunite_said_of_a_vm_that_is_apart(page: Paged) -> None:
    """Its last words on a VM that is together now are out of date."""
    page.words = {("vms", "web"): "waits for a window", ("vms", "db"): "2 migrations run"}
    assert {row["name"]: row["reunite"] for row in (await state(page))["rows"]} == {
        "web": "waits for a window",
        "db": "",
    }


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
    tracker = VMStatusTracker(page.store.caches, Policy())
    body = await made(Feed(lambda: tracker.snapshot, Decisions(), About(REPLICA, "https://api.example")))
    assert (body["known"], body["rows"]) == (False, [])


async def test_of_a_storm_the_last_decisions_are_kept(page: Paged) -> None:
    """All decisions are counted; a page gets those that are still stored, the newest first."""
    for number in range(KEPT + 50):
        page.decisions.note(record(number, vmi="db", duration_us=number))
    body = (await state(page))["decided"]
    assert (body["total"], body["kept"], len(body["last"])) == (KEPT + 50, KEPT, KEPT)
    assert body["last"][0]["us"] == KEPT + 49


# What it costs the others.


async def test_calls_are_answered_while_thousands_of_rows_are_made(page: Paged) -> None:
    """Other tasks run after each slice of rows, and the answer has each row once."""
    (row, *_) = page.fleet.snapshot.rows
    many = 64 * 20
    page.fleet.snapshot = type(page.fleet.snapshot)(at=LATEST, rows=(row,) * many)
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
    """The state in an answer."""
    body: dict[str, Any] = json.loads(gzip.decompress((await feed.body()).packed))
    return body


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *((host, 200) for host in ("localhost:8080", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST")),
        *((host, 403) for host in ("evil.example", "localhost.evil.example:8080", "10.0.0.7:8080", "[::1", "")),
    ],
)
async def test_a_foreign_name_is_refused(host: str, status: int, page: Paged) -> None:
    """A website can point its own name at the user's machine, and would then read page and metrics."""
    found = await answer(page, asking("/api/state", host=host))
    assert found.status == status
    assert status == 200 or b"expected localhost or 127.0.0.1 in the address" in found.body
    assert (await answer(page, asking("/metrics", host=host))).status == status


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("127.0.0.1", 200),
        ("::1", 200),
        ("::ffff:127.0.0.1", 200),
        ("10.0.0.7", 403),
        ("::ffff:10.0.0.7", 403),
        ("", 403),
    ],
)
def test_the_page_answers_only_on_the_loopback_address(address: str, status: int) -> None:
    """The address to which the caller has connected: `kubectl port-forward` connects to localhost in the pod."""
    transport = Mock(get_extra_info=lambda _: (address, 8080))
    request = make_mocked_request("GET", "/", {"Host": "localhost"}, transport=transport)
    with nullcontext() if status == 200 else pytest.raises(web.HTTPForbidden):
        check_local(request)
