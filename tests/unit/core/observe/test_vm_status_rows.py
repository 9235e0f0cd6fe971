"""Which pod tells where a VM is, since when, and which of its claims count."""

from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import replace
from support.fakes.views import cluster
from support.objects import builders
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance
from support.objects.fleets import EARLY, LATER, LATEST, TWO, disk, launcher, scheduled, served, the_row

from webhook.core import refs
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.observe.vm_state import vm_status_of
from webhook.core.observe.vm_status import State, percent_together
from webhook.core.opt_in import Mode, Policy, opts_in
from webhook.core.reasons import Reason
from webhook.core.view import NoObject

Object = dict[str, Any]


@pytest.mark.parametrize("node", ["node-a", "node-b"], ids=["together", "apart"])
@pytest.mark.parametrize(("vm", "manager"), [(LATER, LATEST), (LATEST, LATER)], ids=["VM first", "VM last"])
def test_since_is_the_later_of_the_two(vm: str, manager: str, node: str) -> None:
    """The state began when the second of VM and share-manager was bound."""
    objects = [*disk("root"), *served("root", node, manager)]
    assert the_row(launcher("root", nodeName="node-a", conditions=[scheduled(vm)]), objects=objects).since == LATEST


def test_apart_began_with_the_first_and_together_with_the_last() -> None:
    """With two share-managers."""
    pod = launcher("root", "data", nodeName="node-a", conditions=[scheduled(EARLY)])
    apart = [*TWO, *served("root", "node-b", LATER), *served("data", "node-c", LATEST)]
    together = [*TWO, *served("root", "node-a", LATER), *served("data", "node-a", LATEST)]
    assert the_row(pod, objects=apart).since == LATER
    assert the_row(pod, objects=together).since == LATEST


def test_a_time_that_no_object_has_stays_unknown() -> None:
    """The time of the VM's pod, and of the share-manager's."""
    bare = convert({"metadata": {**_META, "name": "p"}, "spec": {"nodeName": "node-a", **_VOLUMES}}, Pod)
    manager = builders.share_manager("root", state="running", ownerID="node-b")
    assert the_row(bare, objects=[*disk("root"), manager]).since is None
    assert the_row(bare, objects=[*disk("root"), *served("root", "node-a", LATER)]).since == LATER


_META = {"namespace": "vms", "annotations": {builders.OPT_IN: "true"}}
_VOLUMES = {"volumes": [builders.claim_volume("disk", "root")]}


# Which pod, and whose.


@pytest.mark.parametrize(
    ("instance", "kind"),
    [
        ([virtual_machine_instance()], "vm"),
        ([virtual_machine_instance(vm=None)], "vmi"),
        ([], "vm"),
    ],
    ids=["a VM's", "of its own", "unknown"],
)
def test_explain_finds_the_vm_by_its_kind(instance: list[Object], kind: str) -> None:
    """An instance that no VirtualMachine owns is found as vmi/NAME only."""
    assert the_row(launcher("root", nodeName="node-a"), objects=instance).kind == kind


def test_a_pod_without_an_owner_has_its_own_name_as_the_vms() -> None:
    """A user created the pod by hand."""
    bare = convert({"metadata": {**_META, "name": "p"}, "spec": {}}, Pod)
    assert the_row(bare).name == "p"


SOURCE = launcher("root", name="virt-launcher-db01-zzzzz", nodeName="node-a")
TARGET = {"name": "virt-launcher-db01-bbbbb", "created": LATER}
PODS = [
    pytest.param([launcher("root", nodeName="node-b", **TARGET)], "node-b", True, id="a migration's target"),
    pytest.param([launcher("root", **TARGET)], "node-a", False, id="a target on no node yet"),
    pytest.param([launcher("root", phase="Failed", nodeName="node-b", **TARGET)], "node-a", False, id="a failed one"),
    pytest.param([launcher("root", deleting=True, nodeName="node-b", **TARGET)], "node-a", False, id="one that ends"),
]


@pytest.mark.parametrize(("others", "node", "migrating"), PODS)
def test_of_several_pods_the_one_that_stays_counts(others: list[Pod], node: str, migrating: bool) -> None:  # noqa: FBT001 - a row
    """As for steering. A second pod on a node means a live migration."""
    for pods in ([SOURCE, *others], [*others, SOURCE]):
        found = the_row(*pods, objects=[*disk("root"), *served("root", "node-a")])
        assert (found.name, found.node, found.migrating) == ("db01", node, migrating)


def test_a_vm_whose_pods_have_ended_has_no_status() -> None:
    """It does not run. A VM without pods has no status, either."""
    assert vm_status_of([launcher("root", phase="Succeeded")], cluster(), Policy(), LATEST) is None
    assert vm_status_of([], cluster(), Policy(), LATEST) is None


ASKED = [
    pytest.param("true", Mode.REQUIRED, Mode.REQUIRED, id="the cluster's mode"),
    pytest.param("true", Mode.OFF, None, id="off"),
    pytest.param("preferred", Mode.OFF, Mode.PREFERRED, id="its own"),
    pytest.param("false", Mode.REQUIRED, None, id="no"),
    pytest.param(None, Mode.REQUIRED, None, id="nothing"),
]


@pytest.mark.parametrize(("opt_in", "cluster_mode", "mode"), ASKED)
def test_only_vms_that_opt_in_have_a_status(opt_in: str | None, cluster_mode: Mode, mode: Mode | None) -> None:
    """It has the VM's mode. The cheap check `opts_in` never excludes such a VM."""
    found = vm_status_of([launcher(opt_in=opt_in, nodeName="node-a")], cluster(), Policy(cluster_mode), LATEST)
    assert (found and (found.mode, found.asked)) == (mode and (mode, opt_in))
    assert opts_in(opt_in) or found is None


