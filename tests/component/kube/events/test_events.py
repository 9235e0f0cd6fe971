"""Events at a scripted API server: what is written, how often, and that admissions do not notice its troubles."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

import pytest
from msgspec.structs import replace
from support.drivers.logging_here import Logged, logging_here
from support.drivers.serving import cluster as described
from support.fakes.api_server import ApiServer, Asked, Cluster, Handler, Line, refusing, saying, until
from support.objects import builders
from support.waits import MAX_WAIT_SECONDS

from webhook.app.handler import entries
from webhook.core.admit import Answer, Entry, admit
from webhook.core.api.names import is_node_name
from webhook.core.observe.events import Outcome
from webhook.core.opt_in import Policy
from webhook.files.documents import read
from webhook.files.manifests import Manifests
from webhook.kube.client.api import Api
from webhook.kube.events.recorder import DEFAULT_LIMITS, EventRecorder, Limits

PATH: Final = "/api/v1/namespaces/vms/events"
AT: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SWIFT: Final = replace(DEFAULT_LIMITS, per_second=1e6, write_seconds=MAX_WAIT_SECONDS)
IMPATIENT: Final = replace(SWIFT, write_seconds=1.0)  # where an API server says nothing
ADMISSION_SECONDS: Final = 0.002  # ten times what one takes, and a twenty-fifth of what a write is waited for
_SOON_SECONDS: Final = 0.05
DROPPED: Final = (Outcome.OVERFLOWED, Outcome.FAILED, Outcome.REFUSED, Outcome.STOPPED)


class Writing:
    """An API server that takes Events; `fault` answers in its place for as long as it says."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.cluster = Cluster({})
        self.cluster.reply = self._reply  # type: ignore[method-assign] # what it has is Events, and they are not read
        self.fault = self.cluster.fault

    async def _reply(self, asked: Asked, line: Line) -> None:
        assert (asked.method, asked.path) == ("POST", PATH), asked
        new = json.loads(asked.body)
        if any(new["metadata"] == each["metadata"] for each in self.taken):
            await line.answer(409, b"{}")
            return
        self.taken.append(new)
        await line.answer(201, asked.body)

    async def take_and_hang(self, asked: Asked, line: Line) -> None:
        """A fault: the Event is taken, and the answer is lost."""
        self.taken.append(json.loads(asked.body))
        await line.silence()


@pytest.fixture
def writing() -> Writing:
    """What there is of Events."""
    return Writing()


@pytest.fixture
def cluster(writing: Writing) -> Cluster:
    """Of the API server that is asked."""
    return writing.cluster


@asynccontextmanager
async def count_refusals(api: Api, limits: Limits = SWIFT, chance: float = 0.0) -> AsyncIterator[EventRecorder]:
    """Events that are written there."""
    events = EventRecorder(api, limits=limits, chance=lambda: chance, wall=AT.timestamp)
    task = asyncio.create_task(events.run())
    try:
        yield events
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def answer(vm: str = "db01", **described_pod: Any) -> Answer:
    """The answer about the start pod of a VM of this name."""
    pod = builders.virt_launcher_pod(claims=["disk"], **described_pod)
    pod["metadata"]["ownerReferences"][0] |= {"name": vm, "uid": f"uid-of-{vm}"}
    found = admit(json.dumps(builders.review(pod)).encode(), manifests(), Policy())
    assert isinstance(found, Answer)
    return found


