"""Each rule of `decide` at its edge: the last situation in which it says no, and the first in which it does not."""

from datetime import UTC
from typing import Any

import pytest
from msgspec.structs import replace
from support.objects.reunite_vms import NOW, ago, move, node, plan_of, situation, vm

from webhook.core.observe.vm_status import State
from webhook.core.reasons import Reason
from webhook.core.reunite.decide import Situation
from webhook.core.reunite.limits import KubeVirtLimits
from webhook.core.reunite.migration import Migration
from webhook.core.reunite.not_yet import NotYet, Rule
from webhook.core.reunite.window import parse_window

KEY = ("ns", "vm")
UTC_NOON = parse_window("Wed 12:00-13:00", UTC)
UTC_EVENING = parse_window("Wed 12:01-13:00", UTC_NOON.zone)


def _kubevirt(**changes: Any) -> KubeVirtLimits:
    return KubeVirtLimits(**{"version": (1, 5), **changes})


def _ours(created: float, phase: str = "Succeeded", **changes: Any) -> Migration:
    return move(created, phase, ours=True, names_target=True, **changes)


def _evicted(phase: str = "Succeeded", **changes: Any) -> Migration:
    return move(90_000, phase, **{"evacuates": "b", "ended": ago(86_399), **changes})


_FAILED_TWICE = (_ours(5_000, "Failed"), _ours(1_200, "Failed"))


