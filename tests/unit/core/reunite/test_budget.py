"""How many migrations may start: KubeVirt's limits, those of `reunite`, and what others run."""

import pytest
from msgspec.structs import replace
from support.objects.reunite_vms import ago, kubevirt, move, plan_of, situation, vm

from webhook.core.live_migration.kubevirt import KubeVirtConfiguration, KubeVirtSpec, MigrationConfiguration
from webhook.core.live_migration.migration import Migration
from webhook.core.reunite.not_yet import Rule

KEY = ("ns", "vm")


@pytest.mark.parametrize(
    ("running", "limits", "rule"),
    [
        pytest.param([move(1, "Running", "x", ours=True, target_node="c")], {}, None, id="one of ours, elsewhere"),
        pytest.param([move(1, "Running", "x", ours=True)], {}, Rule.NODE_BUSY, id="one of ours, who knows where"),
        pytest.param([move(1, "Running", x, ours=True) for x in "xy"], {}, Rule.CLUSTER_BUSY, id="two of ours"),
        pytest.param([move(1, "Running", x) for x in "uvw"], {}, None, id="three of others, one stays free"),
        pytest.param([move(1, "Pending", x) for x in "uvwx"], {}, Rule.CLUSTER_BUSY, id="four of others"),
        pytest.param([], {"parallel_migrations_per_cluster": 1}, None, id="KubeVirt allows one"),
        pytest.param([], {"parallel_migrations_per_cluster": 0}, Rule.CLUSTER_BUSY, id="KubeVirt allows none"),
        pytest.param([move(1, "Running", "x", source_node="a")], {}, None, id="one leaves the node"),
        pytest.param(
            [move(1, "Running", x, source_node="a") for x in "xy"], {}, Rule.NODE_BUSY, id="two leave the node"
        ),
        pytest.param([], {"parallel_outbound_migrations_per_node": 0}, Rule.NODE_BUSY, id="none may leave a node"),
        pytest.param([move(1, "Running", x, target_node="b") for x in "xy"], {}, None, id="others' targets are free"),
        pytest.param(
            [move(1, "Running", "x", ours=True, target_node="b")], {}, Rule.NODE_BUSY, id="ours comes home there"
        ),
        pytest.param(
            [move(1, "Running", "x", ours=True, source_node="b")], {}, Rule.NODE_BUSY, id="ours leaves the home"
        ),
        pytest.param([move(1, "", "there", ours=True)], {}, Rule.NODE_BUSY, id="ours without a target yet"),
        pytest.param([move(1, "", "other", ours=True)], {}, None, id="ours without a target yet, to another node"),
        pytest.param([move(1, "", "there")], {}, None, id="others' without a target yet"),
        pytest.param(
            [move(299, "Pending", x, ours=True) for x in "xy"],
            {},
            Rule.CLUSTER_BUSY,
            id="two of ours wait",
        ),
        pytest.param([move(300, "Pending", x, ours=True) for x in "xy"], {}, None, id="for five minutes"),
        pytest.param([move(300, "Running", x, ours=True) for x in "xy"], {}, Rule.CLUSTER_BUSY, id="two of ours run"),
        pytest.param(
            [move(1, "Failed", x, source_node="a") for x in "uvwxyz"], {}, None, id="what ended counts no more"
        ),
    ],
)
def test_a_migration_starts_only_within_the_limits(
    running: list[Migration], limits: dict[str, int], rule: Rule | None
) -> None:
    """KubeVirt writes the nodes into a migration at its end: before, the VM's node and its home count."""
    young = ago(2_000)
    others = (vm("there", "c", ("b",), since=young), vm("other", "c", ("d",), since=young))
    configuration = KubeVirtConfiguration(migrations=MigrationConfiguration(**limits))
    installed = replace(kubevirt(), spec=KubeVirtSpec(configuration=configuration))
    told = plan_of(situation(vm(), *others, *running, installed=installed)).waiting.get(KEY)
    assert (told and told.rule) is rule


def test_a_run_keeps_the_limits_of_a_node_and_the_longest_apart_comes_first() -> None:
    """Each create counts for those after it: the second VM to the same node waits, a third to another node does not."""
    vms = (vm("young", "a"), vm("old", "c", since=ago(91_000)), vm("third", "d", ("e",)))
    planned = plan_of(situation(*vms))
    assert planned.creates == [
        ("old", "b", "old-reunite-1"),
        ("third", "e", "third-reunite-1"),
    ]
    assert planned.asked == ["old", "third", "young"]
    assert planned.waiting["ns", "young"].rule is Rule.CLUSTER_BUSY


def test_the_node_of_a_vm_without_the_annotation_is_counted() -> None:
    """Two migrations leave node a; KubeVirt allows no third one. One of these VMs does not ask for co-scheduling."""
    running = (move(5, "Running", vmi="other"), move(6, "Running", vmi="third"))
    at = replace(situation(vm(), *running), nodes_of={("ns", "other"): "a", ("ns", "third"): "a"})
    assert plan_of(at).waiting[KEY].rule is Rule.NODE_BUSY


@pytest.mark.parametrize("node", ["a", "c"], ids=["the source", "another node"])
def test_both_nodes_count_of_a_vm_whose_target_pod_runs(node: str) -> None:
    """Its row is on the target already, and not apart any more. Its VirtualMachineInstance is still on the source."""
    coming = vm("other", "b", migrating=True)
    moving = move(5, "Running", vmi="other", ours=True)
    limits = {"at_once": 9, "at_once_per_node": 1}
    at = replace(
        situation(vm(node=node, homes=("b" if node == "c" else "d",)), coming, moving, **limits),
        nodes_of={KEY: node, ("ns", "other"): "a"},
    )
    assert plan_of(at).waiting[KEY].rule is Rule.NODE_BUSY


def test_a_migration_without_a_known_target_counts_once_at_each_node() -> None:
    """At its source, too: a limit of two leaves room for one more there."""
    at = situation(vm(), move(1, "Running", "x", ours=True, source_node="a"), at_once_per_node=2)
    assert plan_of(at).creates
