"""Which stuck VMs are started anew: one row for each rule that says no, and what decides about the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest
from msgspec import convert
from msgspec.structs import replace
from support.fakes.views import Patchy, cluster
from support.objects import builders
from support.objects.builders_pods import asking, pod

from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.observe.vm_status import State, vm_status_of
from webhook.core.opt_in import Mode, Policy
from webhook.core.reunite.not_yet import NotYet, Rule
from webhook.core.reunite.promise import Promise
from webhook.core.reunite.stuck import AGAIN_SECONDS, RestartVM, StuckLimits, StuckVM, judge
from webhook.core.scheduler.state.snapshot import NOT_COUNTED, AnySnapshot, SnapshotUnavailable
from webhook.core.view import ClusterView, Kind, NeedObjects, NoObject, ObjectRef
from webhook.files.manifests import Manifests

SINCE: Final = "2026-11-22T12:00:00Z"
STARTED: Final = "2026-11-22T11:59:59Z"
NOON: Final = 1_795_348_800.0  # SINCE
LIMITS: Final = StuckLimits(stuck_seconds=60)
CLAIM: Final = (builders.persistent_volume_claim("a", volume_name="pv"), builders.persistent_volume("pv", claim="a"))
FULL: Final = {"cpu": "1"}
ASKS: Final = {"cpu": "2"}
Object = dict[str, Any]


def waiting(**parts: Any) -> Object:
    """The pod of VM db01 that the webhook pinned to n1, and that kube-scheduler finds no node for."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": SINCE}
    status = {"phase": "Pending", "conditions": [condition], **parts.pop("status", {})}
    annotations = parts.pop("annotations", builders.written("n1"))
    pinned = {"pinned_to": ["n1"], "annotations": annotations, "claims": ["a"], **parts}
    return {**asking(builders.vm_pod("db01", **pinned), ASKS), "status": status}


def stuck(object_: Object | None = None, **parts: Any) -> StuckVM:
    """The VM of this pod."""
    object_ = object_ or waiting()
    found = convert(object_, Pod)
    row = vm_status_of([convert(waiting(), Pod)], cluster(), Policy(mode=Mode.REQUIRED))
    assert row is not None
    assert row.state is State.STUCK
    parts = {"started": STARTED, "owner": "db01", "run_strategy": "Always", **parts}
    return StuckVM(row=row, pod=found, uid="u", resource_version="7", **parts)


def lost(*others: Object) -> Manifests:
    """A cluster whose node n1 is lost, with these objects beside it."""
    return cluster(*CLAIM, builders.node("n1", ready="Unknown"), *others)


def judged(
    vm: StuckVM, view: ClusterView, now: float = NOON + 60, promises: Sequence[Promise] = (), **limits: Any
) -> RestartVM | NotYet | NeedObjects:
    """The answer for one VM."""
    return judge(vm, now, replace(LIMITS, **limits), promises, view)


def rule(found: object) -> Rule:
    """The rule that says no."""
    assert isinstance(found, NotYet)
    return found.rule


def test_a_vm_whose_node_is_lost_is_started_anew() -> None:
    """Another node takes the pod as its user wrote it, and the sentence names pod, nodes and time."""
    found = judged(stuck(), lost(builders.node("n2")))
    assert isinstance(found, RestartVM)
    assert found.node == "n2"
    assert found.sentence == (
        "pod virt-launcher-db01 waits since 2026-11-22T12:00:00Z: the webhook requires n1, and kube-scheduler can't use"
        " that. Node n2 would take the pod. reunite deletes the pod, and KubeVirt starts the VM anew"
    )


def test_a_long_list_of_nodes_is_cut_in_the_sentence() -> None:
    """Three names are enough to find the list in the pod."""
    names = ["n1", "n3", "n4", "n5", "n6"]
    vm = replace(stuck(), pod=convert(waiting(pinned_to=names), Pod))
    assert "requires n1, n3, n4 and 2 more, and" in RestartVM(vm=vm, node="n2").sentence


