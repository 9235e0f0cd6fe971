"""Each rule at its edge: the last situation in which it says no, and the first in which it does not."""

from typing import Any

import pytest
from msgspec.structs import replace
from support.objects.reunite_vms import NOW, ago, kubevirt, move, node, plan_of, situation, vm

from webhook.core.api.meta import ObjectMeta
from webhook.core.api.pod import Pod, PodSpec, Toleration
from webhook.core.api.virtual_machine import VMICondition
from webhook.core.live_migration.migration import Migration
from webhook.core.live_migration.vm import Placement
from webhook.core.observe.vm_status import State
from webhook.core.reasons import Reason
from webhook.core.reunite.decide import Situation
from webhook.core.reunite.not_yet import NotYet, Rule

KEY = ("ns", "vm")
_ALL = [Toleration(operator="Exists")]
TOLERATES_ALL = {
    "pod": Pod(metadata=ObjectMeta(), spec=PodSpec(tolerations=_ALL)),
    "placement": Placement(tolerations=_ALL),
}


def _ours(created: float, phase: str = "Succeeded", **changes: Any) -> Migration:
    return move(created, phase, ours=True, **changes)


@pytest.mark.parametrize(
    ("at", "rule"),
    [
        pytest.param(situation(vm()), None, id="nothing is against it"),
        pytest.param(replace(situation(vm()), kubevirt=None), Rule.KUBEVIRT_UNKNOWN, id="no KubeVirt"),
        pytest.param(situation(vm(), installed=kubevirt("")), Rule.KUBEVIRT_UNKNOWN, id="no version"),
        pytest.param(situation(vm(), installed=kubevirt("v4.17.3")), Rule.KUBEVIRT_UNKNOWN, id="a product's version"),
        pytest.param(situation(vm(), installed=kubevirt("v1.4.9")), Rule.KUBEVIRT_TOO_OLD, id="KubeVirt 1.4"),
        pytest.param(situation(vm(), installed=kubevirt("v0.59.0")), Rule.KUBEVIRT_TOO_OLD, id="KubeVirt 0.59"),
        pytest.param(
            situation(vm(), installed=kubevirt(phase="Deploying")), Rule.KUBEVIRT_CHANGES, id="KubeVirt is installed"
        ),
        pytest.param(
            situation(vm(), installed=kubevirt(observed_deployment="old", target_deployment="new")),
            Rule.KUBEVIRT_CHANGES,
            id="KubeVirt is upgraded",
        ),
        pytest.param(situation(vm(reunite="false")), Rule.NOT_ASKED, id="kept out"),
        pytest.param(situation(vm(reunite="yes")), Rule.NOT_ASKED, id="an annotation that nobody knows"),
        pytest.param(situation(vm(), default=False), Rule.NOT_ASKED, id="the default is off"),
        pytest.param(situation(vm(reunite="true"), default=False), None, id="let in"),
        pytest.param(situation(vm(homes=("b", "c"))), Rule.SEVERAL_NODES, id="two homes"),
        pytest.param(situation(vm(homes=("b", "b"))), None, id="two claims, one home"),
        pytest.param(situation(vm(phase="Scheduled")), Rule.NOT_RUNNING, id="not running"),
        pytest.param(situation(vm(phase=None)), Rule.NOT_RUNNING, id="no phase"),
        pytest.param(situation(vm(unmigratable="HostDevice")), Rule.NOT_MIGRATABLE, id="not migratable"),
        pytest.param(
            situation(vm(held=Reason.VM_NODE_NOT_READY.why(node="a"))), Rule.NOT_MIGRATABLE, id="its node is lost"
        ),
        pytest.param(situation(vm(copying="snapshot s of it runs")), Rule.VM_BUSY, id="busy"),
        pytest.param(situation(vm(), move(10, "Running")), Rule.MIGRATING, id="a migration runs"),
        pytest.param(
            situation(vm(started=ago(5)), move(10, "Running")), Rule.MIGRATING, id="one from before the start runs"
        ),
        pytest.param(situation(vm(migrating=True)), Rule.MIGRATING, id="two pods on nodes"),
        pytest.param(situation(vm(evacuation_node_name="a")), Rule.EVACUATING, id="has to leave its node"),
        pytest.param(situation(vm(evacuation_node_name="c")), None, id="has left the node that it had to leave"),
        pytest.param(
            situation(vm(), vm("x", "b", (), evacuation_node_name="b")), Rule.NODE_EVACUATED, id="home is drained"
        ),
        pytest.param(
            situation(vm(), vm("x", "b", (), evacuation_node_name="b", unmigratable="no")),
            None,
            id="a mark that nobody follows",
        ),
        pytest.param(situation(vm(), move(9, "Pending", "x", evacuates="b")), Rule.NODE_EVACUATED, id="a drain waits"),
        pytest.param(
            situation(vm(), move(1_799, vmi="x", evacuates="b")), Rule.NODE_NOT_CALM, id="home is almost calm"
        ),
        pytest.param(situation(vm(), move(1_800, vmi="x", evacuates="b")), None, id="home is just calm"),
        pytest.param(situation(vm(), move(1, vmi="x", evacuates="c")), None, id="another node was drained"),
        pytest.param(
            situation(vm(), node("b", ready_since=ago(1_799))),
            Rule.NODE_JUST_READY,
            id="home was down almost long enough ago",
        ),
        pytest.param(situation(vm(), node("b", ready_since=ago(1_800))), None, id="home is up long enough"),
        pytest.param(situation(vm(), node("b")), None, id="home is up since when?"),
        pytest.param(situation(vm(), node("a", ready_since=ago(9))), None, id="home is not known"),
        pytest.param(
            situation(vm(), node("b", key="kured", effect="PreferNoSchedule")), Rule.TARGET_TAINTED, id="a soft taint"
        ),
        pytest.param(
            situation(vm(**TOLERATES_ALL), node("b", key="kured", effect="PreferNoSchedule")),
            None,
            id="a soft taint that the pod tolerates",
        ),
        pytest.param(
            situation(vm(**TOLERATES_ALL), node("b", key="medik8s.io/drain", effect="NoSchedule")),
            Rule.TARGET_TAINTED,
            id="a node in maintenance",
        ),
        pytest.param(situation(vm(since=ago(1_799))), Rule.TOO_SOON, id="apart almost long enough"),
        pytest.param(situation(vm(since=ago(1_800))), None, id="apart just long enough"),
        pytest.param(
            situation(vm(), move(1_900, ended=ago(1_799), updates=True)), Rule.TOO_SOON, id="its move ended too late"
        ),
        pytest.param(
            situation(vm(), move(1_900, ended=ago(1_800), updates=True)), None, id="its move ended long enough ago"
        ),
        pytest.param(situation(vm(since=None)), Rule.TOO_SOON, id="apart since when?"),
        pytest.param(situation(vm(since="?")), Rule.TOO_SOON, id="apart since no time"),
        pytest.param(
            situation(vm(), *(_ours(86_399, "Failed", vmi=f"x{i}") for i in range(5))),
            Rule.STOPPED,
            id="five VMs failed in a day",
        ),
        pytest.param(
            situation(vm(), *(_ours(9_000 + i, "Failed", vmi=f"x{i % 4}") for i in range(9))),
            None,
            id="four VMs failed, some of them often",
        ),
        pytest.param(
            situation(vm(), *(_ours(86_400, "Failed", vmi=f"x{i}") for i in range(5))), None, id="failed a day ago"
        ),
        pytest.param(situation(vm(), *(move(9, "Failed", f"x{i}") for i in range(5))), None, id="others' failed"),
    ],
)
def test_a_vm_shows_the_first_rule_that_says_no(at: Situation, rule: Rule | None) -> None:
    """A VM that no rule is against is asked about and moved; another is neither."""
    planned = plan_of(at)
    told = planned.waiting.get(KEY)
    assert (told and told.rule) is rule
    assert ([each.vm for each in planned.creates], planned.asked) == (([], []) if rule else (["vm"], ["vm"]))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"deleted": True}, "it is being deleted"),
        ({"eviction_strategy": "None"}, "its evictionStrategy is None"),
        ({"eviction_strategy": "External"}, "its evictionStrategy is External"),
        (
            {"conditions": [VMICondition(type="HotVCPUChange", status="False")]},
            "KubeVirt changes it: condition HotVCPU",
        ),
        (
            {"conditions": [VMICondition(type="Paused", status="True", reason="PausedIOError")]},
            "it is paused: PausedIO",
        ),
    ],
)
def test_a_busy_vm_says_what_is_done_with_it(changes: dict[str, Any], words: str) -> None:
    """tests/unit/core/live_migration/test_vm.py has each cause."""
    assert words in str(plan_of(situation(vm(**changes))).waiting[KEY])


