"""The metrics of VMs: their states, since when, the decisions for their pods, their starts, and VMs by name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import pytest
from msgspec.structs import replace
from support.drivers.scraping import told
from support.objects.fleets import launcher, the_row

from webhook.core.observe.past_decision import Decided
from webhook.core.observe.vm_status import TROUBLED, State, VMStatus
from webhook.kube.metrics import VMMetrics, vm_families
from webhook.kube.vm_status import VMSeconds, VMStatuses

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
    states = {each.labels["state"]: each.value for each in found.samples if each.name == "kubevirt_coschedule_vms"}
    assert states == {**dict.fromkeys(State, 0), "together": 2, "apart": 1}
    decided = {
        each.labels["decision"]: each.value for each in found.samples if each.name == "kubevirt_coschedule_vm_decisions"
    }
    assert decided == {"required": 1, "preferred": 0, "unchanged": 0, "migrated": 1, "nothing": 1}


def test_the_longest_time_in_a_state_has_a_sample() -> None:
    """A state without VMs, or with VMs since an unknown time, has no sample."""
    apart = replace(ROW, state=State.APART, since="2026-01-02T00:00:00Z")
    rows = [replace(apart, since="2026-01-03T00:00:00Z"), apart, replace(ROW, state=State.FREE, since=None)]
    found = told(lambda: vm_families(rows))
    assert (
        found.value("kubevirt_coschedule_vms_oldest_timestamp_seconds", state="apart")
        == datetime(2026, 1, 2, tzinfo=UTC).timestamp()
    )
    assert [each for each in found.samples if each.name == "kubevirt_coschedule_vms_oldest_timestamp_seconds"][1:] == []


class Tracked:
    """A tracker whose rows a test sets."""

    def __init__(self) -> None:
        self.snapshot = VMStatuses(at="", known=False)
        self.seconds = VMSeconds()

    def become(self, *rows: VMStatus, late: tuple[str, ...] = ()) -> None:
        """Let the next pass find these VMs."""
        self.snapshot = replace(self.snapshot, rows=rows, late=late, known=True)


class Started:
    """Starts that a test sets."""

    def __init__(self) -> None:
        self.by_decision: dict[Decided, int] = {}


@pytest.fixture
def tracked() -> Tracked:
    """A tracker without VMs, before its first complete cache."""
    return Tracked()


def of(tracked: Tracked, started: Started | None = None) -> VMMetrics:
    """Return the metrics of the tracker and these starts."""
    return VMMetrics(tracked, started or Started())  # type: ignore[arg-type] # that much of both is asked for


def test_vms_have_no_samples_before_they_are_known(tracked: Tracked) -> None:
    """0 VMs apart would be wrong while no cache is complete."""
    vms = of(tracked)
    assert "kubevirt_coschedule_vms" not in told(vms.families).names
    tracked.become(late=("nodes: forbidden",))
    assert "kubevirt_coschedule_vms" not in told(vms.families).names
    tracked.become(ROW)
    assert told(vms.families).value("kubevirt_coschedule_vms") == 1
    tracked.become(ROW, late=("nodes: cut",))
    assert told(vms.families).value("kubevirt_coschedule_vms") == 1


def test_starts_are_exposed_as_of_the_scrape(tracked: Tracked) -> None:
    """A start is a sample of the next scrape, even if no pass of the tracker has seen the VM, or none ever will."""
    started = Started()
    vms = of(tracked, started)
    assert "kubevirt_coschedule_vm_starts_total" not in told(vms.families).names
    started.by_decision = {Decided.REQUIRED: 219, Decided.NOTHING: 0}
    found = told(vms.families)
    assert found.value("kubevirt_coschedule_vm_starts_total", decision="required") == 219
    assert found.value("kubevirt_coschedule_vm_starts_total", decision="nothing") == 0


# The VMs that have a sample each.


def vm(number: int, state: State = State.APART, since: str | None = None) -> VMStatus:
    """Return the row of a VM. Without a time, VMs with a higher number are in their state for a shorter time."""
    return replace(ROW, name=f"vm{number:03}", state=state, since=since or f"2026-01-02T00:{number:02}:00Z")


def named(tracked: Tracked) -> list[tuple[str, str]]:
    """Return the VMs with a sample, and their state."""
    samples = told(of(tracked).families).samples
    return [
        (each.labels["vm"], each.labels["state"])
        for each in samples
        if each.name == "kubevirt_coschedule_vm_in_trouble_timestamp_seconds"
    ]


def test_a_vm_in_trouble_has_a_sample_with_its_name(tracked: Tracked) -> None:
    """Its value is since when. A VM in another state, or one whose time is not known, has none."""
    others = [vm(3, state) for state in State if state not in TROUBLED]
    tracked.become(vm(1), vm(2, State.STUCK), vm(2, State.NOT_RUNNING), *others)
    assert named(tracked) == [("vm002", "stuck"), ("vm002", "not-running"), ("vm001", "apart")]
    found = told(of(tracked).families)
    labels = {"vm_namespace": ROW.namespace, "vm": "vm001", "state": "apart"}
    assert (
        found.value("kubevirt_coschedule_vm_in_trouble_timestamp_seconds", **labels)
        == datetime(2026, 1, 2, 0, 1, tzinfo=UTC).timestamp()
    )
    tracked.become(replace(ROW, state=State.APART, since=None))
    assert named(tracked) == []
    assert told(of(tracked).families).value("kubevirt_coschedule_vms_in_trouble_not_named", state="apart") == 1


@pytest.mark.parametrize(
    ("apart", "stuck", "beyond"),
    [(0, 0, (0, 0)), (100, 0, (0, 0)), (101, 0, (1, 0)), (60, 60, (20, 0)), (5, 120, (5, 20))],
)
def test_at_most_100_vms_have_a_sample_and_the_others_are_counted(
    apart: int, stuck: int, beyond: tuple[int, int], tracked: Tracked
) -> None:
    """Stuck VMs come first, then those that have been in their state the longest, whatever the order of the rows."""
    many = [
        vm(number % 60, State.APART, f"2026-01-02T{number // 60:02}:{number % 60:02}:00Z") for number in range(apart)
    ]
    rows = [replace(row, name=f"apart{number:03}") for number, row in enumerate(many)]
    rows += [replace(vm(0, State.STUCK), name=f"stuck{number:03}") for number in range(stuck)]
    tracked.become(*reversed(rows))
    found = told(of(tracked).families)
    assert (
        tuple(found.value("kubevirt_coschedule_vms_in_trouble_not_named", state=state) for state in ("apart", "stuck"))
        == beyond
    )
    wanted = [f"stuck{number:03}" for number in range(stuck)] + [f"apart{number:03}" for number in range(apart)]
    assert [name for name, _ in named(tracked)] == wanted[:100]


def test_the_time_of_vms_is_exposed_as_of_the_scrape(tracked: Tracked) -> None:
    """Every state has a sample. The time goes on while no row changes."""
    vms = of(tracked)
    tracked.become(ROW)
    for at, seen in enumerate((0, 1, 2)):
        tracked.seconds.add({State.TOGETHER: 1}, late=False, at=at)
        found = told(vms.families)
        states = {state: found.value("kubevirt_coschedule_vm_seconds_total", state=state) for state in State}
        assert states == {**dict.fromkeys(State, 0), State.TOGETHER: seen}