@pytest.mark.parametrize("strategy", ["Always", "RerunOnFailure"])
def test_kubevirt_starts_these_again(strategy: str) -> None:
    """virt-controller makes a new VirtualMachineInstance after a failed one."""
    assert isinstance(judged(stuck(run_strategy=strategy), lost(builders.node("n2"))), RestartVM)


@pytest.mark.parametrize(
    ("vm", "expected", "words"),
    [
        pytest.param({"reunite": "false"}, Rule.NOT_ASKED, "is false", id="the VM is kept out"),
        pytest.param({"owner": None}, Rule.NO_VIRTUAL_MACHINE, "owns db01", id="no VirtualMachine"),
        pytest.param({"run_strategy": "Manual"}, Rule.RUN_STRATEGY, "virtctl restart db01 -n vms", id="Manual"),
        pytest.param({"run_strategy": "Once"}, Rule.RUN_STRATEGY, "kubectl delete virtualmachineinstance", id="Once"),
        pytest.param({"run_strategy": "Halted"}, Rule.RUN_STRATEGY, "virtctl start", id="Halted"),
        pytest.param({"run_strategy": None}, Rule.RUN_STRATEGY, "not known", id="could not be read"),
        pytest.param(
            {"failed_starts": 1, "started": SINCE}, Rule.STARTED_ANEW, "1 starts of the VM failed", id="a second time"
        ),
    ],
)
def test_a_vm_that_is_only_told(vm: dict[str, Any], expected: Rule, words: str) -> None:
    """Its pod stays, although another node would take it."""
    found = judged(stuck(**vm), lost(builders.node("n2")))
    assert rule(found) is expected
    assert words in str(found)


def test_with_the_default_off_only_a_vm_that_asks_is_started_anew() -> None:
    """As for migrations: the annotation decides, then the default."""
    view = lost(builders.node("n2"))
    assert "default is off" in str(judged(stuck(), view, default_on=False))
    assert isinstance(judged(stuck(reunite="true"), view, default_on=False), RestartVM)


CONDITION: Final = {"type": "PodScheduled", "status": "False", "lastTransitionTime": SINCE}


@pytest.mark.parametrize(
    ("object_", "expected", "words"),
    [
        pytest.param(waiting(node="n1"), Rule.NOT_STUCK, "on node n1 now", id="bound meanwhile"),
        pytest.param(waiting(deleting=True), Rule.NOT_STUCK, "being deleted", id="deleted meanwhile"),
        pytest.param(waiting(schedulingGates=[{"name": "g"}]), Rule.NOT_STUCK, "scheduling gates", id="gated"),
        pytest.param(
            waiting(status={"nominatedNodeName": "n1"}), Rule.NOT_STUCK, "makes room for it on node n1", id="nominated"
        ),
        pytest.param(
            waiting(status={"conditions": []}), Rule.NOT_STUCK, "does not report", id="kube-scheduler has not looked"
        ),
        pytest.param(
            waiting(status={"conditions": [{**CONDITION, "reason": "SchedulerError"}]}),
            Rule.NOT_STUCK,
            "does not report",
            id="kube-scheduler had an error",
        ),
        pytest.param(waiting(annotations={}), Rule.NOT_OURS, "virt-launcher-db01", id="the user's own pin"),
        pytest.param(
            waiting(status={"conditions": [{**CONDITION, "reason": "Unschedulable", "lastTransitionTime": None}]}),
            Rule.STUCK_TOO_SOON,
            "an unknown time",
            id="since when is not known",
        ),
    ],
)
def test_a_pod_that_does_not_wait_for_the_webhooks_nodes_stays(object_: Object, expected: Rule, words: str) -> None:
    """The pod is looked at as it is now, because the row can be older."""
    found = judged(stuck(object_), lost(builders.node("n2")))
    assert rule(found) is expected
    assert words in str(found)


def test_a_pod_without_a_status_stays() -> None:
    """Nothing is known of it."""
    vm = stuck()
    assert rule(judged(replace(vm, pod=replace(vm.pod, status=None)), lost(builders.node("n2")))) is Rule.NOT_STUCK


