"""A node that is feasible by itself is evaluated beside its other pods."""

from __future__ import annotations

import pytest
from support.models.one_node import OneNodeSnapshot
from support.models.one_node_pods import APART, asking, coming, cycle, taking, there, verdict

from webhook.core.api.pod import Pod
from webhook.core.placement.feasibility import why_undecidable
from webhook.core.reasons import Reason
from webhook.core.scheduler.state.snapshot import AnySnapshot, SnapshotUnavailable

FULL = taking(501)
VERDICTS: dict[str, tuple[OneNodeSnapshot, Pod, tuple[Reason, bool]]] = {
    "full of one that comes": (there(coming(501)), asking(), (Reason.NODE_MAY_FILL_UP, False)),
    "full, and a VM that may go nowhere else waits": (
        there(taking(501), taking(1000, bound=False, pinned=True)),
        asking(),
        (Reason.PINNED_VM_WAITS, False),
    ),
    "partly of one that comes": (there(taking(400), coming(101)), asking(), (Reason.NODE_MAY_FILL_UP, False)),
    "one comes, and there is room for both": (there(coming(500)), asking(), (Reason.PODS_NOT_EVALUATED_YET, True)),
    "room for each of two replicas": (there(replicas=2), asking("500m"), (Reason.NODE_FEASIBLE, True)),
    "room for one of two replicas": (there(replicas=2), asking("501m"), (Reason.REPLICA_SHARE_FULL, True)),
    "room for one of two replicas, and one comes": (
        there(coming(1), replicas=2),
        asking("500m"),
        (Reason.NODE_MAY_FILL_UP, False),
    ),
    "room for one of two replicas, and one waits for this node alone": (
        there(taking(1, bound=False, pinned=True), replicas=2),
        asking("500m"),
        (Reason.PINNED_VM_WAITS, False),
    ),
    "room for each of three replicas": (there(replicas=3), asking("333m"), (Reason.NODE_FEASIBLE, True)),
    "room for two of three replicas": (there(replicas=3), asking("334m"), (Reason.REPLICA_SHARE_FULL, True)),
    "pods for two of three replicas": (there(taking(0), replicas=3), asking("1m"), (Reason.REPLICA_SHARE_FULL, True)),
    "its own share is taken by one that it has just drawn there": (
        there(coming(200, assumed=True), replicas=2, has={"pods": 9, "cpu": 1000}),
        asking("301m"),
        (Reason.NODE_MAY_FILL_UP, False),
    ),
    "its own share is taken by one that a watch has shown, and other replicas may not have seen": (
        there(coming(200), replicas=2, has={"pods": 9, "cpu": 1000}),
        asking("301m"),
        (Reason.NODE_MAY_FILL_UP, False),
    ),
    "its own share holds both": (
        there(coming(200, assumed=True), replicas=2, has={"pods": 9, "cpu": 1000}),
        asking("300m"),
        (Reason.PODS_NOT_EVALUATED_YET, True),
    ),
    "one that it avoids comes": (
        there(coming(1, labels={"app": "db"})),
        asking(affinity=APART),
        (Reason.DEPENDS_ON_UNSCHEDULED_POD, True),
    ),
    "one that it avoids comes, and may go nowhere else": (
        there(coming(1, labels={"app": "db"}, pinned=True)),
        asking(affinity=APART),
        (Reason.DEPENDS_ON_UNSCHEDULED_POD, False),
    ),
    "a node that was not listed": (there(nodes={}), asking(), (Reason.FREE_RESOURCES_UNKNOWN, True)),
    "a node that was not listed has no resources yet": (
        there(nodes={}, has={}),
        asking(),
        (Reason.FREE_RESOURCES_UNKNOWN, True),
    ),
}


@pytest.mark.parametrize(("snapshot", "pod", "expected"), VERDICTS.values(), ids=VERDICTS)
def test_what_the_others_have_left(snapshot: OneNodeSnapshot, pod: Pod, expected: tuple[Reason, bool]) -> None:
    """Each rule refuses for its reason; what could be the place of a pod that is pinned there is not even preferred."""
    found = verdict(snapshot, pod)
    assert (found.why.reason, found.preferable) == expected


def test_pods_that_are_not_known() -> None:
    """The sentence has the problem, and the node is preferred."""
    found = verdict(SnapshotUnavailable("pods: not listed yet"))
    assert (found.why.reason, found.preferable) == (Reason.FREE_RESOURCES_UNKNOWN, True)
    assert "not listed yet" in found.why.sentence


def test_the_node_s_own_rules_come_first() -> None:
    """They need no other pod."""
    found = verdict(there(FULL), asking(nodeSelector={"disk": "nvme"}))
    assert found.why.reason is Reason.NODE_SELECTOR_MISMATCH


@pytest.mark.parametrize(
    ("snapshot", "pod", "reason"),
    [
        pytest.param(there(), asking(affinity=APART), None, id="between pods, and they are known"),
        pytest.param(
            there(), asking(resourceClaims=[{"name": "gpu"}]), Reason.RESOURCE_CLAIMS, id="devices, beside known pods"
        ),
        pytest.param(there(), asking(schedulingGates=[{"name": "quota"}]), Reason.SCHEDULING_GATED, id="a gate"),
    ],
)
def test_what_no_node_can_be_judged_by(snapshot: AnySnapshot, pod: Pod, reason: Reason | None) -> None:
    """Rules between pods are undecidable only where the pods are not known."""
    why = why_undecidable(cycle(snapshot, pod))
    assert (why and why.reason) == reason


@pytest.mark.parametrize("replicas", [1, 2, 3, 5])
@pytest.mark.parametrize("places", [1, 2, 3, 5])
def test_vms_that_come_one_after_the_other_take_every_place(replicas: int, places: int) -> None:
    """Each is pinned while there is a place for each replica, and preferred after that: it is bound there, too."""
    for taken in range(places):
        node = there(*[taking(100)] * taken, replicas=replicas, has={"pods": 100, "cpu": places * 100})
        found = verdict(node, asking("100m"))
        assert (found.feasible, found.preferable) == (places - taken >= replicas, True)
