"""The rules beside the waits, each at its edge, and the turns."""

from typing import Any

import pytest
from msgspec.structs import replace
from support.objects.reunite_vms import Situation, ago, kubevirt, move, plan_of, situation, vm

from webhook.core.api.kubevirt import MigrationState
from webhook.core.api.migration import (
    KubeVirt,
    KubeVirtConfiguration,
    KubeVirtSpec,
    Migration,
    MigrationConfiguration,
)
from webhook.core.observe.vm_status import State
from webhook.reunite.waits import NotYet, Rule

KEY = ("ns", "vm")


def allowing(**settings: bool) -> KubeVirt:
    """KubeVirt with these settings of its migrations."""
    configuration = KubeVirtConfiguration(migrations=MigrationConfiguration(**settings))
    return replace(kubevirt(), spec=KubeVirtSpec(configuration=configuration))


@pytest.mark.parametrize(
    ("at", "rule"),
    [
        pytest.param(situation(vm()), None, id="nothing is against it"),
        pytest.param(replace(situation(vm()), kubevirt=None), Rule.KUBEVIRT_CHANGES, id="no KubeVirt"),
        pytest.param(situation(vm(), installed=kubevirt("")), Rule.KUBEVIRT_CHANGES, id="no version"),
        pytest.param(situation(vm(), installed=kubevirt("v4.17.3")), Rule.KUBEVIRT_CHANGES, id="a product's version"),
        pytest.param(situation(vm(), installed=kubevirt("v1.5.3")), Rule.KUBEVIRT_TOO_OLD, id="KubeVirt 1.5.3"),
        pytest.param(situation(vm(), installed=kubevirt("v1.6.0")), None, id="KubeVirt 1.6.0"),
        pytest.param(situation(vm(), installed=kubevirt("v0.59.0")), Rule.KUBEVIRT_TOO_OLD, id="KubeVirt 0.59"),
        pytest.param(
            situation(vm(), installed=kubevirt(phase="Deploying")), Rule.KUBEVIRT_CHANGES, id="KubeVirt is installed"
        ),
        pytest.param(
            situation(vm(), installed=kubevirt(observed_deployment="old", target_deployment="new")),
            Rule.KUBEVIRT_CHANGES,
            id="KubeVirt is upgraded",
        ),
        pytest.param(situation(vm(answer="false")), Rule.NOT_ASKED, id="kept out"),
        pytest.param(situation(vm(answer="yes")), Rule.NOT_ASKED, id="an annotation that nobody knows"),
        pytest.param(situation(vm(), default=False), Rule.NOT_ASKED, id="the default is off"),
        pytest.param(situation(vm(answer="true"), default=False), None, id="let in"),
        pytest.param(situation(vm(homes=("b", "c"))), Rule.SEVERAL_NODES, id="two homes"),
        pytest.param(situation(vm(homes=("b", "b"))), None, id="two claims, one home"),
        pytest.param(situation(vm(known=False)), Rule.NOT_MOVABLE, id="its VMI was not read"),
        pytest.param(situation(vm(phase="Scheduled")), Rule.NOT_MOVABLE, id="not running"),
        pytest.param(situation(vm(unmigratable="HostDevice")), Rule.NOT_MOVABLE, id="not migratable"),
        pytest.param(situation(vm(held=True, remedy="a is off")), Rule.NOT_MOVABLE, id="its node is lost"),
        pytest.param(situation(vm(copying={"snapshot_in_progress": "s"})), Rule.NOT_MOVABLE, id="busy"),
        pytest.param(situation(vm(), move(10, "Running")), Rule.NOT_MOVABLE, id="a migration runs"),
        pytest.param(situation(vm(migrating=True)), Rule.NOT_MOVABLE, id="two pods on nodes"),
        pytest.param(situation(vm(evacuation_node_name="a")), Rule.NOT_MOVABLE, id="has to leave its node"),
        pytest.param(situation(vm(evacuation_node_name="c")), None, id="has left the node that it had to leave"),
        pytest.param(
            situation(vm(migration_state=MigrationState(abort_requested=True))),
            Rule.NOT_MOVABLE,
            id="a migration is being cancelled",
        ),
        pytest.param(
            situation(vm(), vm("x", "b", (), evacuation_node_name="b")), None, id="the mark of another VM on home"
        ),
        pytest.param(situation(vm(), move(9, "Pending", "x", evacuates="b")), None, id="the evacuation of another VM"),
        pytest.param(
            situation(vm(), *(move(9, "Failed", f"x{i}", ours=True) for i in range(9))), None, id="others failed"
        ),
        pytest.param(situation(vm(), installed=allowing(allow_post_copy=True)), Rule.NOT_MOVABLE, id="allowPostCopy"),
        pytest.param(
            situation(vm(), installed=allowing(allow_workload_disruption=True)),
            Rule.NOT_MOVABLE,
            id="allowWorkloadDisruption",
        ),
        pytest.param(
            situation(vm(answer="true"), installed=allowing(allow_post_copy=True)), None, id="the VM allows it"
        ),
        pytest.param(situation(vm(), installed=allowing()), None, id="no such setting"),
    ],
)
def test_a_rule_says_no(at: Situation, rule: Rule | None) -> None:
    """And its edge does not."""
    told = plan_of(at).waiting.get(KEY)
    assert (told and told.rule) is rule


