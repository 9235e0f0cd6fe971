"""What the EventRecorder does when the API server fails, refuses, or does not answer."""

from __future__ import annotations

import asyncio
import json
from statistics import median
from time import perf_counter
from typing import Final

import pytest
from msgspec.structs import replace
from support.drivers.logging_here import Logged
from support.fakes.api_server import ApiServer, Handler, refusing, saying, until
from support.fakes.event_writes import IMPATIENT, SWIFT, Writing, answer, dropped, manifests, recording, silent
from support.objects import builders

from webhook.app.handler import admit_functions
from webhook.component_base.client.api import Api
from webhook.core.admit import Entry
from webhook.core.observe.events import Outcome
from webhook.core.opt_in import Policy

pytestmark = pytest.mark.slow

MOST_TIMES: Final = 3.0  # a write takes hundreds of times as long as an admission
_SOON_SECONDS: Final = 1.0  # long enough on a busy machine for a write to reach the server


# An API server in trouble.

TROUBLES: Final[dict[str, tuple[Handler, Outcome]]] = {
    "it says nothing": (silent, Outcome.FAILED),
    "it is too busy": (refusing(429, "TooManyRequests", "too many"), Outcome.FAILED),
    "it fails": (saying(500, b"no"), Outcome.FAILED),
    "it forbids": (refusing(403, "Forbidden", "events is forbidden"), Outcome.REFUSED),
    "it knows no such namespace": (refusing(404, "NotFound", "namespaces vms not found"), Outcome.REFUSED),
    "it does not take it": (refusing(422, "Invalid", "message: too long"), Outcome.REFUSED),
}


@pytest.mark.parametrize(("fault", "outcome"), TROUBLES.values(), ids=TROUBLES)
async def test_an_event_that_can_not_be_written_is_dropped(  # noqa: PLR0917 - a row and fixtures
    server: ApiServer, api: Api, writing: Writing, logged: Logged, fault: Handler, outcome: Outcome
) -> None:
    """The recorder counts the Event, logs one line, and writes the next Event."""
    logged.start("info")
    async with recording(api, IMPATIENT) as events:
        with writing.fault(fault):
            events.record(answer(), Entry.VIRT_LAUNCHER)
            await until(lambda: events.counts[outcome])
        assert len(server.asked) == 1
        events.record(answer("db02"), Entry.VIRT_LAUNCHER)
        await until(lambda: events.counts[Outcome.WRITTEN])
    assert dropped(events) == 1
    assert [each["involvedObject"]["name"] for each in writing.taken] == ["db02"]
    [line] = logged.lines()
    assert (line["level"], line["message"]) == ("warning", "events not written")
    assert line["because"]


@pytest.mark.parametrize("problem", ["it says nothing", "it is too busy"])
async def test_admissions_are_as_fast_while_events_fail(
    problem: str, server: ApiServer, api: Api, writing: Writing
) -> None:
    """While the API server fails and the queue is full, each admission is answered as fast as without Events."""
    fault, _ = TROUBLES[problem]
    body = json.dumps(builders.review(builders.virt_launcher_pod(claims=["disk"]))).encode()
    async with recording(api, replace(SWIFT, queued=8, write_seconds=_SOON_SECONDS)) as events:
        call, plain = (
            admit_functions(manifests(), Policy(), lambda _: None, record)[Entry.VIRT_LAUNCHER.path]
            for record in (events.record, None)
        )
        took, without = [], []
        with writing.fault(fault):
            while dropped(events) < 100 or not server.asked:
                began = perf_counter()
                answered = json.loads(await call(body, 0.0))
                took.append(perf_counter() - began)
                began = perf_counter()
                await plain(body, 0.0)
                without.append(perf_counter() - began)
                assert answered["response"]["auditAnnotations"]["decision"] == "required"
                await asyncio.sleep(0)
    assert median(took) < MOST_TIMES * median(without)
