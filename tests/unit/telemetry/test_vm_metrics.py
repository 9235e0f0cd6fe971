"""What is told of VMs: how they are, since when, what they were given, and which of them have started."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import pytest
from msgspec.structs import replace
from support.drivers.scraping import told
from support.objects.fleets import launcher, the_row

from webhook.core.api.meta import NamespacedName
from webhook.core.observe.vm_status import Decided, State, VMStatus
from webhook.kube.metrics import VMMetrics, vm_families
from webhook.kube.vm_status import Changes, VMStatuses
from webhook.telemetry.exposition import Family

ROW: Final = replace(
    the_row(launcher()),
    decided=Decided.REQUIRED,
    state=State.TOGETHER,
    since="2026-01-01T00:00:00Z",
)


def test_vms_are_told_by_state_and_decision() -> None:
    """Every state and decision is there, also where no VM is in it."""
    apart = replace(ROW, state=State.APART, decided=Decided.NOTHING)
    moved = replace(ROW, decided=Decided.MIGRATED)
    found = told(lambda: vm_families([ROW, moved, apart]))
    states = {each.labels["state"]: each.value for each in found.samples if each.name == Family.VMS.title}
    assert states == {**dict.fromkeys(State, 0), "together": 2, "apart": 1}
    decided = {each.labels["decision"]: each.value for each in found.samples if each.name == Family.VM_DECISIONS.title}
    assert decided == {"required": 1, "preferred": 0, "unchanged": 0, "migrated": 1, "nothing": 1}


def test_the_longest_time_in_a_state_is_told() -> None:
    """Of a state that no VM is in, or whose VMs nobody knows the time of, there is none."""
    apart = replace(ROW, state=State.APART, since="2026-01-02T00:00:00Z")
    rows = [replace(apart, since="2026-01-03T00:00:00Z"), apart, replace(ROW, state=State.FREE, since=None)]
    found = told(lambda: vm_families(rows))
    assert found.value(Family.VMS_SINCE.title, state="apart") == datetime(2026, 1, 2, tzinfo=UTC).timestamp()
    assert [each for each in found.samples if each.name == Family.VMS_SINCE.title][1:] == []


class Rows:
    """A fleet whose rows a test sets; what has changed is told as all that there is, or as the difference."""

    def __init__(self) -> None:
        self.snapshot = VMStatuses(
            version=0, at="", rows=(), counts={}, by_namespace={}, late=("nodes: not listed yet",)
        )
        self.whole = False
        self._before: tuple[VMStatus, ...] = ()

    def become(self, *names: str, late: tuple[str, ...] = (), decided: Decided = Decided.NOTHING) -> None:
        """The next pass has found these VMs, those that were not there before with this decision."""
        there = {row.name: row for row in self.snapshot.rows}
        rows = tuple(there.get(name) or replace(ROW, name=name, decided=decided) for name in names)
        self._before = self.snapshot.rows
        self.snapshot = replace(self.snapshot, version=self.snapshot.version + 1, rows=rows, late=late)

    def changes(self, version: int) -> Changes:
        """As Fleet."""
        assert version in (0, self.snapshot.version - 1), "each change is asked for once"
        rows, before = self.snapshot.rows, self._before
        new = rows if self.whole else tuple(row for row in rows if row not in before)
        gone = () if self.whole else tuple(NamespacedName(row.namespace, row.name) for row in before if row not in rows)
        return Changes(version=self.snapshot.version, rows=new, gone=gone, whole=self.whole)


@pytest.fixture(params=[False, True], ids=["told as a difference", "told whole"])
def rows(request: pytest.FixtureRequest) -> Rows:
    """No VM, and no cache yet."""
    made = Rows()
    made.whole = request.param
    return made


def test_of_vms_nothing_is_told_before_it_is_known(rows: Rows) -> None:
    """No VM apart would be a lie as long as no cache was whole."""
    vms = VMMetrics(rows)  # type: ignore[arg-type] # that much of a Fleet is asked for
    assert Family.VMS.title not in told(vms.families).names
    rows.become(late=("nodes: forbidden",))
    assert Family.VMS.title not in told(vms.families).names
    rows.become("a")
    assert told(vms.families).value(Family.VMS.title) == 1
    rows.become("a", late=("nodes: cut",))
    assert told(vms.families).value(Family.VMS.title) == 1


def test_a_vm_that_was_not_there_has_started(rows: Rows) -> None:
    """Those that were there at first have not, nor those that go; who comes back has started again."""
    vms = VMMetrics(rows)  # type: ignore[arg-type] # as above
    seen = []
    for names in (("a", "b"), ("a", "b", "c"), ("a", "c"), ("a", "b", "c")):
        rows.become(*names)
        seen.append(told(vms.families).value(Family.VM_STARTS.title, decision="nothing"))
        assert told(vms.families).value(Family.VM_STARTS.title) == seen[-1]
    assert seen == [0, 1, 1, 2]


def test_a_start_is_told_by_what_the_pod_was_given(rows: Rows) -> None:
    """Whether the webhook was asked at all is what an alert is about."""
    vms = VMMetrics(rows)  # type: ignore[arg-type] # as above
    rows.become()
    told(vms.families)
    rows.become("a", decided=Decided.REQUIRED)
    found = told(vms.families)
    assert found.value(Family.VM_STARTS.title, decision="required") == found.value(Family.VM_STARTS.title) == 1