SOURCE_POD = launcher("root", name="virt-launcher-db01-source", nodeName="node-b", created=EARLY)
ENDING_POD = replace(SOURCE_POD, metadata=replace(SOURCE_POD.metadata, deletion_timestamp=LATER))
TARGET_POD = launcher(
    "root",
    name="virt-launcher-db01-target",
    nodeName="node-a",
    created=LATER,
    labels={"kubevirt.io/migrationJobUID": "m"},
)


@pytest.mark.parametrize(
    ("node", "on", "state"),
    [
        pytest.param("node-b", "node-b", State.APART, id="the migration failed, or is under way"),
        pytest.param("node-a", "node-a", State.TOGETHER, id="the migration is done"),
        pytest.param("node-c", "node-a", State.TOGETHER, id="no pod is seen on the node"),
        pytest.param("No Node", "node-a", State.TOGETHER, id="no name of a node"),
        pytest.param(None, "node-a", State.TOGETHER, id="the instance names no node"),
    ],
)
def test_the_node_of_the_instance_tells_in_which_pod_the_vm_is(node: str | None, on: str, state: State) -> None:
    """Without it the newest pod does."""
    instance = virtual_machine_instance("db01", ["root"], uid=builders.OWNER_UID, node=node)
    objects = [*disk("root"), *served("root", "node-a"), instance]
    row = the_row(SOURCE_POD, TARGET_POD, objects=objects)
    assert (row.node, row.state, row.migrating) == (on, state, True)


def test_without_the_instance_nobody_knows_in_which_of_two_pods_the_vm_is() -> None:
    """The target of a failed migration would make it together. One pod that is on a node needs no instance."""
    gaps = {refs.virtual_machine_instance(NamespacedName("vms", "db01")): NoObject.UNAVAILABLE}
    objects = [*disk("root"), *served("root", "node-a")]
    for source in (SOURCE_POD, ENDING_POD):  # a VM runs in its pod until that is gone
        row = the_row(source, TARGET_POD, objects=objects, gaps=gaps)
        assert (row.state, row.reason, row.since) == (State.UNKNOWN, "VmPodNotKnown", None)
    assert the_row(SOURCE_POD, objects=objects, gaps=gaps).state is State.APART


SHARED_BY_TWO = [virtual_machine("db01", ["root", "tools"]), virtual_machine("other", ["tools"])]
STATE = "persistent-state-for-db01-x7k2p"
TOOLS_AS_CDROM = [virtual_machine("db01", ["root"], cdroms=["tools"])]


@pytest.mark.parametrize(
    ("claim", "vms", "reason"),
    [
        pytest.param("tools", SHARED_BY_TWO, Reason.SHARED_CLAIM, id="shared"),
        pytest.param("tools", TOOLS_AS_CDROM, Reason.CDROM_CLAIM, id="a CD-ROM"),
        pytest.param(STATE, [], Reason.STATE_CLAIM, id="a few KB of state"),
    ],
)
@pytest.mark.parametrize(
    ("root", "state"),
    [
        pytest.param([*disk("root"), *served("root", "node-a")], State.TOGETHER, id="with its own disk"),
        pytest.param(disk("root"), State.FREE, id="with an own disk that is on no node"),
        pytest.param([*disk("root"), *served("root", None)], State.PENDING, id="with a hint of an own disk's"),
    ],
)
def test_only_disks_of_the_vms_own_make_it_apart(
    root: list[Object], state: State, claim: str, vms: list[Object], reason: Reason
) -> None:
    """The other claim is shown with its node, and compared with none; so no migration brings the VM to it."""
    objects = [*root, *disk(claim), *served(claim, "node-b"), *vms]
    found = the_row(launcher("root", claim, nodeName="node-a"), objects=objects)
    assert (found.state, found.reason == reason.code) == (state, False)
    assert (found.volumes[1].node, found.volumes[1].together, found.volumes[1].reason) == ("node-b", None, reason.code)
    assert "node-b" not in found.share_manager_nodes


PLUGGED = virtual_machine("db01", ["root"], hotpluggable=["data"])


@pytest.mark.parametrize(
    ("root", "state"),
    [
        pytest.param(served("root", "node-a"), State.TOGETHER, id="the root disk is together"),
        pytest.param(served("root", "node-b"), State.APART, id="apart"),
        pytest.param(served("root", None), State.PENDING, id="starts, too"),
        pytest.param([], State.PENDING, id="nowhere"),
    ],
)
def test_a_plugged_claim_that_starts_leaves_the_vm_where_its_root_disk_is(root: list[Object], state: State) -> None:
    """The VM runs with its root disk, and somebody has just plugged in another claim."""
    objects = [*disk("root"), *root, *disk("data"), *served("data", None), PLUGGED]
    assert the_row(launcher("root", nodeName="node-a"), objects=objects).state is state


# How many are together.


@pytest.mark.parametrize(
    ("counts", "percent"),
    [
        ({State.TOGETHER: 1, State.APART: 2, State.FREE: 2}, 33),
        ({State.TOGETHER: 999, State.PENDING: 1, State.UNKNOWN: 9}, 99),
        ({State.TOGETHER: 3, State.FREE: 5}, 100),
        ({State.FREE: 3}, None),
    ],
)
def test_100_percent_means_all(counts: dict[State, int], percent: int | None) -> None:
    """Of those that can be compared."""
    assert percent_together(dict.fromkeys(State, 0) | counts) == percent
