"""Each row of the table of waits: its last second, the first second after it, and its sentence."""

from typing import Any

import pytest
from support.objects.reunite_vms import NOW, Situation, ago, move, node, plan_of, situation, started, target, vm

from webhook.core.api.kubevirt import MigrationState
from webhook.reunite.waits import Rule

KEY = ("ns", "vm")
SHORT, REST, HOUR, DAY, WEEK = 1_800, 14_400, 3_600, 86_400, 604_800


def left(source: str = "b", seconds: float = 0, **changes: Any) -> dict[str, Any]:
    """A VM on node a that a migration brought there so many seconds ago, as its VMI says."""
    state = MigrationState(migration_uid="m", source_node=source, end_timestamp=ago(seconds))
    return {"pod": target(), "migration_state": state, **changes}


def ours(created: float, phase: str = "Succeeded", number: int = 1, **changes: Any) -> Any:
    """A migration of reunite."""
    return move(created, phase, ours=True, name=f"vm-reunite-{number}", **changes)


def drained(seconds: float, **changes: Any) -> Any:
    """An eviction from node b, the home."""
    return move(seconds, uid="m", evacuates="b", **changes)


def edge(rule: Rule, seconds: float, *parts: Any, name: str, **more: Any) -> list[Any]:
    """Two situations: one second before the wait is over, and when it is over."""
    return [
        pytest.param(situation(*parts, now=NOW + seconds - 1, **more), rule, id=f"{name}: almost"),
        pytest.param(situation(*parts, now=NOW + seconds, **more), None, id=f"{name}: over"),
    ]


NAMED = target("harvester-x", host="a")
WANTS_A = {"kubernetes.io/hostname": "a"}
CANCELLED = MigrationState(abort_requested=True, end_timestamp=ago(0))
FORGED = MigrationState(abort_requested=True, end_timestamp="9999-12-31T23:59:59-23:59")


@pytest.mark.parametrize(
    ("at", "rule"),
    [
        pytest.param(situation(vm()), None, id="apart for a day, by no migration"),
        pytest.param(situation(vm(pod=NAMED)), Rule.TARGET_NAMED, id="the pod names a host that the VMI does not"),
        pytest.param(situation(vm(pod=NAMED), now=NOW + 9 * WEEK), Rule.TARGET_NAMED, id="the same after months"),
        pytest.param(situation(vm(pod=NAMED, node_selector=WANTS_A)), None, id="the VMI names it, too"),
        pytest.param(situation(vm(pod=target("vm-reunite-3", host="a"))), None, id="reunite named it"),
        pytest.param(situation(vm(pod=target("vm-together-x2b5k", host="a"))), None, id="a list of ours named it"),
        *edge(Rule.CANCELLED, DAY, vm(migration_state=CANCELLED), name="cancelled"),
        pytest.param(
            situation(vm(migration_state=MigrationState(end_timestamp=ago(0)))), None, id="ended, not cancelled"
        ),
        *edge(Rule.CANCELLED, HOUR, vm(), started(0), name="its migration was deleted"),
        pytest.param(situation(vm(), started(0), ours(0, "Running")), Rule.NOT_MOVABLE, id="its migration is there"),
        pytest.param(
            situation(vm(migration_state=FORGED), now=NOW + 9 * WEEK), Rule.CANCELLED, id="cancelled at the end of time"
        ),
        pytest.param(situation(vm(), started(0, uid="uid-x")), None, id="the Event of another VMI"),
        pytest.param(situation(vm(), started(0, namespace="x")), None, id="a forged Event of another namespace"),
        pytest.param(situation(vm(), started(0, message="x")), None, id="an Event that names no migration"),
        pytest.param(situation(vm(), started(0, reason="ReuniteDryRun")), None, id="the Event of a dry run"),
        pytest.param(
            situation(vm("other"), started(0, uid="uid-vm")), None, id="a forged Event holds no VM but its own"
        ),
        *edge(Rule.TOO_SOON, SHORT, vm(**left("c")), name="it left a node that is not home"),
        *edge(Rule.TOO_SOON, SHORT, vm(pod=target()), drained(0, source_node="c"), name="the migration says so"),
        *edge(Rule.TOO_SOON, SHORT, vm(**left()), move(9, uid="m", updates=True), name="workload update"),
        *edge(
            Rule.NOT_CALM,
            SHORT,
            vm(**left(seconds=99)),
            node("b", ready_since=ago(0)),
            name="home was not Ready before",
        ),
        *edge(
            Rule.MOVED_AWAY, REST, vm(**left()), node("b", ready_since=ago(9_999)), name="home was Ready all the time"
        ),
        *edge(Rule.TOO_SOON, SHORT, vm(**left()), drained(9), name="a drain of home"),
        *edge(Rule.TOO_SOON, SHORT, vm(pod=target()), drained(0), name="a drain that the VMI forgot"),
        *edge(
            Rule.TOO_SOON,
            SHORT,
            vm(**left()),
            drained(9),
            oldest_on={"b": ago(8)},
            name="a drain, and younger pods came back",
        ),
        *edge(
            Rule.MOVED_AWAY, REST, vm(**left()), drained(9), oldest_on={"b": ago(10)}, name="an eviction: others stayed"
        ),
        *edge(
            Rule.MOVED_AWAY,
            REST,
            vm(**left()),
            drained(9, priority="system-maintenance"),
            name="a descheduler that names itself",
        ),
        *edge(
            Rule.TOO_SOON, SHORT, vm(**left()), drained(9, priority="system-critical"), name="a drain with its priority"
        ),
        *edge(
            Rule.MOVED_AWAY,
            REST,
            vm(**left()),
            drained(9, priority="system-critical"),
            oldest_on={"b": ago(99)},
            name="descheduler 0.33 with KubeVirt 1.9",
        ),
        *edge(Rule.MOVED_AWAY, REST, vm(**left()), name="a person"),
        *edge(Rule.MOVED_AWAY, REST, vm(pod=target(), since=ago(0)), name="a move of which nothing is left"),
        pytest.param(
            situation(vm(pod=target("vm-reunite-1"), since=ago(SHORT))), None, id="ours brought it, then home moved"
        ),
        *edge(Rule.TOO_SOON, SHORT, vm(since=ago(0)), name="it started apart, or its share-manager moved"),
        pytest.param(situation(vm(since=None)), Rule.TOO_SOON, id="apart since no known time"),
        pytest.param(situation(vm(since="?")), Rule.TOO_SOON, id="apart since no time"),
        *edge(Rule.NOT_CALM, SHORT, vm(), node("b", ready_since=ago(0)), name="home became Ready"),
        pytest.param(situation(vm(), node("a", ready_since=ago(9))), None, id="another node became Ready"),
        *edge(Rule.FAILED, 2 * SHORT, vm(), ours(0, "Failed"), name="our migration failed, the first"),
        *edge(Rule.FAILED, 8 * SHORT, vm(), ours(0, "Failed", 3), name="our migration failed, the third"),
        *edge(Rule.FAILED, WEEK, vm(), ours(0, "Failed", 30), name="our migration failed, a week at most"),
        pytest.param(situation(vm(), ours(9, "Failed"), move(8)), None, id="others moved it since"),
        pytest.param(situation(vm(), move(9, "Failed")), None, id="the migration of others failed"),
        *edge(Rule.MOVED_AWAY, 2 * REST, vm(**left()), ours(9_999), name="a person after one return"),
        *edge(Rule.MOVED_AWAY, 8 * REST, vm(**left()), ours(9_999, number=3), name="a person after three returns"),
        *edge(Rule.MOVED_AWAY, WEEK, vm(**left()), ours(9_999, number=99), name="a week at most"),
        *edge(
            Rule.TOO_SOON,
            SHORT,
            vm(**left()),
            move(9, uid="m", updates=True),
            ours(9_999, number=9),
            name="an update doubles nothing",
        ),
        *edge(
            Rule.MOVED_AWAY,
            2 * REST,
            vm(**left(started=ago(10_000))),
            ours(99_999, number=4),
            ours(9_999, number=5),
            name="returns of an earlier start",
        ),
        *edge(
            Rule.MOVED_AWAY, 2 * WEEK, vm(**left()), ours(9, number=1), rest_seconds=2 * WEEK, name="a rest of its own"
        ),
    ],
)
def test_a_row_holds_to_its_last_second(at: Situation, rule: Rule | None) -> None:
    """By what pod, VMI, node, migrations and Events say: nothing else is remembered."""
    told = plan_of(at).waiting.get(KEY)
    assert (told and told.rule) is rule