def test_a_refusal_names_the_cure() -> None:
    """The VM, the migration with its age, and the command."""

    def told(*parts: Any) -> str:
        return plan_of(situation(*parts)).waiting[KEY].sentence

    assert "virtctl evacuate-cancel vmi vm -n ns" in told(vm(evacuation_node_name="a"))
    old = move(7_300, "Pending", name="waits")
    assert told(vm(), old) == (
        "migration waits has not ended: it is Pending and more than 120 min old; KubeVirt refuses another one. To end "
        "it: virtctl migrate-cancel vm -n ns"
    )
    assert "it is not begun and more than 30 min" in told(vm(), move(1_800, ""))
    assert told(vm(), move(10, "Running", name="runs")) == "migration runs runs"
    assert "no VirtualMachine owns vm" in told(vm(unmigratable="HostDevice"))
    assert "virtctl restart db -n ns" in told(vm(homes=("b", "c"), owner="db", run_strategy="Always"))


@pytest.mark.parametrize(
    ("running", "waits"),
    [
        pytest.param([move(1, "Running", "x", ours=True)], False, id="one of ours"),
        pytest.param([move(1_799, "Running", x, ours=True) for x in "xy"], True, id="two of ours"),
        pytest.param([move(1_800, "Pending", x, ours=True) for x in "xy"], False, id="for half an hour"),
        pytest.param([move(1, "Running", x) for x in "uvwxyz"], False, id="others': KubeVirt has its own queue"),
        pytest.param([move(1, "Failed", x, ours=True) for x in "uvwxyz"], False, id="what ended counts no more"),
    ],
)
def test_a_migration_starts_in_its_turn(running: list[Migration], *, waits: bool) -> None:
    """At most two at one time in a namespace."""
    told = plan_of(situation(vm(), *running)).waiting.get(KEY)
    assert (told is not None and told.rule is Rule.NOT_ITS_TURN) is waits


def test_another_namespace_takes_no_turn() -> None:
    """Who may write migrations there could stop all others by that."""
    elsewhere = [move(1, "Running", x, ours=True) for x in "xyz"]
    moved = [replace(each, metadata=replace(each.metadata, namespace="other")) for each in elsewhere]
    assert plan_of(situation(vm(), *moved)).creates


def test_one_run_creates_two_and_the_longest_apart_comes_first() -> None:
    """Also for VMs of several namespaces."""
    vms = [vm(f"vm{i}", since=ago(90_000 + i), namespace=f"ns{i}") for i in range(3)]
    planned = plan_of(situation(*vms))
    assert [each.vm for each in planned.creates] == ["vm2", "vm1"]
    assert planned.waiting["ns0", "vm0"].rule is Rule.NOT_ITS_TURN


def test_a_namespace_with_many_vms_leaves_a_turn_to_each_other_namespace() -> None:
    """Who cancels the migrations of twelve VMs at once would otherwise keep all others waiting for ever."""
    many = [vm(f"vm{i:02}", since=ago(99_000 - i), namespace="many") for i in range(12)]
    planned = plan_of(situation(*many, vm("late", namespace="one")))
    assert [each.vm for each in planned.creates] == ["vm00", "late"]


def test_a_migration_that_the_api_server_refuses_takes_no_turn() -> None:
    """The next VM has its turn in the same run."""
    vms = [vm(f"vm{i}") for i in range(5)]
    assert len(plan_of(situation(*vms), takes=False).creates) == 5


def test_only_vms_that_are_apart_are_asked_about() -> None:
    """A node is asked about once nothing else is against the VM."""
    together, busy = vm("x", "b"), vm("y", copying={"snapshot_in_progress": "s"})
    planned = plan_of(situation(vm(), together, busy), NotYet(Rule.NOT_PLACEABLE, "full"))
    assert planned.asked == ["vm"]
    assert together.row.state is State.TOGETHER
    assert str(planned.waiting[KEY]) == "NotPlaceable: full"
