"""TaintToleration: taints that the pod does not tolerate, and taints of nodes that the cluster is about to lose."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert
from support.models.plugin_input import cycle_of, node_of
from support.objects import builders

from webhook.core.api.node import Node
from webhook.core.api.pod import Toleration
from webhook.core.reasons import Reason
from webhook.core.scheduler.plugins import taint_toleration
from webhook.core.scheduler.plugins.taint_toleration import count_prefer_no_schedule
from webhook.core.scheduler.status import PASSED, Rejected, Status

KEY_A = [{"key": "a", "operator": "Exists"}]
EVERYTHING = [{"operator": "Exists"}]
LEAVING = [
    "node.kubernetes.io/out-of-service",
    "node.cloudprovider.kubernetes.io/shutdown",
    "kubevirt.io/drain",
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
]


def rejected(taint: str) -> Rejected:
    """The rejection because of this taint."""
    return Rejected(Reason.TAINT_NOT_TOLERATED, {"node": "n1", "taint": taint})


@pytest.mark.parametrize(
    ("tolerations", "taints", "expected"),
    [
        pytest.param([], [], PASSED, id="no taints"),
        pytest.param([], ["a=b:NoSchedule"], rejected("a=b:NoSchedule"), id="NoSchedule"),
        pytest.param([], ["a:NoExecute"], rejected("a:NoExecute"), id="NoExecute, without a value"),
        pytest.param([], ["a:PreferNoSchedule"], PASSED, id="PreferNoSchedule"),
        pytest.param(KEY_A, ["a=b:NoSchedule"], PASSED, id="tolerated"),
        pytest.param(KEY_A, ["a=b:NoSchedule", "c:NoSchedule"], rejected("c:NoSchedule"), id="one of two is tolerated"),
        pytest.param(KEY_A, ["c:NoExecute", "d:NoSchedule"], rejected("c:NoExecute"), id="the first is named"),
        pytest.param(EVERYTHING, ["a:NoSchedule", "c:NoExecute"], PASSED, id="everything is tolerated"),
    ],
)
def test_every_taint_of_a_node_must_be_tolerated(tolerations: list[Any], taints: list[str], expected: Status) -> None:
    """The reason names the taint as kubectl writes it."""
    node = node_of(builders.node("n1", taints=taints))
    assert taint_toleration.filter_node(cycle_of(tolerations=tolerations), node) == expected


@pytest.mark.parametrize("spec", [None, {}, {"taints": None}])
def test_a_node_that_lists_no_taints_passes(spec: Any) -> None:
    """Also if it has no spec."""
    assert taint_toleration.filter_node(cycle_of(), node_of({**builders.node("n1"), "spec": spec})) is PASSED


@pytest.mark.parametrize("key", LEAVING)
@pytest.mark.parametrize("effect", ["NoSchedule", "PreferNoSchedule"])
def test_a_node_that_is_being_drained_is_rejected_whatever_the_pod_tolerates(key: str, effect: str) -> None:
    """Before a taint that the pod does not tolerate."""
    taint = f"{key}:{effect}"
    leaving = Rejected(Reason.NODE_LEAVING, {"node": "n1", "taint": taint})
    node = node_of(builders.node("n1", taints=["x:NoSchedule", taint]))
    assert taint_toleration.filter_node(cycle_of(tolerations=EVERYTHING), node) == leaving
    assert taint_toleration.filter_node(cycle_of(), node) == leaving


@pytest.mark.parametrize(
    ("tolerations", "taints", "count"),
    [
        pytest.param([], [], 0, id="no taints"),
        pytest.param([], ["a:PreferNoSchedule", "b:PreferNoSchedule"], 2, id="two"),
        pytest.param(KEY_A, ["a:PreferNoSchedule", "b:PreferNoSchedule"], 1, id="one is tolerated"),
        pytest.param([], ["a:NoSchedule", "b:NoExecute"], 0, id="other effects"),
    ],
)
def test_the_taints_that_only_prefer_are_counted(tolerations: list[Any], taints: list[str], count: int) -> None:
    """As kube-scheduler counts them for its score."""
    node = convert(builders.node("n1", taints=taints), Node)
    assert count_prefer_no_schedule(node, convert(tolerations, list[Toleration])) == count
    assert count_prefer_no_schedule(convert({**builders.node("n1"), "spec": None}, Node), []) == 0
