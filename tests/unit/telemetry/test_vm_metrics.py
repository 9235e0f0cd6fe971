"""The metrics of VMs: their states, since when, the decisions for their pods, and their starts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import pytest
from msgspec.structs import replace
from support.drivers.scraping import told
from support.objects.fleets import launcher, the_row

from webhook.core.api.meta import NamespacedName
from webhook.core.observe.past_decision import Decided
from webhook.core.observe.vm_status import State, VMStatus
from webhook.kube.metrics import VMMetrics, vm_families
from webhook.kube.vm_seconds import VMSeconds
from webhook.kube.vm_status import Changes, VMStatuses
from webhook.telemetry.exposition import Family

ROW: Final = replace(
    the_row(launcher()),
    decided=Decided.REQUIRED,
    state=State.TOGETHER,
    since="2026-01-01T00:00:00Z",
)


def test_vms_are_counted_by_state_and_decision() -> None:
    """Every state and decision has a sample, even if no VM has it."""
    apart = replace(ROW, state=State.APART, decided=Decided.NOTHING)
    moved = replace(ROW, decided=Decided.MIGRATED)
    found = told(lambda: vm_families([ROW, moved, apart]))
    states = {each.labels["state"]: each.value for each in found.samples if each.name == Family.VMS.title}
    assert states == {**dict.fromkeys(State, 0), "together": 2, "apart": 1}
    decided = {each.labels["decision"]: each.value for each in found.samples if each.name == Family.VM_DECISIONS.title}
    assert decided == {"required": 1, "preferred": 0, "unchanged": 0, "migrated": 1, "nothing": 1}


def test_the_longest_time_in_a_state_has_a_sample() -> None:
    """A state without VMs, or with VMs since an unknown time, has no sample."""
    apart = replace(ROW, state=State.APART, since="2026-01-02T00:00:00Z")
    rows = [replace(apart, since="2026-01-03T00:00:00Z"), apart, replace(ROW, state=State.FREE, since=None)]
    found = told(lambda: vm_families(rows))
    assert found.value(Family.VMS_SINCE.title, state="apart") == datetime(2026, 1, 2, tzinfo=UTC).timestamp()
    assert [each for each in found.samples if each.name == Family.VMS_SINCE.title][1:] == []


class Rows:
    """A tracker whose rows a test sets. Changes are reported as all rows, or as the difference."""

    def __init__(self) -> None:
        self.snapshot = VMStatuses(
            version=0, at="", rows=(), counts={}, by_namespace={}, late=("nodes: not listed yet",)
        )
        self.whole = False
        self.seconds = VMSeconds()
        self._before: tuple[VMStatus, ...] = ()

    def become(self, *names: str, late: tuple[str, ...] = (), decided: Decided = Decided.NOTHING) -> None:
        """Let the next pass find these VMs; new ones have this decision."""
        there = {row.name: row for row in self.snapshot.rows}
        rows = tuple(there.get(name) or replace(ROW, name=name, decided=decided) for name in names)
        self._before = self.snapshot.rows
        self.snapshot = replace(self.snapshot, version=self.snapshot.version + 1, rows=rows, late=late)

    def changes(self, version: int) -> Changes:
        """As in VMStatusTracker."""
        assert version in (0, self.snapshot.version - 1), "each change is asked for once"
        rows, before = self.snapshot.rows, self._before
        new = rows if self.whole else tuple(row for row in rows if row not in before)
        gone = () if self.whole else tuple(NamespacedName(row.namespace, row.name) for row in before if row not in rows)
        return Changes(version=self.snapshot.version, rows=new, gone=gone, whole=self.whole)


@pytest.fixture(params=[False, True], ids=["told as a difference", "told whole"])
def rows(request: pytest.FixtureRequest) -> Rows:
    """A tracker without VMs, before its first complete cache."""
    made = Rows()
    made.whole = request.param
    return made


def test_vms_have_no_samples_before_they_are_known(rows: Rows) -> None:
    """0 VMs apart would be wrong while no cache is complete."""
    vms = VMMetrics(rows)  # type: ignore[arg-type] # that much of a Fleet is asked for
    assert Family.VMS.title not in told(vms.families).names
    rows.become(late=("nodes: forbidden",))
    assert Family.VMS.title not in told(vms.families).names
    rows.become("a")
    assert told(vms.families).value(Family.VMS.title) == 1
    rows.become("a", late=("nodes: cut",))
    assert told(vms.families).value(Family.VMS.title) == 1


def test_a_vm_that_was_not_there_has_started(rows: Rows) -> None:
    """VMs of the first pass have not started, nor those that go. A VM that comes back has started again."""
    vms = VMMetrics(rows)  # type: ignore[arg-type] # as above
    seen = []
    for names in (("a", "b"), ("a", "b", "c"), ("a", "c"), ("a", "b", "c")):
        rows.become(*names)
        seen.append(told(vms.families).value(Family.VM_STARTS.title, decision="nothing"))
        assert told(vms.families).value(Family.VM_STARTS.title) == seen[-1]
    assert seen == [0, 1, 1, 2]


def test_a_start_is_counted_by_the_decision_for_its_pod(rows: Rows) -> None:
    """An alert needs to know whether the API server called the webhook."""
    vms = VMMetrics(rows)  # type: ignore[arg-type] # as above
    rows.become()
    told(vms.families)
    rows.become("a", decided=Decided.REQUIRED)
    found = told(vms.families)
    assert found.value(Family.VM_STARTS.title, decision="required") == found.value(Family.VM_STARTS.title) == 1


def test_the_time_of_vms_is_exposed_as_of_the_scrape(rows: Rows) -> None:
    """Every state has a sample. The time goes on while no row changes."""
    vms = VMMetrics(rows)  # type: ignore[arg-type] # as above
    rows.become("a")
    for at, seen in enumerate((0, 1, 2)):
        rows.seconds.add({State.TOGETHER: 1}, late=False, at=at)
        found = told(vms.families)
        states = {state: found.value(Family.VM_SECONDS.title, state=state) for state in State}
        assert states == {**dict.fromkeys(State, 0), State.TOGETHER: seen}
