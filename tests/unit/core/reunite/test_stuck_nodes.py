"""Whether another node takes the pod of a stuck VM: only then the VM is restarted."""

from __future__ import annotations

from typing import Final

import pytest
from msgspec.structs import replace
from support.fakes.views import MISSING, ViewWithGaps, cluster, missing_after
from support.objects import builders
from support.objects.builders_pods import pod
from support.scenarios.stuck_vms import ASKS, CLAIM, Object, judged, lost, rule, stuck, waiting

from webhook.core.api.meta import NamespacedName
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.patch.applied_patch import AppliedPatch, to_annotation
from webhook.core.reunite.not_yet import Rule
from webhook.core.reunite.stuck import RestartVM
from webhook.core.scheduler.state.snapshot import AnySnapshot, SnapshotUnavailable
from webhook.core.view import ClusterView, Kind, ObjectRef
from webhook.objects.manifests import Manifests

FULL: Final = {"cpu": "1"}
FILLED: Final = builders.node("n1", allocatable=FULL)
FILLED_N2: Final = builders.node("n2", allocatable=FULL)


@pytest.mark.parametrize(
    ("home", "other", "expected"),
    [
        pytest.param(builders.node("n1", cordoned=True), builders.node("n2"), None, id="cordoned"),
        pytest.param(FILLED, builders.node("n2"), None, id="filled"),
        pytest.param(FILLED, builders.node("n2", allocatable=FULL), Rule.NO_OTHER_NODE, id="no room anywhere"),
        pytest.param(FILLED, builders.node("n2", cordoned=True), Rule.NO_OTHER_NODE, id="the other is cordoned"),
        pytest.param(builders.node("n1"), builders.node("n2"), Rule.OWN_NODE_FITS, id="its node takes it again"),
        pytest.param(
            builders.node("n1", allocatable=ASKS), builders.node("n2"), Rule.OWN_NODE_FITS, id="with nothing to spare"
        ),
    ],
)
def test_another_node_decides(home: Object, other: Object, expected: Rule | None) -> None:
    """A VM that waits for room everywhere stays, and one whose node is as good as at its admission."""
    view = cluster(*CLAIM, home, other, waiting())
    found = judged(stuck(), view)
    assert isinstance(found, RestartVM) if expected is None else rule(found) is expected


def test_a_vm_on_a_short_list_is_restarted_if_a_node_beside_the_list_takes_it() -> None:
    """Each node of the list counts as a required one."""
    record = AppliedPatch(nodes=("n1", "n2"), narrowed=2, owner=builders.OWNER_UID)
    vm = stuck(waiting(pinned_to=["n1", "n2"], annotations={builders.WRITTEN: to_annotation(record)}))
    home = builders.node("n1", ready="Unknown")
    assert getattr(judged(vm, cluster(*CLAIM, home, FILLED_N2, builders.node("n3"))), "node", None) == "n3"
    assert rule(judged(vm, cluster(*CLAIM, home, builders.node("n2"), builders.node("n3")))) is Rule.OWN_NODE_FITS
    assert rule(judged(vm, cluster(*CLAIM, home, FILLED_N2))) is Rule.NO_OTHER_NODE


def test_the_sentence_says_what_is_against_the_other_nodes() -> None:
    """The first of them, as an example."""
    found = judged(stuck(), lost(builders.node("n2", cordoned=True), builders.node("n3", cordoned=True)))
    assert str(found) == ("NoOtherNode: none of the 2 other nodes is known to take the pod; node n2 is cordoned")


def test_a_cluster_of_one_node_has_no_other() -> None:
    """There is no example to name."""
    assert "none of the 0 other nodes" in str(judged(stuck(), lost()))


def test_the_users_own_rules_still_hold() -> None:
    """Another node must take the pod as its user wrote it, with its node selector."""
    object_ = waiting(nodeSelector={"zone": "a"})
    assert rule(judged(stuck(object_), lost(builders.node("n2")))) is Rule.NO_OTHER_NODE
    assert isinstance(judged(stuck(object_), lost(builders.node("n2", labels={"zone": "a"}))), RestartVM)


def test_nodes_that_were_not_read_are_left_out() -> None:
    """A node without an object in the caches is no reason to delete a pod."""
    gap = {ObjectRef(Kind.NODE, NamespacedName("", name)): MISSING for name in ("n1", "n2")}
    view = lost(builders.node("n2"), builders.node("n3"))
    assert getattr(judged(stuck(), ViewWithGaps(view, gap)), "node", None) == "n3"
    assert rule(judged(stuck(), ViewWithGaps(lost(builders.node("n2")), gap))) is Rule.NO_OTHER_NODE


def test_what_must_be_read_is_asked_for() -> None:
    """The claim leads to the volume, which can forbid nodes."""
    ref = ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "a"))
    view = ViewWithGaps(lost(builders.node("n2")), {ref: MISSING})
    assert missing_after(view, lambda view: judged(stuck(), view)) == [ref]


class Shown(ViewWithGaps):
    """A view with another snapshot."""

    def __init__(self, whole: Manifests, snapshot: AnySnapshot) -> None:
        super().__init__(whole, {})
        self._shown = snapshot

    def snapshot(self) -> AnySnapshot:
        """Implement ClusterView."""
        return self._shown


@pytest.mark.parametrize(
    ("view", "words"),
    [
        pytest.param(
            Shown(lost(builders.node("n2")), SnapshotUnavailable("pods: not up to date")), "not up to date", id="late"
        ),
        pytest.param(cluster(builders.node("n1", ready="Unknown"), builders.node("n2")), "claim a", id="no volume"),
    ],
)
def test_what_is_not_known_is_no_reason_to_delete(view: ClusterView, words: str) -> None:
    """The sentence names the first gap."""
    found = judged(stuck(), view)
    assert rule(found) is Rule.NOT_EVALUATED
    assert words in str(found)


def test_a_rule_that_no_plugin_here_evaluates_is_no_reason_to_delete() -> None:
    """kube-scheduler could refuse every node for it."""
    object_ = waiting(resourceClaims=[{"name": "gpu"}])
    assert rule(judged(stuck(object_), lost(builders.node("n2")))) is Rule.NOT_EVALUATED


def test_two_vms_are_not_restarted_for_the_room_of_one() -> None:
    """The first VM counts on its new node, which then looks full to the second. Its own waiting pod never counts."""
    view = lost(builders.node("n2", allocatable={"cpu": "3"}), waiting())
    first = judged(stuck(), view)
    assert isinstance(first, RestartVM)
    snapshot = view.snapshot()
    assert isinstance(snapshot, ListedSnapshot)
    snapshot.add(replace(first.vm.pod, spec=replace(first.vm.pod.spec, node_name=first.node)))
    assert rule(judged(stuck(), view)) is Rule.NO_OTHER_NODE


def test_pods_of_others_count() -> None:
    """A node that others fill takes nobody."""
    view = lost(builders.node("n2", allocatable={"cpu": "3"}), pod("other", node="n2", requests=ASKS))
    assert rule(judged(stuck(), view)) is Rule.NO_OTHER_NODE
