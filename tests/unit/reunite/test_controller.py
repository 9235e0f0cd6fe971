"""The controller of reunite: what it writes in a round, after faults, after a restart, and beside a second process."""

from __future__ import annotations

import asyncio
import logging

import pytest
from support.fakes.migrated_vm import NO_ANSWER, Cluster
from support.waits import MAX_WAIT_SECONDS

from webhook.core.reunite.not_yet import Rule

MIGRATIONS = "/apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstancemigrations"
FIRST = "vm-reunite-1"


@pytest.fixture
def cluster() -> Cluster:
    """One VM that is apart, and no migration."""
    return Cluster()


async def test_a_vm_that_is_apart_gets_one_migration(cluster: Cluster) -> None:
    """The round after that sees the migration and creates none. The VM's Events tell both."""
    controller, reporter = cluster.controller()
    await controller.round()
    assert list(cluster.migrations) == [FIRST]
    found = await controller.round()
    assert found is not None
    assert found.plan.waiting["ns", "vm"].rule is Rule.MIGRATING
    assert cluster.writes == [("POST", MIGRATIONS)]
    assert [event.reason for event in cluster.events] == ["ReuniteStarted", "ReuniteWaiting"]
    assert reporter.migrations["created"] == 1


async def test_nothing_is_created_before_the_watch_shows_the_last_migration(cluster: Cluster) -> None:
    """For a minute, in which a watch that works shows it."""
    controller, _ = cluster.controller()
    cluster.shown = {}
    await controller.round()
    cluster.now += 59
    assert await controller.round() is None
    assert len(cluster.writes) == 1
    cluster.now += 1
    assert await controller.round() is not None


async def test_a_watch_that_never_shows_the_migration_makes_no_second_one(cluster: Cluster) -> None:
    """The name follows from what was seen, so that the API server knows it already."""
    controller, reporter = cluster.controller()
    cluster.shown = {}
    await controller.round()
    cluster.now += 61
    await controller.round()
    assert list(cluster.migrations) == [FIRST]
    assert (len(cluster.writes), reporter.migrations["refused"]) == (2, 1)


async def test_a_process_that_is_killed_after_its_request_makes_no_second_migration(cluster: Cluster) -> None:
    """The next process knows nothing of the first one, and its watch may be late."""
    cluster.answer = NO_ANSWER
    await cluster.controller()[0].round()
    cluster.answer, cluster.shown = None, {}
    restarted, reporter = cluster.controller()
    await restarted.round()
    assert list(cluster.migrations) == [FIRST]
    assert reporter.migrations["refused"] == 1


async def test_two_processes_at_once_create_one_migration(cluster: Cluster) -> None:
    """Both decide by the same cluster, in which there is none yet."""
    cluster.shown = {}
    controllers = [cluster.controller() for _ in range(2)]
    await asyncio.gather(*(controller.round() for controller, _ in controllers))
    assert list(cluster.migrations) == [FIRST]
    assert [reporter.migrations["created"] for _, reporter in controllers] == [1, 0]


@pytest.mark.parametrize("answer", [403, 409, 422, 500], ids=["KubeVirt", "exists", "invalid", "server error"])
async def test_a_refusal_ends_nothing(answer: int, cluster: Cluster) -> None:
    """The migration is created once the API server takes it; after a server error in a minute, else at once."""
    controller, reporter = cluster.controller()
    cluster.answer = answer
    await controller.round()
    assert (cluster.migrations, reporter.migrations["refused"]) == ({}, 1)
    cluster.answer = None
    cluster.now += 61 if answer == 500 else 10
    await controller.round()
    assert list(cluster.migrations) == [FIRST]