def test_a_vm_that_fits_its_node_not_waits_and_takes_nothing_of_the_limits() -> None:
    """The answer of the node is the VM's rule, and each further VM is asked about."""
    refused = Rule.NOT_PLACEABLE.says_no(because="no room")
    planned = plan_of(situation(vm("one"), vm("two"), vm("three")), refused)
    assert (planned.creates, set(planned.waiting.values()), len(planned.asked)) == ([], {refused}, 3)
    assert str(refused) == "NotPlaceable: no room"


def test_a_migration_that_the_api_server_refuses_costs_the_others_nothing() -> None:
    """Two VMs that KubeVirt always refuses come first, and each healthy VM still has its turn in the same run."""
    vms = [vm(f"v{i}", f"n{i}", (f"h{i}",), since=ago(90_000 - i)) for i in range(7)]
    assert len(plan_of(situation(*vms), takes=False).creates) == 7
    assert len(plan_of(situation(*vms)).creates) == 2


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
    assert plan_of(situation(there)) == ([], {}, [])


def test_each_rule_has_its_own_code() -> None:
    """Users read and search codes."""
    assert len({each.code for each in Rule}) == len(Rule)
    assert isinstance(Rule.MIGRATING.says_no(), NotYet)


def test_a_name_that_another_vms_migration_has_is_left_out() -> None:
    """Somebody named the migration of another VM as this program would name its own."""
    at = situation(vm(), move(9_000, vmi="other", name="vm-reunite-1"))
    assert [each.name for each in plan_of(at).creates] == ["vm-reunite-2"]


def test_the_time_of_the_situation_counts() -> None:
    """Not that of the machine."""
    assert plan_of(situation(vm(since=ago(1_799)), now=NOW + 1)).creates
