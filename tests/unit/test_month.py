"""The figures of the month in README.md and docs/month.md are those of tests/month/results.json.

`make month SEED="1 2 3"` plays them, and its dist/month.json becomes that file.
`PYTHONPATH=tests python tests/unit/test_month.py` writes the pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from month import plan, results
from month.account import OFF, PENDING, STRANDED, Account, Place
from month.machines import Machines
from month.plan import What
from month.reuniting import PlanClock
from support.generated_part import with_part
from support.objects.builders import NAMESPACE

ROOT: Final = Path(__file__).parents[2]
PARTS: Final[Mapping[tuple[str, str], Callable[[Mapping[str, Any]], str]]] = {
    ("README.md", "month"): results.readme,
    ("docs/month.md", "table"): results.table,
    ("docs/month.md", "causes"): results.causes,
    ("docs/month.md", "rolling"): results.rolling,
    ("docs/month.md", "commit"): lambda report: f"Played at commit {report['commit']}.",
}


@pytest.mark.parametrize(("page", "name"), PARTS)
def test_a_page_has_the_figures_of_the_file(page: str, name: str) -> None:
    """Otherwise run `PYTHONPATH=tests python tests/unit/test_month.py`."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert with_part(text, name, PARTS[page, name](results.read())) == text


def test_the_file_is_of_whole_months_and_a_commit() -> None:
    """Each contestant has played each seed to its end, and nothing was given up on the way."""
    report = results.read()
    assert "dirty" not in report["commit"]
    assert (report["days"], report["vms"], report["nodes"]) == (15, 80, 10)
    for months in report["seeds"].values():
        assert months.keys() == results.TITLES.keys()
        assert [played["not at rest"] for played in months.values()] == [[]] * len(months)


def test_what_the_pages_say_of_the_figures() -> None:
    """No VM is stranded or apart since a start, no call fails open, and as many hours are lost as without it."""
    for months in results.read()["seeds"].values():
        assert all(played["failed open"] == 0 for played in months.values())
        for name in ("required", "preferred", "reunite"):
            assert not {What.START, What.GUEST_RESTART, What.QUICK_RESTART} & months[name]["apart"].keys()
        lost = [[played["hours"].get(state, 0) for state in (OFF, PENDING, STRANDED)] for played in months.values()]
        assert lost == [[lost[0][0], 0, 0]] * len(months)
        shares = {name: results.local_share(played) for name, played in months.items()}
        assert abs(shares["required"] - shares["preferred"]) < 3


def test_times_are_those_of_the_plan() -> None:
    """A time is that of the plan at which it was written; what is older than the plan is a day older."""
    real = iter([100.5, 200.5])
    clock = PlanClock(lambda: next(real))
    clock.set(3.0)
    clock.set(4.5)
    body = clock.told(b'["1970-01-01T00:00:10Z", "1970-01-01T00:03:20Z", "1970-01-01T00:03:21.123456Z", "db-7Z"]')
    assert body == b'["2025-12-31T00:00:00Z", "2026-01-01T03:00:00Z", "2026-01-01T04:30:00Z", "db-7Z"]'
    assert clock.now() == datetime(2026, 1, 1, 4, 30, tzinfo=UTC).timestamp()


def test_a_vm_has_one_event_in_a_group_and_a_node_event_is_alone() -> None:
    """So what happened to a VM is known."""
    events = plan.plan(1, days=15, vms=80, nodes=10).events
    groups = [*plan.together(events)]
    assert [event for group in groups for event in group] == events
    assert len(groups) < len(events)
    for group in groups:
        assert len({event.target for event in group}) == len(group)
        assert len({event.at for event in group}) == 1
        assert len(group) == 1 or all(event.is_of_vm for event in group)


def test_reunite_does_not_run_without_power() -> None:
    """In a power cut the API server shows VMs that run apart, and nobody is there to migrate them."""
    instance = {"metadata": {"uid": "uid"}, "status": {"phase": "Running", "nodeName": "a"}}
    nodes: Any = SimpleNamespace(
        virt_handler=SimpleNamespace(instances={(NAMESPACE, "vm"): instance}),
        kubelets=SimpleNamespace(pods={}),
        longhorn=SimpleNamespace(volumes={(NAMESPACE, "disk"): "volume"}, node=lambda _: "b"),
    )
    cluster: Any = SimpleNamespace(nodes=nodes)
    machines = Machines(cluster, [plan.Machine("vm", ("disk",), opted_in=True, memory="1Gi")])
    assert not machines.is_apart()
    machines.wanted.add("vm")
    assert machines.is_apart()


def test_an_hour_of_a_vm_is_counted_by_what_happened_to_it_last() -> None:
    """With two claims half an hour for each; a VM that is required on a node and has none is stranded."""
    account = Account({"one": True, "two": True, "other": False, "stuck": True})
    apart, half = Place(wanted=True, node="a", homes=("b",)), Place(wanted=True, node="a", homes=("a", "b"))
    off, stuck = (
        Place(wanted=False, node=None, homes=(None,)),
        Place(wanted=True, node=None, homes=(None,), pinned=True),
    )
    account.see({"one": apart, "two": half, "other": apart, "stuck": stuck}, What.DRAIN, {"two": What.MIGRATION})
    account.spend(2.0)
    account.see({"one": off, "two": half, "other": apart, "stuck": stuck}, What.STOP, {})
    account.spend(1.0)
    assert account.report() == {
        "hours": {"apart": 3.5, "local": 1.5, "not opted in, apart": 3.0, "off": 1.0, "stranded": 3.0},
        "apart": {What.DRAIN: 2.0, What.MIGRATION: 1.5},
    }


if __name__ == "__main__":
    for file, title in PARTS:
        path = ROOT / file
        path.write_text(with_part(path.read_text("utf-8"), title, PARTS[file, title](results.read())), "utf-8")