async def test_nothing_is_done_while_a_cache_is_stale(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """The log says once which one, and once that all are up to date again."""
    controller, _ = cluster.controller()
    cluster.stale = ("pods: no answer",)
    with caplog.at_level(logging.INFO, "webhook"):
        assert await controller.round() is None
        assert await controller.round() is None
        cluster.stale = ()
        assert await controller.round() is not None
    lines = [record.message for record in caplog.records]
    assert lines[:2] == ["waiting for caches", "caches are up to date"]


async def test_a_migration_that_has_not_begun_after_a_minute_is_deleted_as_it_was_read(cluster: Cluster) -> None:
    """With its uid and its resourceVersion. If KubeVirt has changed it meanwhile, it stays."""
    controller, reporter = cluster.controller()
    await controller.round()
    cluster.now += 61
    cluster.answer = 409
    await controller.round()
    assert list(cluster.migrations) == [FIRST]
    cluster.answer = None
    await controller.round()
    assert cluster.migrations == {}
    expected = {"preconditions": {"uid": f"uid-{FIRST}", "resourceVersion": "7"}}
    assert cluster.deleted == [expected, expected]
    assert (reporter.migrations["deleted"], reporter.migrations["refused"]) == (1, 1)


async def test_a_deletion_without_an_answer_may_have_been_carried_out(cluster: Cluster) -> None:
    """So the VM waits as after a deletion that was answered: a deleted migration leaves no other trace."""
    controller, reporter = cluster.controller()
    await controller.round()
    cluster.now += 61
    cluster.answer = 500
    await controller.round()
    cluster.answer = None
    cluster.migrations.clear()
    found = await controller.round()
    assert found is not None
    assert [why.rule for why in found.plan.waiting.values()] == [Rule.NOT_BEGUN]
    assert (cluster.migrations, reporter.migrations["deleted"]) == ({}, 0)


async def test_a_dry_run_writes_only_events(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """Log and Events say once what it would do, and again after a rule said no. Each Event names the dry run."""
    controller, reporter = cluster.controller(dry_run=True)
    with caplog.at_level(logging.INFO, "webhook"):
        await controller.round()
        await controller.round()
        assert [record.message for record in caplog.records] == ["dry run"]
        cluster.refusal = "node node-a: Insufficient memory"
        await controller.round()
        cluster.refusal = ""
        await controller.round()
    assert (cluster.writes, reporter.migrations["created"]) == ([], 0)
    assert [record.message for record in caplog.records] == ["dry run", "not yet", "dry run"]
    sentence = "create migration vm-reunite-1: from node a to node b, that of its share-manager"
    would = f"would {sentence}; --dry-run=on, so nothing is done"
    assert [(event.reason, event.message) for event in cluster.events] == [
        ("ReuniteDryRun", would),
        ("ReuniteWaiting", "NotPlaceable: node node-a: Insufficient memory; --dry-run=on"),
        ("ReuniteDryRun", would),
    ]


async def test_the_same_refusal_is_logged_once(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """The metric counts each; a right that the account lacks would fill the log."""
    controller, reporter = cluster.controller()
    cluster.answer = 403
    await controller.round()
    await controller.round()
    assert [record.message for record in caplog.records] == ["refused"]
    assert reporter.migrations["refused"] == 2


async def test_a_node_that_can_not_take_the_vm_is_the_rule_that_is_reported(cluster: Cluster) -> None:
    """With the sentence of the plan, once."""
    controller, reporter = cluster.controller()
    cluster.refusal = "node node-a: Insufficient memory"
    await controller.round()
    await controller.round()
    assert cluster.writes == []
    assert reporter.waiting == {Rule.NOT_PLACEABLE: 1}
    assert [event.message for event in cluster.events] == ["NotPlaceable: node node-a: Insufficient memory"]


@pytest.mark.parametrize(
    ("phase", "reason", "counted"),
    [("Succeeded", "ReuniteSucceeded", "succeeded"), ("Failed", "ReuniteFailed", "failed")],
)
async def test_the_end_of_a_migration_is_reported_by_the_next_round(
    phase: str, reason: str, counted: str, cluster: Cluster
) -> None:
    """As an Event and in the metrics."""
    controller, reporter = cluster.controller()
    await controller.round()
    await controller.round()
    cluster.ends(phase)
    await controller.round()
    await controller.round()
    assert [event.reason for event in cluster.events].count(reason) == 1
    assert reporter.migrations[counted] == 1


async def test_a_fault_in_a_round_does_not_end_the_process(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """The log has the fault, and the next round begins again."""
    controller, _ = cluster.controller()
    cluster.faults = [ValueError("broken")]
    task = asyncio.create_task(controller.run(every_seconds=0))
    await asyncio.wait_for(cluster.created.wait(), MAX_WAIT_SECONDS)
    task.cancel()
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == ["a round failed"]