def test_the_sentence_names_the_evidence_the_hour_and_the_command() -> None:
    """The longest wait counts, so that the hour is true."""
    held = vm(**left(), owner="db")
    told = plan_of(situation(held, node("b", ready_since=ago(9)))).waiting[KEY].sentence
    assert told == (
        "migration kubevirt-migrate-vm-x moved it away from node b at 2026-08-05T12:00:00Z, and no object says why; it "
        "stays until 2026-08-05T16:00:00Z, or as long as you forbid it: kubectl annotate virtualmachine db -n ns "
        "--overwrite kubevirt-scheduler/reunite=false"
    )
    told = plan_of(situation(vm(**left()))).waiting[KEY].sentence
    assert "forbid it: kubectl annotate virtualmachineinstance vm -n ns --overwrite" in told
    told = plan_of(situation(vm(pod=NAMED))).waiting[KEY].sentence
    assert told == (
        "migration harvester-x named node a for it (nodeSelector of pod virt-launcher-vm); it stays until others move "
        "it, or its next start"
    )
    assert "since an unknown time" in plan_of(situation(vm(since=None))).waiting[KEY].sentence


def test_a_failed_migration_tells_kubevirts_reason() -> None:
    """If there is one."""
    state = {"failure": "it never converged"}
    at = situation(vm(), ours(0, "Failed", **state))
    assert (
        "migration vm-reunite-1 failed at 2026-08-05T12:00:00Z: it never converged;"
        in plan_of(at).waiting[KEY].sentence
    )


def test_a_named_target_does_not_end_by_itself() -> None:
    """Somebody said where. A list leaves out the other waits."""
    assert plan_of(situation(vm(**left()))).waiting[KEY].ends
    assert not plan_of(situation(vm(pod=NAMED))).waiting[KEY].ends
    nameless = target("")
    assert (
        "a migration moved it away from node b at" in plan_of(situation(vm(**left(pod=nameless)))).waiting[KEY].sentence
    )