@pytest.mark.parametrize(
    ("at", "rule"),
    [
        pytest.param(situation(vm()), None, id="nothing is against it"),
        pytest.param(situation(vm(), kubevirt=_kubevirt(version=None)), Rule.KUBEVIRT_UNKNOWN, id="no version"),
        pytest.param(situation(vm(), kubevirt=_kubevirt(version=(1, 4))), Rule.KUBEVIRT_TOO_OLD, id="KubeVirt 1.4"),
        pytest.param(situation(vm(), kubevirt=_kubevirt(version=(2, 0))), None, id="KubeVirt 2.0"),
        pytest.param(situation(vm(reunite="false")), Rule.NOT_ASKED, id="kept out"),
        pytest.param(situation(vm(reunite="yes")), Rule.NOT_ASKED, id="an annotation that nobody knows"),
        pytest.param(situation(vm(), default_on=False), Rule.NOT_ASKED, id="the default is off"),
        pytest.param(situation(vm(reunite="true"), default_on=False), None, id="let in"),
        pytest.param(situation(vm(homes=("b", "c"))), Rule.SEVERAL_NODES, id="two homes"),
        pytest.param(situation(vm(homes=("b", "b"))), None, id="two claims, one home"),
        pytest.param(situation(vm(phase="Scheduled")), Rule.NOT_RUNNING, id="not running"),
        pytest.param(situation(vm(phase="")), Rule.NOT_RUNNING, id="no phase"),
        pytest.param(situation(vm(unmigratable="HostDevice")), Rule.NOT_MIGRATABLE, id="not migratable"),
        pytest.param(
            situation(vm(held=Reason.VM_NODE_NOT_READY.why(node="a"))), Rule.NOT_MIGRATABLE, id="its node is lost"
        ),
        pytest.param(situation(vm(), move(10, "Running")), Rule.MIGRATING, id="a migration runs"),
        pytest.param(
            situation(vm(started=ago(5)), move(10, "Running")), Rule.MIGRATING, id="one from before the start runs"
        ),
        pytest.param(situation(vm(migrating=True)), Rule.MIGRATING, id="two pods on nodes"),
        pytest.param(situation(vm(evacuates="a")), Rule.EVACUATING, id="has to leave its node"),
        pytest.param(situation(vm(evacuates="c")), None, id="has left the node that it had to leave"),
        pytest.param(situation(vm(), move(9_000, names_target=True)), Rule.TARGET_NAMED, id="somebody's will"),
        pytest.param(situation(vm(), move(9_000, "Failed", names_target=True)), None, id="a will that failed"),
        pytest.param(
            situation(vm(started=ago(9_000)), move(9_000, names_target=True)),
            Rule.TARGET_NAMED,
            id="in the start's second",
        ),
        pytest.param(
            situation(vm(started=ago(8_999)), move(9_000, names_target=True)), None, id="a will before the start"
        ),
        pytest.param(
            replace(situation(vm()), not_begun={KEY: NOW - 599.0}), Rule.NOT_BEGUN, id="the last one was not begun"
        ),
        pytest.param(replace(situation(vm()), not_begun={KEY: NOW - 600.0}), None, id="that was long enough ago"),
        pytest.param(replace(situation(vm()), not_begun={("ns", "other"): NOW}), None, id="that was another VM"),
        pytest.param(situation(vm(), vm("x", "b", (), evacuates="b")), Rule.NODE_EVACUATED, id="home is drained"),
        pytest.param(
            situation(vm(), vm("x", "b", (), evacuates="b", unmigratable="no")), None, id="a mark that nobody follows"
        ),
        pytest.param(situation(vm(), move(9, "Pending", "x", evacuates="b")), Rule.NODE_EVACUATED, id="a drain waits"),
        pytest.param(
            situation(vm(), move(1_799, vmi="x", evacuates="b")), Rule.NODE_NOT_CALM, id="home is almost calm"
        ),
        pytest.param(situation(vm(), move(1_800, vmi="x", evacuates="b")), None, id="home is just calm"),
        pytest.param(situation(vm(), move(1, vmi="x", evacuates="c")), None, id="another node was drained"),
        pytest.param(
            replace(situation(vm()), nodes={"b": node("b", ready_since=ago(1_799))}),
            Rule.NODE_JUST_READY,
            id="home was down almost long enough ago",
        ),
        pytest.param(
            replace(situation(vm()), nodes={"b": node("b", ready_since=ago(1_800))}), None, id="home is up long enough"
        ),
        pytest.param(replace(situation(vm()), nodes={"b": node("b")}), None, id="home is up since when?"),
        pytest.param(
            replace(situation(vm()), nodes={"a": node("a", ready_since=ago(9))}), None, id="home is not known"
        ),
        pytest.param(situation(vm(since=ago(1_799))), Rule.TOO_SOON, id="apart almost long enough"),
        pytest.param(situation(vm(since=ago(1_800))), None, id="apart just long enough"),
        pytest.param(situation(vm(), move(1_900, ended=ago(1_799))), Rule.TOO_SOON, id="its move ended too late"),
        pytest.param(situation(vm(), move(1_900, ended=ago(1_800))), None, id="its move ended long enough ago"),
        pytest.param(situation(vm(since=None)), Rule.TOO_SOON, id="apart since when?"),
        pytest.param(situation(vm(since="?")), Rule.TOO_SOON, id="apart since no time"),
        pytest.param(
            situation(vm(), *map(move, range(86_399, 0, -18_000))), Rule.MOVED_OFTEN, id="five in almost a day"
        ),
        pytest.param(situation(vm(), *map(move, range(86_400, 0, -18_000))), None, id="five in just a day"),
        pytest.param(situation(vm(), *map(move, range(68_399, 0, -18_000))), None, id="four in a day"),
        pytest.param(situation(vm(), _ours(86_399)), Rule.COOLDOWN, id="home almost a day ago"),
        pytest.param(situation(vm(), _ours(86_400)), None, id="home just a day ago"),
        pytest.param(situation(vm(), _ours(90_000, ended=ago(86_399))), Rule.COOLDOWN, id="the end counts"),
        pytest.param(situation(vm(), _evicted()), Rule.EVICTED, id="evicted almost a day ago"),
        pytest.param(situation(vm(), _evicted(ended=ago(86_400))), None, id="evicted just a day ago"),
        pytest.param(situation(vm(), _evicted(priority="system-maintenance")), Rule.EVICTED, id="by a descheduler"),
        pytest.param(situation(vm(), _evicted(priority="system-critical")), None, id="drained"),
        pytest.param(situation(vm(), _evicted(updates=True)), None, id="updated"),
        pytest.param(replace(situation(vm(), _evicted()), drained={"u"}), None, id="evicted, and known as drained"),
        pytest.param(situation(vm(), _evicted("Failed")), None, id="an eviction that failed"),
        pytest.param(situation(vm(), _evicted(), move(9_000)), None, id="evicted, and moved by a user since"),
        pytest.param(situation(vm(), _ours(599, "Failed")), Rule.BACKOFF, id="the first back-off almost over"),
        pytest.param(situation(vm(), _ours(600, "Failed")), None, id="the first back-off just over"),
        pytest.param(situation(vm(), *_FAILED_TWICE), None, id="the second back-off just over"),
        pytest.param(situation(vm(), *_FAILED_TWICE, now=NOW - 1), Rule.BACKOFF, id="the second back-off almost over"),
        pytest.param(
            situation(vm(), *_FAILED_TWICE, backoff_seconds=86_400.0), Rule.BACKOFF, id="a back-off of a day at most"
        ),
        pytest.param(situation(vm(), windows=(UTC_NOON,)), None, id="in the window"),
        pytest.param(situation(vm(), windows=(UTC_EVENING,)), Rule.OUTSIDE_WINDOW, id="a minute before the window"),
        pytest.param(situation(vm(), windows=(UTC_EVENING, UTC_NOON)), None, id="in one of two windows"),
        pytest.param(
            situation(vm(), *(_ours(86_399, "Failed", vmi=f"x{i}") for i in range(5))),
            Rule.STOPPED,
            id="five failed in a day",
        ),
        pytest.param(
            situation(vm(), *(_ours(86_399, "Failed", vmi=f"x{i}") for i in range(4))), None, id="four failed"
        ),
        pytest.param(
            situation(vm(), *(_ours(86_400, "Failed", vmi=f"x{i}") for i in range(5))), None, id="failed a day ago"
        ),
        pytest.param(situation(vm(), *(move(9, "Failed", f"x{i}") for i in range(5))), None, id="others' failed"),
    ],
)
def test_a_vm_shows_the_first_rule_that_says_no(at: Situation, rule: Rule | None) -> None:
    """A VM that no rule is against is asked about and moved; another is neither."""
    plan, asked = plan_of(at)
    told = plan.waiting.get(KEY)
    assert (told and told.rule) is rule
    assert ([each.vm.row.name for each in plan.creates], [each.row.name for each in asked]) == (
        ([], []) if rule else (["vm"], ["vm"])
    )


