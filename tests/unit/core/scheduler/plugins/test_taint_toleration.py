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

KEY_A = [{"key": "a", "operator": "Exists"}]
EVERYTHING = [{"operator": "Exists"}]
LEAVING = [
    "node.kubernetes.io/out-of-service",
    "node.cloudprovider.kubernetes.io/shutdown",
    "kubevirt.io/drain",
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
]


@pytest.mark.parametrize("key", LEAVING)
@pytest.mark.parametrize("effect", ["NoSchedule", "PreferNoSchedule"])
def test_a_node_that_is_being_drained_is_rejected_whatever_the_pod_tolerates(key: str, effect: str) -> None:
    """Before a taint that the pod does not tolerate."""
    taint = f"{key}:{effect}"
    leaving = Reason.NODE_LEAVING.why(node="n1", taint=taint)
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
