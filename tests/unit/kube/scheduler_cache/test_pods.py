"""On which node a pod counts, and which changes of a pod change the count."""

from __future__ import annotations

from typing import Final

import pytest
from support.models.cached_pods import APART, NODES, PIN, Object, made_of, on, pod, recorded, seen, unrecorded_vm, vm
from support.objects import builders

from webhook.core.observe.past_decision import Decided
from webhook.kube.scheduler_cache.assumed_pods import PodIndex

UNSCHEDULABLE: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
REFUSED: Final = {"status": {"phase": "Pending", "conditions": [UNSCHEDULABLE]}}
TOLD_BY_OTHERS: Final = {"status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]}}
NOMINATED: Final = {"status": {"phase": "Pending", "conditions": [UNSCHEDULABLE], "nominatedNodeName": "n1"}}
LIKES: Final = builders.node_affinity(preferred={"n1": 100})
LABELLED: Final = {"matchExpressions": [{"key": "zone", "operator": "Exists"}], **builders.on_node("n1")}
LIKES_A_ZONE: Final = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": LABELLED}, {"weight": 1}]
    }
}


def gated(described: Object) -> Object:
    """The pod with a scheduling gate."""
    return {**described, "spec": {**described["spec"], "schedulingGates": [{"name": "quota"}]}}


NOTHING: Final = (0, 0, 0, False)
PLACES: Final[dict[str, tuple[Object, tuple[int, int, int, bool]]]] = {
    "a VM that is pinned": (vm("a", affinity=PIN), (1, 1, 250, True)),
    "one that kube-scheduler found no room for": (vm("a", affinity=PIN) | REFUSED, (1, 0, 250, True)),
    "one that others tell something of": (vm("a", affinity=PIN) | TOLD_BY_OTHERS, (1, 1, 250, True)),
    "one that forges a record, and is no VM's": (recorded(pod("a", affinity=PIN)), NOTHING),
    "or left as it was": (recorded(unrecorded_vm("a", affinity=PIN), Decided.UNCHANGED), NOTHING),
    "preferring": (vm("a", affinity=LIKES), (1, 1, 250, False)),
    "preferring, and refused": (vm("a", affinity=LIKES) | REFUSED, NOTHING),
    "preferring by more than the name": (vm("a", affinity=LIKES_A_ZONE), NOTHING),
    "pinned to either of two, and preferring neither": (vm("a", pinned_to=NODES), NOTHING),
    "pinned to either of two that it prefers": (
        vm(
            "a",
            affinity=builders.node_affinity(required=map(builders.on_node, NODES), preferred=dict.fromkeys(NODES, 1)),
        ),
        (1, 1, 250, True),
    ),
    "nominated": (pod("a") | NOMINATED, (1, 0, 250, False)),
    "nominated, and the webhook did not pin it": (unrecorded_vm("a", affinity=PIN) | NOMINATED, (1, 0, 250, False)),
    "gated": (gated(vm("a", affinity=PIN)), NOTHING),
    "a node of no name": (pod("a", node=""), NOTHING),
}


@pytest.mark.parametrize(("described", "counted"), PLACES.values(), ids=PLACES)
def test_where_a_pod_counts(described: Object, counted: tuple[int, int, int, bool]) -> None:
    """On its node until it is over or gone; without one, where its affinity draws it to."""
    assert on(made_of({"a": described}, {}), "n1") == counted


BASE: Final = {"node": "n1", "labels": {"app": "db"}}
CHANGES: Final[dict[str, tuple[Object, bool]]] = {
    "an annotation of others": ({"annotations": {"noise": "2"}}, True),
    "phase, on its node": ({"phase": "Pending"}, True),
    "over": ({"phase": "Failed"}, False),
    "node": ({"node": "n0"}, False),
    "deletion": ({"deleting": True}, False),
    "labels that no rule asks a bound pod for": ({"labels": {"app": "web"}}, True),
    "that it is an instance manager": ({"labels": {"longhorn.io/component": "instance-manager"}}, False),
    "requests": ({"cpu": "1"}, False),
    "anti-affinity": ({"affinity": APART}, False),
}


@pytest.mark.parametrize(("change", "same"), CHANGES.values(), ids=CHANGES)
def test_only_what_counts_makes_a_pod_another(change: Object, same: bool) -> None:  # noqa: FBT001 - a column
    """Most events change nothing of that: they cost no counting."""
    index = PodIndex()
    record = index.put("a", None, seen(pod("a", **BASE)))
    new = seen(pod("a", **{**BASE, **change}))
    assert (record == new) is same
    assert (index.put("a", record, new) is record) is same