def manifests() -> Manifests:
    """The cluster of tests/support/drivers/serving.py."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": described()})
    return Manifests(read(text, "cluster"), longhorn_namespace="longhorn-system")


def dropped(events: EventRecorder) -> int:
    """How many were not written, and will not be."""
    return sum(events.counts[each] for each in DROPPED)


async def silent(_: Asked, line: Line) -> None:
    """A fault: nothing is answered."""
    await line.silence()


# What is written.


async def test_an_event_is_about_the_vm(api: Api, server: ApiServer, writing: Writing) -> None:
    """A v1 Event on the VirtualMachineInstance, from us, with the time of the admission."""
    async with count_refusals(api) as events:
        events.hear(answer(), Entry.VIRT_LAUNCHER)
        await until(lambda: writing.taken)
    [event] = writing.taken
    name = event["metadata"].pop("name")
    assert name.startswith("db01.")
    assert 0 < len(event.pop("reportingInstance")) <= 128
    assert event == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "vms"},
        "involvedObject": {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "namespace": "vms",
            "name": "db01",
            "uid": "uid-of-db01",
        },
        "type": "Normal",
        "reason": "CoScheduled",
        "message": "required on node-a: ShareManagerPod: claim disk: pod share-manager-pvc-disk is on node node-a",
        "source": {"component": "kubevirt-coschedule"},
        "firstTimestamp": "2026-01-02T03:04:05Z",
        "lastTimestamp": "2026-01-02T03:04:05Z",
        "count": 1,
        "reportingComponent": "kubevirt-coschedule",
    }
    assert server.asked[0].headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "vm", ["db01", "a" * 231 + ".b", "b" * 253], ids=["short", "cut at a dot", "as long as can be"]
)
async def test_names_of_events_are_in_the_order_of_time(api: Api, writing: Writing, vm: str) -> None:
    """Of one second kubectl shows them as they are listed, which is by name; the API server takes each."""
    times = iter([1e9, 1e9 + 0.001, 2e9])
    events = EventRecorder(api, limits=replace(SWIFT, repeat_seconds=0.0), wall=lambda: next(times))
    task = asyncio.create_task(events.run())
    for _ in range(3):
        events.hear(answer(vm), Entry.VIRT_LAUNCHER)
    await until(lambda: len(writing.taken) == 3)
    task.cancel()
    names = [each["metadata"]["name"] for each in writing.taken]
    assert names == sorted(set(names))
    assert all(is_node_name(name) for name in names)


async def test_the_same_is_written_once(api: Api, writing: Writing) -> None:
    """KubeVirt tries a CREATE again: what is decided then is told again only where it is something else."""
    async with count_refusals(api) as events:
        for _ in range(3):
            events.hear(answer(), Entry.VIRT_LAUNCHER)
        events.hear(answer(opt_in="preferred"), Entry.VIRT_LAUNCHER)
        events.hear(answer("db02"), Entry.VIRT_LAUNCHER)
        await until(lambda: events.counts.total() == 5)
    assert [(each["involvedObject"]["name"], each["reason"]) for each in writing.taken] == [
        ("db01", "CoScheduled"),
        ("db01", "CoScheduledPreferred"),
        ("db02", "CoScheduled"),
    ]
    assert (events.counts[Outcome.WRITTEN], events.counts[Outcome.REPEATED]) == (3, 2)


async def test_the_same_is_written_again_after_a_while(api: Api, writing: Writing) -> None:
    """A VM that is started anew has a new uid; one that is not is told again, but not for ever the same."""
    async with count_refusals(api, replace(SWIFT, repeat_seconds=0.0)) as events:
        for _ in range(2):
            events.hear(answer(), Entry.VIRT_LAUNCHER)
        await until(lambda: len(writing.taken) == 2)
    assert writing.taken[0]["metadata"] != writing.taken[1]["metadata"]


async def test_what_is_not_told_is_not_queued(api: Api, writing: Writing) -> None:
    """A VM that did not ask takes no place from one that did."""
    async with count_refusals(api, replace(SWIFT, queued=1)) as events:
        for _ in range(5):
            events.hear(answer(opt_in=None), Entry.VIRT_LAUNCHER)
        events.hear(answer(), Entry.VIRT_LAUNCHER)
        await until(lambda: writing.taken)
    assert events.counts.total() == 1


async def test_a_share_manager_is_told_by_its_entry(api: Api, writing: Writing) -> None:
    """What the pod of an entry that is not a VM's is decided as, is told by that entry's rules."""
    async with count_refusals(api) as events:
        events.hear(answer(), Entry.SHARE_MANAGER)  # no VM is in its findings
        events.hear(answer("db02"), Entry.VIRT_LAUNCHER)
        await until(lambda: writing.taken)
    assert [each["involvedObject"]["name"] for each in writing.taken] == ["db02"]


# How fast.


async def test_a_storm_is_written_in_time(api: Api, writing: Writing) -> None:
    """A burst at once, the others as fast as is allowed, and each of them."""
    async with count_refusals(api, replace(SWIFT, burst=5, per_second=50.0)) as events:
        began = perf_counter()
        for number in range(15):
            events.hear(answer(f"vm-{number}"), Entry.VIRT_LAUNCHER)
        await until(lambda: len(writing.taken) >= 5)
        await until(lambda: len(writing.taken) == 15)
        assert perf_counter() - began > 10 / 50 - 0.01


async def test_what_the_queue_does_not_hold_is_counted(api: Api, writing: Writing) -> None:
    """A storm that is larger than the memory for it: the first are told, and no admission waits for the others."""
    async with count_refusals(api, replace(SWIFT, queued=4)) as events:
        for number in range(10):
            events.hear(answer(f"vm-{number}"), Entry.VIRT_LAUNCHER)
        await until(lambda: len(writing.taken) == 4)
    assert (events.counts[Outcome.WRITTEN], events.counts[Outcome.OVERFLOWED]) == (4, 6)


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


@pytest.fixture
def logged(capsys: pytest.CaptureFixture[str]) -> Iterator[Logged]:
    """What this process logs."""
    with logging_here(capsys) as found:
        yield found


@pytest.mark.parametrize(("fault", "outcome", "tries"), TROUBLES.values(), ids=TROUBLES)
async def test_what_can_not_be_written_is_tried_so_often_and_dropped(  # noqa: PLR0917 - a row and fixtures
    server: ApiServer,
    api: Api,
    writing: Writing,
    logged: Logged,
    fault: Callable[[Writing], Handler],
    outcome: Outcome,
    tries: int,
) -> None:
    """Counted, said once in the log, and the next one is written."""
    logged.start()
    async with count_refusals(api, replace(IMPATIENT, tries=2)) as events:
        with writing.fault(fault(writing)):
            events.hear(answer(), Entry.VIRT_LAUNCHER)
            await until(lambda: events.counts[outcome])
        assert len(server.asked) == tries
        assert len({asked.body for asked in server.asked}) == 1
        events.hear(answer("db02"), Entry.VIRT_LAUNCHER)
        await until(lambda: events.counts[Outcome.WRITTEN])
    assert dropped(events) == 1
    assert writing.taken[-1]["involvedObject"]["name"] == "db02"
    [line] = logged.lines()
    assert (line["level"], line["message"]) == ("warning", "events not written")


async def test_the_log_tells_when_they_are_written_again(api: Api, writing: Writing, logged: Logged) -> None:
    """And how many were lost since it was told last."""
    logged.start()
    async with count_refusals(api, replace(SWIFT, warn_seconds=0.0)) as events:
        with writing.fault(refusing(403, "Forbidden", "events is forbidden")):
            for vm in ("db01", "db02"):
                events.hear(answer(vm), Entry.VIRT_LAUNCHER)
            await until(lambda: events.counts[Outcome.REFUSED] == 2)
        for vm in ("db03", "db04"):
            events.hear(answer(vm), Entry.VIRT_LAUNCHER)
        await until(lambda: events.counts[Outcome.WRITTEN] == 2)
    lines = logged.lines()
    told = ["events not written", "events not written", "events written again"]
    assert [line["message"] for line in lines] == told
    assert [line["lost"] for line in lines] == [0, 1, 1]
    assert "events is forbidden" in lines[0]["because"]


async def test_an_answer_that_was_lost_makes_no_second_event(api: Api, writing: Writing) -> None:
    """It is sent again under its name, and is there already."""
    hung = asyncio.Event()

    async def once(asked: Asked, line: Line) -> None:
        hung.set()
        await writing.take_and_hang(asked, line)

    async with count_refusals(api, IMPATIENT) as events:
        with writing.fault(once, when=lambda _: not hung.is_set()):
            events.hear(answer(), Entry.VIRT_LAUNCHER)
            await until(lambda: events.counts[Outcome.WRITTEN])
    assert len(writing.taken) == 1


async def test_a_server_that_asks_for_time_gets_it(server: ApiServer, api: Api, writing: Writing) -> None:
    """Retry-After is obeyed, by the next Event too."""
    refused_at: list[float] = []

    async def refuse(asked: Asked, line: Line) -> None:
        refused_at.append(perf_counter())
        await saying(429, b"{}", retry_after="1")(asked, line)

    async with count_refusals(api, replace(SWIFT, tries=1)) as events:
        with writing.fault(refuse):
            events.hear(answer(), Entry.VIRT_LAUNCHER)
            await until(lambda: events.counts[Outcome.FAILED])
        events.hear(answer("db02"), Entry.VIRT_LAUNCHER)
        await until(lambda: events.counts[Outcome.WRITTEN])
        assert perf_counter() - refused_at[0] > 0.99
    assert len(server.asked) == 2


async def test_an_admission_that_can_not_be_told_ends_nothing(api: Api, writing: Writing, logged: Logged) -> None:
    """A fault of ours is logged with the call's uid, without its words, and the next one is told."""
    logged.start()
    broken = replace_decision(answer())
    async with count_refusals(api) as events:
        events.hear(broken, Entry.VIRT_LAUNCHER)
        events.hear(answer("db02"), Entry.VIRT_LAUNCHER)
        await until(lambda: writing.taken)
    [line] = logged.lines()
    assert (line["message"], line["uid"], line["error"]) == ("event not told", broken.request.uid, "ValueError")


