"""What the EventRecorder does when the API server fails, refuses, or does not answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Final

import pytest
from msgspec.structs import replace
from support.drivers.logging_here import Logged
from support.fakes.api_server import ApiServer, Handler, refusing, saying, until
from support.fakes.event_writes import IMPATIENT, SWIFT, Writing, answer, dropped, manifests, recording, silent
from support.fakes.http_line import Asked, Line
from support.objects import builders

from webhook.app.handler import admit_functions
from webhook.component_base.client.api import Api
from webhook.core.admit import Entry
from webhook.core.observe.events import Outcome
from webhook.core.opt_in import Policy
from webhook.telemetry.log import start_log

pytestmark = pytest.mark.slow

MOST_TIMES: Final = 3.0  # a write takes hundreds of times as long as an admission
_SOON_SECONDS: Final = 1.0  # long enough on a busy machine for a write to reach the server


# An API server in trouble.

TROUBLES: Final[dict[str, tuple[Callable[[Writing], Handler], Outcome, int]]] = {
    "it says nothing": (lambda _: silent, Outcome.FAILED, 2),
    "it is too busy": (lambda _: refusing(429, "TooManyRequests", "too many"), Outcome.FAILED, 2),
    "it fails": (lambda _: saying(500, b"no"), Outcome.FAILED, 2),
    "it forbids": (lambda _: refusing(403, "Forbidden", "events is forbidden"), Outcome.REFUSED, 1),
    "it knows no such namespace": (lambda _: refusing(404, "NotFound", "namespaces vms not found"), Outcome.REFUSED, 1),
    "it does not take it": (lambda _: refusing(422, "Invalid", "message: too long"), Outcome.REFUSED, 1),
    "it takes it and says nothing": (lambda writing: writing.take_and_hang, Outcome.FAILED, 2),
}


@pytest.mark.parametrize(("fault", "outcome", "tries"), TROUBLES.values(), ids=TROUBLES)
async def test_an_event_that_can_not_be_written_is_dropped_after_its_tries(  # noqa: PLR0917 - a row and fixtures
    server: ApiServer,
    api: Api,
    writing: Writing,
    logged: Logged,
    fault: Callable[[Writing], Handler],
    outcome: Outcome,
    tries: int,
) -> None:
    """The recorder counts the Event, logs one line, and writes the next Event."""
    start_log("info")
    async with recording(api, replace(IMPATIENT, tries=2)) as events:
        with writing.fault(fault(writing)):
            events.record(answer(), Entry.VIRT_LAUNCHER)
            await until(lambda: events.counts[outcome])
        assert len(server.asked) == tries
        assert len({asked.body for asked in server.asked}) == 1
        events.record(answer("db02"), Entry.VIRT_LAUNCHER)
        await until(lambda: events.counts[Outcome.WRITTEN])
    assert dropped(events) == 1
    assert writing.taken[-1]["involvedObject"]["name"] == "db02"
    [line] = logged.lines()
    assert (line["level"], line["message"]) == ("warning", "events not written")
    assert line["because"]


async def test_an_answer_that_was_lost_makes_no_second_event(api: Api, writing: Writing) -> None:
    """The recorder sends the Event again with the same name, and the API server already has it."""
    hung = asyncio.Event()

    async def once(asked: Asked, line: Line) -> None:
        hung.set()
        await writing.take_and_hang(asked, line)

    async with recording(api, IMPATIENT) as events:
        with writing.fault(once, when=lambda _: not hung.is_set()):
            events.record(answer(), Entry.VIRT_LAUNCHER)
            await until(lambda: events.counts[Outcome.WRITTEN])
    assert len(writing.taken) == 1


async def test_retry_after_holds_back_the_next_event(server: ApiServer, api: Api, writing: Writing) -> None:
    """The next Event waits for the Retry-After, too."""
    refused_at: list[float] = []

    async def refuse(asked: Asked, line: Line) -> None:
        refused_at.append(perf_counter())
        await saying(429, b"{}", retry_after="1")(asked, line)

    async with recording(api, replace(SWIFT, tries=1)) as events:
        with writing.fault(refuse):
            events.record(answer(), Entry.VIRT_LAUNCHER)
            await until(lambda: events.counts[Outcome.FAILED])
        events.record(answer("db02"), Entry.VIRT_LAUNCHER)
        await until(lambda: events.counts[Outcome.WRITTEN])
        assert perf_counter() - refused_at[0] > 0.99
    assert len(server.asked) == 2


@pytest.mark.parametrize("problem", TROUBLES)
async def test_admissions_are_as_fast_while_events_fail(
    problem: str, server: ApiServer, api: Api, writing: Writing
) -> None:
    """While the API server fails and the queue is full, each admission is answered as fast as without Events."""
    fault, *_ = TROUBLES[problem]
    body = json.dumps(builders.review(builders.virt_launcher_pod(claims=["disk"]))).encode()
    async with recording(api, replace(SWIFT, queued=8, write_seconds=_SOON_SECONDS)) as events:
        call, plain = (
            admit_functions(manifests(), Policy(), lambda _: None, record)[Entry.VIRT_LAUNCHER.path]
            for record in (events.record, None)
        )
        took, without = [], []
        with writing.fault(fault(writing)):
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
