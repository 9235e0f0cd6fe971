"""What `reunite` reports: each thing once, as a log line, an Event and a count."""

from __future__ import annotations

import logging

import pytest
from msgspec.structs import replace
from support.objects.reunite_vms import move

from webhook.core.observe.events import Event
from webhook.core.reunite.migration import Migration
from webhook.core.reunite.not_yet import Rule
from webhook.reunite.metrics import ReuniteFamily, reunite_families
from webhook.reunite.reporter import Reporter

VM = ("ns", "vm")


@pytest.fixture
def events() -> list[Event]:
    """The Events that were reported."""
    return []


@pytest.fixture
def reporter(events: list[Event]) -> Reporter:
    """A reporter that knows the uid of every VMI but `gone`."""
    return Reporter(
        events.append,
        lambda _, name: "" if name == "gone" else f"uid-{name}",
        memory_bytes=lambda _, name: 7 * len(name),
    )


def samples(reporter: Reporter) -> dict[tuple[str, ...], float]:
    """Name and label values of each sample -> value."""
    families = reunite_families(reporter, dry_run=True)
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


def test_a_rule_is_reported_when_it_changes(reporter: Reporter, events: list[Event]) -> None:
    """The same rule again is not, whatever its sentence says."""
    reporter.rules({VM: Rule.TOO_SOON.says_no(since="09:00", seconds=1)})
    reporter.rules({VM: Rule.TOO_SOON.says_no(since="09:01", seconds=1)})
    reporter.rules({VM: Rule.MIGRATING.says_no()})
    assert [(each.reason, each.message.partition(":")[0], each.uid) for each in events] == [
        ("ReuniteWaiting", "TooSoon", "uid-vm"),
        ("ReuniteWaiting", "Migrating", "uid-vm"),
    ]
    assert samples(reporter)["kubevirt_coschedule_reunite_waiting_vms", "Migrating"] == 1
    assert samples(reporter)["kubevirt_coschedule_reunite_waiting_vms", "TooSoon"] == 0


def test_a_vm_that_came_home_and_is_apart_again_is_reported_again(reporter: Reporter, events: list[Event]) -> None:
    """The rule was not true in between."""
    for waiting in ({VM: Rule.MIGRATING.says_no()}, {}, {VM: Rule.MIGRATING.says_no()}):
        reporter.rules(waiting)
    assert len(events) == 2


def test_the_end_of_a_migration_is_reported_once(reporter: Reporter, events: list[Event]) -> None:
    """One of ours; a migration that had ended before the start of the program is not reported."""
    others, old = move(9, "Running"), move(99, ours=True, name="old")
    running = move(5, "Running", ours=True, name="one")
    failing = move(5, "Running", ours=True, name="two", vmi="other")
    reporter.ended([_known(each) for each in (others, old, running, failing)])
    ended = [
        _known(move(5, ours=True, name="one", target_node="b")),
        _known(move(5, "Failed", ours=True, name="two", vmi="other")),
    ]
    for _ in range(2):
        reporter.ended([_known(move(9)), _known(old), *ended])
    assert [(each.reason, each.message, each.warning) for each in events] == [
        ("ReuniteSucceeded", "migration one to node b succeeded", False),
        ("ReuniteFailed", "migration two to node unknown failed", True),
    ]
    found = samples(reporter)
    assert found["kubevirt_coschedule_reunite_migrations_total", "succeeded"] == 1
    assert found["kubevirt_coschedule_reunite_migrations_total", "failed"] == 1
    assert found["kubevirt_coschedule_reunite_migrated_memory_bytes_total",] == 7 * len("vm")


def _known(migration: Migration) -> Migration:
    """The migration with a uid of its own."""
    return replace(migration, uid=f"uid-{migration.name}")


def test_caches_that_are_late_are_reported_once(reporter: Reporter, caplog: pytest.LogCaptureFixture) -> None:
    """And once when they are up to date again."""
    with caplog.at_level(logging.INFO, logger="webhook"):
        for problems in (("nodes: forbidden",), ("nodes: forbidden",)):
            reporter.not_known(problems)
        reporter.known()
        reporter.known()
    assert [each.getMessage() for each in caplog.records] == ["waiting for caches", "caches are up to date"]


def test_a_vmi_that_is_gone_gets_no_event(reporter: Reporter, events: list[Event]) -> None:
    """An Event needs the uid of its object."""
    reporter.created(("ns", "gone"), "migration gone-reunite-1")
    assert events == []
    assert samples(reporter)["kubevirt_coschedule_reunite_migrations_total", "created"] == 1
    assert samples(reporter)["kubevirt_coschedule_reunite_dry_run",] == 1


def test_a_rule_that_still_says_no_is_repeated_as_an_event(
    events: list[Event], caplog: pytest.LogCaptureFixture
) -> None:
    """Before the API server forgets the Event, so that `status` can show it; the log has it once."""
    clock = [0.0]
    reporter = Reporter(events.append, lambda *_: "uid", lambda: clock[0])
    with caplog.at_level(logging.INFO, logger="webhook"):
        for clock[0] in (0.0, 10.0, 1_790.0, 1_800.0, 3_590.0, 3_600.0):
            reporter.rules({VM: Rule.MIGRATING.says_no()})
    assert len(events) == 3
    assert len(caplog.records) == 1


def test_what_a_dry_run_would_do_is_repeated_as_an_event(events: list[Event], caplog: pytest.LogCaptureFixture) -> None:
    """As a rule that still says no. Another sentence does not wait."""
    clock = [0.0]
    reporter = Reporter(events.append, lambda *_: "uid", lambda: clock[0], dry_run=True)
    with caplog.at_level(logging.INFO, logger="webhook"):
        for clock[0] in (0.0, 10.0, 1_799.0, 1_800.0):
            reporter.rules({})
            reporter.would(VM, "create migration one")
        reporter.would(VM, "create migration two")
    assert [each.message[:26] for each in events] == ["would create migration one"] * 2 + ["would create migration two"]
    assert len(caplog.records) == 2


def test_every_metric_of_the_table_is_exposed(reporter: Reporter) -> None:
    """No metric is there in words only."""
    assert {name for name, *_ in samples(reporter)} == {each.title for each in ReuniteFamily}