def test_a_vm_that_fits_its_home_node_not_waits_and_takes_nothing_of_the_limits() -> None:
    """The answer of the caller is the VM's rule, and each further VM is asked about."""
    refused = Rule.NOT_PLACEABLE.says_no(because="no room")
    plan, asked = plan_of(situation(vm("one"), vm("two"), vm("three")), refused)
    assert (plan.creates, set(plan.waiting.values()), len(asked)) == ([], {refused}, 3)
    assert str(refused) == "NotPlaceable: no room"


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(vm(node="b"), id="together"),
        pytest.param(vm(homes=()), id="no share-manager on a node"),
        pytest.param(vm(state=State.UNKNOWN), id="not known"),
        pytest.param(vm(homes=(), state=State.APART), id="apart from no node"),
    ],
)
def test_a_vm_that_is_not_apart_is_neither_moved_nor_waiting(there: Any) -> None:
    """Only a VM that is known to be apart has a rule that says no."""
    plan, asked = plan_of(situation(there))
    assert (plan.creates, plan.waiting, asked) == ([], {}, [])


@pytest.mark.parametrize(
    ("queued", "deleted"),
    [
        pytest.param(move(60, "Pending", ours=True), True, id="a minute in the queue"),
        pytest.param(move(60, "", ours=True), True, id="a minute without virt-controller"),
        pytest.param(move(59, "Pending", ours=True), False, id="almost a minute"),
        pytest.param(move(60, "Scheduling", ours=True), False, id="with a target pod"),
        pytest.param(move(60, "Pending", ours=True, deleted=True), False, id="deleted already"),
        pytest.param(move(60, "Pending"), False, id="of others"),
    ],
)
def test_a_migration_of_ours_that_is_not_begun_after_a_minute_is_deleted(queued: Migration, *, deleted: bool) -> None:
    """Others' are never touched."""
    plan, _ = plan_of(situation(vm(), queued))
    assert [each.migration for each in plan.deletes] == ([queued] if deleted else [])


def test_the_count_of_moves_away_goes_along_with_the_next_migration() -> None:
    """So the count outlives the migrations that KubeVirt deletes."""
    plan, _ = plan_of(situation(vm(), _ours(200_000), move(150_000)))
    assert [each.moved_away for each in plan.creates] == [1]


def test_rules_are_asked_in_the_order_of_their_table() -> None:
    """Everything is against the VM: with each rule's cause removed, a later rule of the table says no."""
    told: list[Rule] = []
    table = list(Rule)
    worst: dict[str, Any] = {
        "reunite": "false",
        "homes": ("b", "c"),
        "phase": "",
        "unmigratable": "x",
        "migrating": True,
        "evacuates": "a",
        "since": None,
    }
    moves = [_ours(90_000), move(80_000), _ours(70_000, moved_away=1), move(60_000, names_target=True)]
    drained = move(9, "Running", "x", evacuates="b")
    fixes = [
        ("reunite", None),
        ("homes", ("b",)),
        ("phase", "Running"),
        ("unmigratable", ""),
        ("migrating", False),
        ("evacuates", None),
    ]
    kubevirt = _kubevirt(version=None)
    told.append(plan_of(situation(vm(**worst), *moves, drained, kubevirt=kubevirt))[0].waiting[KEY].rule)
    for field, fixed in [("", None), *fixes]:
        worst |= {field: fixed} if field else {}
        told.append(plan_of(situation(vm(**worst), *moves, drained))[0].waiting[KEY].rule)
    told.extend(
        plan_of(situation(vm(**worst), *rest, drained))[0].waiting[KEY].rule for rest in ([_ours(9, moved_away=2)], [])
    )
    told.append(plan_of(situation(vm(**worst), *moves[:1]))[0].waiting[KEY].rule)
    assert told == sorted(told, key=table.index)
    assert len(set(told)) == len(told)


def test_each_rule_has_its_own_code() -> None:
    """Codes are metric labels."""
    assert len({each.code for each in Rule}) == len(Rule)
    assert isinstance(Rule.MIGRATING.says_no(), NotYet)


def test_a_name_that_another_vms_migration_has_is_left_out() -> None:
    """Somebody named the migration of another VM as this program would name its own."""
    at = situation(vm(), move(9_000, vmi="other", name="vm-reunite-1"))
    assert [each.name for each in plan_of(at)[0].creates] == ["vm-reunite-2"]
