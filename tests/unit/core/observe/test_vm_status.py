from typing import Any

import pytest
from support.objects import builders
from support.objects.fleets import EARLY, LATER, TWO, disk, launcher, served, the_row, unschedulable

from webhook.core.api.meta import NamespacedName
from webhook.core.observe.vm_status import State
from webhook.core.reasons import Reason
from webhook.core.view import Kind, NoObject, ObjectRef

Object = dict[str, Any]

TERMINATING = builders.share_manager_pod("root", nodeName="node-b", deleting=True)
COMPLETED = builders.share_manager_pod("root", nodeName="node-b", phase="Succeeded")
STATES = [
    pytest.param([*disk("root"), *served("root", "node-a")], State.TOGETHER, "ShareManagerPod", id="together"),
    pytest.param([*disk("root"), *served("root", "node-b")], State.APART, "VmWebhookNotAsked", id="apart"),
    pytest.param(
        [*TWO, *served("root", "node-a"), *served("data", "node-b")],
        State.APART,
        "VmShareManagersSpread",
        id="one is apart",
    ),
    pytest.param(
        [*TWO, *served("root", "node-a"), builders.share_manager("data", state="stopped")],
        State.TOGETHER,
        "ShareManagerPod",
        id="what is stopped is nowhere",
    ),
    pytest.param(
        [*disk("root"), builders.share_manager("root", state="running", ownerID="node-a")],
        State.FREE,
        "VmShareManagerPodGone",
        id="no pod, and its ownerID is the VM's node",
    ),
    pytest.param(
        [*disk("root"), builders.share_manager("root", state="running", ownerID="node-b")],
        State.FREE,
        "VmShareManagerPodGone",
        id="no pod, and its ownerID is another node",
    ),
    pytest.param(
        [*disk("root"), builders.share_manager("root", ownerID="node-b"), TERMINATING],
        State.FREE,
        "VmShareManagerPodGone",
        id="its pod terminates",
    ),
    pytest.param(
        [*disk("root"), builders.share_manager("root", state="running", ownerID="node-b"), COMPLETED],
        State.FREE,
        "VmShareManagerPodGone",
        id="its pod has ended",
    ),
    pytest.param(
        [*disk("root"), builders.share_manager("root", state="starting", ownerID="node-b")],
        State.PENDING,
        "ShareManagerNoNode",
        id="an interim ownerID is no place",
    ),
    pytest.param(
        [*disk("root"), builders.share_manager("root", state="starting")],
        State.PENDING,
        "ShareManagerNoNode",
        id="a share-manager starts",
    ),
    pytest.param([*disk("root"), *served("root", None)], State.PENDING, "ShareManagerUnscheduled", id="not scheduled"),
    pytest.param(
        [*TWO, *served("root", "node-a"), *served("data", None)],
        State.PENDING,
        "ShareManagerUnscheduled",
        id="one is on its way",
    ),
    pytest.param(
        [*disk("root"), builders.share_manager("root", state="stopped")], State.FREE, "ShareManagerNoNode", id="stopped"
    ),
    pytest.param(
        disk("root", access_modes=["ReadWriteOnce"]), State.FREE, "ClaimNotReadWriteMany", id="no share-manager"
    ),
    pytest.param([], State.FREE, "ClaimNotFound", id="no claim"),
]


@pytest.mark.parametrize(("objects", "state", "reason"), STATES)
def test_a_vm_on_a_node_is_together_with_its_share_managers_or_apart(
    objects: list[Object], state: State, reason: str
) -> None:
    """Every share-manager on a node counts. Without a node it is starting, or stopped."""
    claims = ["root", "data"] if any(each["metadata"]["name"] == "data" for each in objects) else ["root"]
    found = the_row(launcher(*claims, nodeName="node-a"), objects=objects)
    assert (found.state, found.reason) == (state, reason)
    assert found.node == "node-a"


def test_a_vm_without_claims_is_free() -> None:
    """It has no share-manager."""
    found = the_row(launcher(nodeName="node-a"))
    assert (found.state, found.reason, found.volumes) == (State.FREE, Reason.NO_CLAIMS.code, ())


