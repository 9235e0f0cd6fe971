"""Which evictions were drains, by the node that the VM left."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace
from support.objects.reunite_vms import NOW, ago, move, node, plan_of, situation, vm

from webhook.core.api.node import Node
from webhook.core.reunite.drains import drained
from webhook.core.reunite.migration import Migration
from webhook.core.reunite.not_yet import Rule

EVICTED = move(1_000, evacuates="b", ended=ago(900))
KEY = ("ns", "vm")


@pytest.mark.parametrize(
    ("migration", "nodes", "found"),
    [
        pytest.param(EVICTED, {}, False, id="the node is gone"),
        pytest.param(EVICTED, {"b": node("b")}, False, id="the node shows nothing"),
        pytest.param(EVICTED, {"b": node("b", cordoned_since=ago(900))}, True, id="cordoned before the VM had left"),
        pytest.param(EVICTED, {"b": node("b", cordoned_since=ago(899))}, False, id="cordoned after the VM had left"),
        pytest.param(EVICTED, {"b": node("b", ready_since=ago(899))}, True, id="not Ready after the VM had left"),
        pytest.param(EVICTED, {"b": node("b", ready_since=ago(900))}, False, id="Ready when the VM left"),
        pytest.param(EVICTED, {"a": node("a", ready_since=ago(9))}, False, id="another node"),
        pytest.param(
            move(9, "Running", evacuates="b"),
            {"b": node("b", cordoned_since=ago(1))},
            True,
            id="cordoned while it runs",
        ),
        pytest.param(
            move(9, "Running", evacuates="b"), {"b": node("b", ready_since=ago(1))}, False, id="flapping while it runs"
        ),
        pytest.param(move(9), {"b": node("b", cordoned_since=ago(99))}, False, id="no eviction"),
        pytest.param(
            replace(EVICTED, priority="system-maintenance"),
            {"b": node("b", cordoned_since=ago(9_000))},
            False,
            id="KubeVirt names the descheduler",
        ),
    ],
)
def test_an_eviction_was_a_drain_if_the_node_shows_it(
    migration: Migration, nodes: Mapping[str, Node], *, found: bool
) -> None:
    """Where KubeVirt gives a reason, that counts alone."""
    assert drained([migration], nodes) == ({migration.uid} if found else frozenset())


def test_what_was_known_stays_known_while_the_migration_is_there() -> None:
    """The node is uncordoned, and shows nothing any more."""
    assert drained([EVICTED], {"b": node("b")}, {EVICTED.uid}) == {EVICTED.uid}
    assert drained([], {"b": node("b")}, {EVICTED.uid}) == frozenset()


def test_after_three_drains_without_priorities_a_vm_comes_home() -> None:
    """As with a KubeVirt that says what was a drain. Each time the program saw the cordon, and noted the count."""
    moves: list[Migration] = []
    for day in (9, 6, 3):
        left, home = (day + 0.1) * 86_400, day * 86_400
        moves.append(replace(move(left, evacuates="b", name=f"drain-{day}"), uid=f"drain-{day}"))
        cordoned = {"b": node("b", cordoned_since=ago(left + 60))}
        at = situation(vm(since=ago(900_000)), *moves, now=_at(home))
        plan, _ = plan_of(replace(at, drained=drained(moves, cordoned)))
        assert [each.moved_away for each in plan.creates] == [0]
        moves.append(replace(move(home, ours=True, name=plan.creates[0].name, moved_away=0), uid=f"home-{day}"))


def test_without_the_cordon_the_second_eviction_is_the_last() -> None:
    """The rule says that it can have been a drain."""
    first = [move(300_000, ours=True), move(250_000, evacuates="b"), move(200_000, ours=True, moved_away=1)]
    plan, _ = plan_of(situation(vm(), *first, move(100_000, evacuates="b")))
    assert plan.waiting[KEY].rule is Rule.MOVED_AWAY_OR_DRAINED
    assert "the last perhaps by a drain; KubeVirt does not say" in str(plan.waiting[KEY])


def _at(seconds_ago: float) -> float:
    return NOW - seconds_ago
