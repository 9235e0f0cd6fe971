"""A day of 20 VMs on real controllers: restarts, a drain, a node loss and a power cut, then a drain of all nodes."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from month import plan, results
from month.contestants import play
from month.plan import What

VMS: Final = 20
DAY: Final = plan.plan(1, days=1, vms=VMS, nodes=5)


@pytest.fixture(scope="module")
def played() -> dict[str, Any]:
    """The day with the webhook in its strict mode."""
    return play("required", DAY)


def test_nothing_is_lost(played: dict[str, Any]) -> None:
    """Every hour of every VM is counted once, all comes to rest, no call fails open, and no VM is stranded."""
    assert played["not at rest"] == []
    assert sum(played["hours"].values()) == pytest.approx(DAY.hours * VMS, rel=0.001)
    assert sum(played["apart"].values()) == pytest.approx(played["hours"].get("apart", 0), abs=1)
    assert (played["failed open"], played["hours"].get("stranded", 0)) == (0, 0)
    assert played["migrations"].keys() == {"drains: Succeeded", "people: Succeeded"}


def test_no_start_leaves_a_vm_apart(played: dict[str, Any]) -> None:
    """Where VMs are apart, somebody has moved them since they started."""
    starts = {What.START, What.GUEST_RESTART, What.QUICK_RESTART}
    assert played["apart"].keys() & starts == set()
    assert played["hours"]["local"] > played["hours"].get("apart", 0)


def test_the_tables_have_a_row_for_it(played: dict[str, Any]) -> None:
    """The rows have the figures of the file, which is JSON."""
    told = {"commit": "none", "days": 1, "vms": VMS, "nodes": 5, "seeds": {"1": {"required": played}}}
    assert json.loads(results.written(told)) == told
    assert f"| `--mode=required` | {results.local_share(played):.1f} % |" in results.table(told)
    assert f"| {played['rolling drain']['share-manager pods'] / VMS:.2f} |" in results.rolling(told)


def test_a_rolling_drain_moves_each_share_manager(played: dict[str, Any]) -> None:
    """Every one gets a new pod at least once, because its node is drained."""
    rolled = played["rolling drain"]["volumes by new pods"]
    assert sum(rolled.values()) == VMS + VMS // 10
    assert set(played["rolling drain"]["migrations"]) == {"drains: Succeeded"}


def test_the_same_seed_is_the_same_month() -> None:
    """All contestants get the same events; another seed has others."""
    month = plan.plan(2, days=15, vms=80, nodes=10)
    assert month == plan.plan(2, days=15, vms=80, nodes=10)
    assert month != plan.plan(3, days=15, vms=80, nodes=10)
    assert {event.what for event in month.events} == set(What) - {What.REUNITE}
    assert sum(len(machine.claims) == 2 for machine in month.machines) == 8
    assert sum(not machine.opted_in for machine in month.machines) == 8
