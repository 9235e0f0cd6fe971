"""The EventRecorder with a fake API server: what it writes, how often, and what it drops at the end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import perf_counter

import pytest
from msgspec.structs import replace
from support.drivers.logging_here import Logged
from support.fakes.api_server import ApiServer, until
from support.fakes.event_writes import SWIFT, Writing, answer, dropped, recording, silent, steered

from webhook.component_base.client.api import Api
from webhook.core.admit import Answer, Entry
from webhook.core.api.affinity import is_node_name
from webhook.core.observe.events import Outcome
from webhook.kube.events import DEFAULT_EVENT_LIMITS, EventRecorder

# What is written.


async def test_an_event_is_about_the_vm(api: Api, server: ApiServer, writing: Writing) -> None:
    """The webhook writes a v1 Event on the VirtualMachineInstance, with the time of the admission."""
    async with recording(api) as events:
        events.record(answer(), Entry.VIRT_LAUNCHER)
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
    """Kubectl shows Events of one second by name. The API server accepts each name."""
    times = iter([1e9, 1e9 + 0.001, 2e9])
    events = EventRecorder(api, limits=replace(SWIFT, repeat_seconds=0.0), wall=lambda: next(times))
    task = asyncio.create_task(events.run())
    for _ in range(3):
        events.record(answer(vm), Entry.VIRT_LAUNCHER)
    await until(lambda: len(writing.taken) == 3)
    task.cancel()
    names = [each["metadata"]["name"] for each in writing.taken]
    assert names == sorted(set(names))
    assert all(is_node_name(name) for name in names)


async def test_the_same_is_written_once(api: Api, writing: Writing) -> None:
    """KubeVirt repeats a CREATE. The webhook writes an Event for the second decision only if it differs."""
    async with recording(api) as events:
        for _ in range(3):
            events.record(answer(), Entry.VIRT_LAUNCHER)
        events.record(answer(opt_in="preferred"), Entry.VIRT_LAUNCHER)
        events.record(answer("db02"), Entry.VIRT_LAUNCHER)
        await until(lambda: events.counts.total() == 5)
    assert [(each["involvedObject"]["name"], each["reason"]) for each in writing.taken] == [
        ("db01", "CoScheduled"),
        ("db01", "CoScheduledPreferred"),
        ("db02", "CoScheduled"),
    ]
    assert (events.counts[Outcome.WRITTEN], events.counts[Outcome.REPEATED]) == (3, 2)


async def test_of_many_vms_the_oldest_is_forgotten(api: Api, writing: Writing) -> None:
    """So the memory is bounded. What is forgotten is written again."""
    async with recording(api, replace(SWIFT, remembered=2)) as events:
        for vm in ("db01", "db02", "db03", "db01", "db03"):
            events.record(answer(vm), Entry.VIRT_LAUNCHER)
        await until(lambda: events.counts.total() == 5)
    assert [each["involvedObject"]["name"] for each in writing.taken] == ["db01", "db02", "db03", "db01"]


async def test_an_admission_without_an_event_is_not_queued(api: Api, writing: Writing) -> None:
    """A VM that did not ask for co-scheduling takes no place in the queue."""
    async with recording(api, replace(SWIFT, queued=1)) as events:
        for _ in range(5):
            events.record(answer(opt_in=None), Entry.VIRT_LAUNCHER)
        events.record(answer(), Entry.VIRT_LAUNCHER)
        await until(lambda: writing.taken and events.counts.total())
    assert events.counts.total() == 1


async def test_the_event_of_a_share_manager_pod_depends_on_its_entry(api: Api, writing: Writing) -> None:
    """The entry decides by which rules the webhook describes the decision on a share-manager pod."""
    async with recording(api) as events:
        events.record(answer(), Entry.SHARE_MANAGER)  # no VM is in its findings
        events.record(answer("db02"), Entry.VIRT_LAUNCHER)
        await until(lambda: writing.taken)
    assert [each["involvedObject"]["name"] for each in writing.taken] == ["db02"]


# How fast.


async def test_a_storm_is_written_in_time(api: Api, writing: Writing) -> None:
    """The recorder writes a burst at once, and then all others at the permitted rate."""
    async with recording(api, replace(SWIFT, burst=5, per_second=50.0)) as events:
        began = perf_counter()
        for number in range(15):
            events.record(answer(f"vm-{number}"), Entry.VIRT_LAUNCHER)
        await until(lambda: len(writing.taken) >= 5)
        await until(lambda: len(writing.taken) == 15)
        assert perf_counter() - began > 10 / 50 - 0.01


async def test_what_the_queue_does_not_hold_is_counted(api: Api, writing: Writing) -> None:
    """If there are more answers than the queue can hold, the first ones are written.

    No admission waits for the others.
    """
    async with recording(api, replace(SWIFT, queued=4)) as events:
        for number in range(10):
            events.record(answer(f"vm-{number}"), Entry.VIRT_LAUNCHER)
        await until(lambda: events.counts[Outcome.WRITTEN] == 4)
    assert len(writing.taken) == 4
    assert (events.counts[Outcome.WRITTEN], events.counts[Outcome.OVERFLOWED]) == (4, 6)


async def test_each_event_of_an_answer_is_counted(api: Api, writing: Writing) -> None:
    """A share-manager pod that is steered to three VMs has three Events. An answer without any takes no place."""
    async with recording(api, replace(SWIFT, queued=2)) as events:
        events.record(answer(), Entry.SHARE_MANAGER)  # no VM is in its findings
        events.record(steered("db01", "db02", "db03"), Entry.SHARE_MANAGER)
        await until(lambda: events.counts[Outcome.WRITTEN] == 2)
        with writing.fault(silent):
            events.record(steered("db04", "db05"), Entry.SHARE_MANAGER)
            await events.stop(0.1)
    assert [each["involvedObject"]["name"] for each in writing.taken] == ["db01", "db02"]
    assert (events.counts[Outcome.OVERFLOWED], events.counts[Outcome.STOPPED], dropped(events)) == (1, 2, 3)


async def test_an_answer_that_makes_no_event_is_still_the_answer(api: Api, writing: Writing, logged: Logged) -> None:
    """The recorder logs the fault with the request's uid, and takes the next answer."""
    logged.start("info")
    broken = replace_decision(answer())
    async with recording(api) as events:
        events.record(broken, Entry.VIRT_LAUNCHER)
        events.record(answer("db02"), Entry.VIRT_LAUNCHER)
        await until(lambda: writing.taken)
    [line] = logged.lines()
    assert (line["message"], line["uid"], line["error"]) == (
        "event could not be written",
        broken.request.uid,
        "ValueError",
    )