def replace_decision(found: Answer) -> Answer:
    """An answer whose decision has lost its evidence, which no decision has."""
    assert found.decision.findings
    return replace(found, decision=replace(found.decision, findings=()))


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_admissions_do_not_notice(problem: str, server: ApiServer, api: Api, writing: Writing) -> None:
    """While the API server is in trouble and the queue is full each is answered, as fast as without Events."""
    fault, *_ = TROUBLES[problem]
    body = json.dumps(builders.review(builders.virt_launcher_pod(claims=["disk"]))).encode()
    async with count_refusals(api, replace(SWIFT, queued=8, write_seconds=_SOON_SECONDS)) as events:
        call = entries(manifests(), Policy(), lambda _: None, events.hear)[Entry.VIRT_LAUNCHER.path]
        took = []
        with writing.fault(fault(writing)):
            while dropped(events) < 100:
                began = perf_counter()
                answered = json.loads(await call(body, 0.0))
                took.append(perf_counter() - began)
                assert answered["response"]["auditAnnotations"]["decision"] == "required"
                await asyncio.sleep(0)
            assert server.asked or dropped(events) == events.counts[Outcome.OVERFLOWED]
    assert median(took) < ADMISSION_SECONDS


# The end.


async def test_what_was_heard_is_written_before_the_end(api: Api, writing: Writing) -> None:
    """The last admissions of a replica are told too."""
    async with count_refusals(api) as events:
        for number in range(20):
            events.hear(answer(f"vm-{number}"), Entry.VIRT_LAUNCHER)
        await events.stop()
        assert len(writing.taken) == 20
    assert dropped(events) == 0


async def test_the_end_does_not_wait_for_a_server_that_is_silent(api: Api, writing: Writing, logged: Logged) -> None:
    """A short moment; then what is left is counted, and said."""
    logged.start()
    async with count_refusals(api) as events:
        with writing.fault(silent):
            for number in range(3):
                events.hear(answer(f"vm-{number}"), Entry.VIRT_LAUNCHER)
            began = perf_counter()
            await events.stop(0.1)
            assert perf_counter() - began < SWIFT.write_seconds
    assert events.counts[Outcome.STOPPED] == 3
    [line] = logged.lines()
    assert (line["message"], line["dropped"]) == ("events dropped", 3)


def test_the_limits_are_what_the_readme_says() -> None:
    """Ten a second, the same once in ten minutes, and half a thousand that wait."""
    text = (Path(__file__).parents[4] / "README.md").read_text(encoding="utf-8")
    section = text.partition("\n### Events\n")[2].partition("\n#")[0]
    for words in (
        f"{DEFAULT_LIMITS.per_second:g} a second",
        f"{DEFAULT_LIMITS.repeat_seconds / 60:g} minutes",
        f"{DEFAULT_LIMITS.queued}",
    ):
        assert words in section