@pytest.mark.parametrize(
    ("now", "started_anew"),
    [pytest.param(NOON + 59.9, False, id="just before"), pytest.param(NOON + 60, True, id="on time")],
)
def test_kube_scheduler_gets_its_time(now: float, *, started_anew: bool) -> None:
    """The setting counts from the condition's lastTransitionTime."""
    found = judged(stuck(), lost(builders.node("n2")), now)
    assert isinstance(found, RestartVM) is started_anew
    assert started_anew or rule(found) is Rule.STUCK_TOO_SOON


@pytest.mark.parametrize(
    ("after", "started_anew"),
    [pytest.param(AGAIN_SECONDS - 0.1, False, id="just before"), pytest.param(AGAIN_SECONDS, True, id="on time")],
)
def test_a_vm_that_has_not_run_since_waits_ten_minutes(after: float, *, started_anew: bool) -> None:
    """They count from the creation of the new VMI, which is later than the deletion before it."""
    found = judged(stuck(failed_starts=1, started=SINCE), lost(builders.node("n2")), NOON + after)
    assert isinstance(found, RestartVM) is started_anew
    assert started_anew or rule(found) is Rule.STARTED_ANEW


FILLED: Final = builders.node("n1", allocatable=FULL)


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
    gap = {ObjectRef(Kind.NODE, NamespacedName("", name)): NoObject.NOT_CACHED for name in ("n1", "n2")}
    view = lost(builders.node("n2"), builders.node("n3"))
    assert getattr(judged(stuck(), Patchy(view, gap)), "node", None) == "n3"
    assert rule(judged(stuck(), Patchy(lost(builders.node("n2")), gap))) is Rule.NO_OTHER_NODE


def test_what_must_be_read_is_asked_for() -> None:
    """The claim leads to the volume, which can forbid nodes."""
    ref = ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "a"))
    found = judged(stuck(), Patchy(lost(builders.node("n2")), {ref: NoObject.NOT_CACHED}))
    assert found == NeedObjects((ref,))


class Shown(Patchy):
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
        pytest.param(Patchy(lost(builders.node("n2")), {}, staleness="a read failed"), "a read failed", id="stale"),
        pytest.param(
            Shown(lost(builders.node("n2")), SnapshotUnavailable("pods: not up to date")), "not up to date", id="late"
        ),
        pytest.param(Shown(lost(builders.node("n2")), NOT_COUNTED), "does not watch all pods", id="no pods"),
        pytest.param(cluster(builders.node("n1", ready="Unknown"), builders.node("n2")), "claim a", id="no volume"),
    ],
)
def test_what_is_not_known_is_no_reason_to_delete(view: ClusterView, words: str) -> None:
    """The first gap is told."""
    found = judged(stuck(), view)
    assert rule(found) is Rule.NOT_EVALUATED
    assert words in str(found)


def test_a_rule_that_no_plugin_here_evaluates_is_no_reason_to_delete() -> None:
    """kube-scheduler could refuse every node for it."""
    object_ = waiting(resourceClaims=[{"name": "gpu"}])
    assert rule(judged(stuck(object_), lost(builders.node("n2")))) is Rule.NOT_EVALUATED


def test_two_vms_are_not_started_anew_for_the_room_of_one() -> None:
    """The first gets a promise, which makes the node look full to the second."""
    view = lost(builders.node("n2", allocatable={"cpu": "3"}))
    first = judged(stuck(), view)
    assert isinstance(first, RestartVM)
    promise = first.promise(NOON + 60)
    assert rule(judged(stuck(), view, promises=[promise])) is Rule.NO_OTHER_NODE
    assert isinstance(judged(stuck(), view, promises=[replace(promise, node="n3")]), RestartVM)


def test_pods_of_others_count() -> None:
    """A node that others fill takes nobody."""
    view = lost(builders.node("n2", allocatable={"cpu": "3"}), pod("other", node="n2", requests=ASKS))
    assert rule(judged(stuck(), view)) is Rule.NO_OTHER_NODE