def replace_decision(found: Answer) -> Answer:
    """An answer whose decision has lost its evidence, which no decision has."""
    assert found.decision.findings
    return replace(found, decision=replace(found.decision, findings=()))


# The end.


async def test_queued_events_are_written_before_the_end(api: Api, writing: Writing) -> None:
    """The recorder writes the Events of a replica's last admissions, too."""
    async with recording(api) as events:
        for number in range(20):
            events.record(answer(f"vm-{number}"), Entry.VIRT_LAUNCHER)
        await events.stop()
        assert len(writing.taken) == 20
    assert dropped(events) == 0


async def test_the_end_does_not_wait_for_a_server_that_is_silent(api: Api, writing: Writing, logged: Logged) -> None:
    """The recorder waits 2 s at most. It counts and logs the Events that are left."""
    logged.start("info")
    async with recording(api) as events:
        with writing.fault(silent):
            for number in range(3):
                events.record(answer(f"vm-{number}"), Entry.VIRT_LAUNCHER)
            began = perf_counter()
            await events.stop(0.1)
            assert perf_counter() - began < SWIFT.write_seconds
    assert events.counts[Outcome.STOPPED] == 3
    [line] = logged.lines()
    assert (line["message"], line["dropped"]) == ("events dropped", 3)


def test_the_limits_are_what_the_page_says() -> None:
    """10 Events a second, the same Event once in 10 minutes, and 512 answers in the queue."""
    page = (Path(__file__).parents[4] / "docs/reference/metrics.md").read_text(encoding="utf-8")
    for words in (
        f"{DEFAULT_EVENT_LIMITS.per_second:g} a second",
        f"{DEFAULT_EVENT_LIMITS.repeat_seconds / 60:g} minutes",
        f"{DEFAULT_EVENT_LIMITS.queued}",
    ):
        assert words in page