def test_the_nodes_of_all_share_managers_are_named_once() -> None:
    """Two volumes that one node serves, and one that is together."""
    objects = [*TWO, *disk("state"), *served("root", "node-b"), *served("data", "node-b"), *served("state", "node-a")]
    found = the_row(launcher("root", "data", "state", nodeName="node-a"), objects=objects)
    assert found.share_manager_nodes == ("node-a", "node-b")


UNKNOWNS = [
    pytest.param(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "root"), "ClaimLookupFailed", id="claim"),
    pytest.param(Kind.PERSISTENT_VOLUME, NamespacedName("", "pv-root"), "ClaimLookupFailed", id="volume"),
    pytest.param(Kind.SHARE_MANAGER_POD, NamespacedName("", "share-manager-root"), "ShareManagerPodUnread", id="pod"),
]


@pytest.mark.parametrize(("kind", "key", "reason"), UNKNOWNS)
def test_a_vm_whose_objects_could_not_be_read_is_unknown(kind: Kind, key: NamespacedName, reason: str) -> None:
    """It is neither together nor free. The reason names what could not be read."""
    objects = [*disk("root"), *served("root", "node-a")]
    gaps = {ObjectRef(kind, key): NoObject.UNAVAILABLE}
    found = the_row(launcher("root", nodeName="node-a"), objects=objects, gaps=gaps)
    assert (found.state, found.reason) == (State.UNKNOWN, reason)
    assert found.volumes[0].claim == "root"


def test_a_volume_known_to_be_apart_outweighs_one_that_is_unknown() -> None:
    """In each case the VM is not with all of its share-managers."""
    objects = [*TWO, *served("root", "node-a"), *served("data", "node-b")]
    gaps = {ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", "pv-root")): NoObject.UNAVAILABLE}
    assert the_row(launcher("root", "data", nodeName="node-a"), objects=objects, gaps=gaps).state is State.APART


PINNED = builders.recorded("required", "node-b")
ONE_NODE = {"affinity": builders.node_affinity(required=[builders.on_node("node-b")])}
WAITING = [
    pytest.param({}, None, State.PENDING, "VmNotScheduled", id="kube-scheduler has not looked yet"),
    pytest.param({"annotations": PINNED}, None, State.PENDING, "VmNotScheduled", id="pinned, not looked at yet"),
    pytest.param({"schedulerName": "volcano"}, None, State.PENDING, "VmOtherScheduler", id="of another scheduler"),
    pytest.param({"schedulerName": "default-scheduler"}, None, State.PENDING, "VmNotScheduled", id="of the stock one"),
    pytest.param({}, unschedulable(LATER), State.PENDING, "VmUnschedulable", id="fits nowhere, by no pin of ours"),
    pytest.param({"annotations": PINNED}, unschedulable(LATER), State.STUCK, "VmStuck", id="stuck by its record"),
    pytest.param(ONE_NODE, unschedulable(LATER), State.STUCK, "VmStuck", id="stuck by its affinity"),
    pytest.param(ONE_NODE, unschedulable(LATER, None), State.STUCK, "VmStuck", id="stuck, and nobody says why"),
    pytest.param(
        {"annotations": builders.recorded("preferred", "node-b")},
        unschedulable(LATER),
        State.PENDING,
        "VmUnschedulable",
        id="a preference can't be what keeps it",
    ),
]


@pytest.mark.parametrize(("parts", "condition", "state", "reason"), WAITING)
def test_a_vm_on_no_node_waits_or_is_stuck(parts: Object, condition: Object | None, state: State, reason: str) -> None:
    """A pinned VM that kube-scheduler reports as unschedulable is stuck, since the time of the condition."""
    objects = [*disk("root"), *served("root", "node-b")]
    found = the_row(launcher("root", conditions=condition and [condition], **parts), objects=objects)
    assert (found.state, found.reason, found.node) == (state, reason, None)
    assert found.since == (LATER if condition else EARLY)
    assert found.volumes[0].together is None
    assert found.only_node == ("node-b" if parts is ONE_NODE else None)


def test_the_schedulers_message_is_shown_and_cut() -> None:
    """It can be long, because it counts the nodes for each filter."""
    sentence = the_row(launcher(conditions=[unschedulable(LATER, "0/3 nodes" * 100)])).because
    assert sentence.startswith("pod virt-launcher-db01-aaaaa is on no node yet: kube-scheduler reports: 0/3 nodes0/3")
    assert len(sentence) < 400
