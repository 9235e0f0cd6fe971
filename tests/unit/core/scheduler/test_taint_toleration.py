"""TaintToleration: taints that the pod does not tolerate, and taints of nodes that the cluster is about to lose."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert
from support.models import oracle
from support.objects import builders
from support.objects.builders import taint

from webhook.core.api.node import Node, Taint
from webhook.core.api.pod import Toleration
from webhook.core.reasons import Reason
from webhook.core.scheduler.node_rules import count_prefer_no_schedule, tolerates, why_repelled

KEY_A = [{"key": "a", "operator": "Exists"}]
EVERYTHING = [{"operator": "Exists"}]
LEAVING = [
    "node.kubernetes.io/out-of-service",
    "node.cloudprovider.kubernetes.io/shutdown",
    "kubevirt.io/drain",
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
]


def node(*taints: str) -> Node:
    """A node with these taints."""
    return convert(builders.node("n1", taints=taints), Node)


def read(tolerations: list[Any]) -> list[Toleration]:
    """Tolerations as they are decoded."""
    return convert(tolerations, list[Toleration])


@pytest.mark.parametrize("key", LEAVING)
@pytest.mark.parametrize("effect", ["NoSchedule", "PreferNoSchedule"])
def test_a_node_that_is_being_drained_is_rejected_whatever_the_pod_tolerates(key: str, effect: str) -> None:
    """Before a taint that the pod does not tolerate."""
    taint = f"{key}:{effect}"
    leaving = Reason.NODE_LEAVING.why(node="n1", taint=taint)
    assert why_repelled(read(EVERYTHING), node("x:NoSchedule", taint)) == leaving
    assert why_repelled([], node("x:NoSchedule", taint)) == leaving


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
    assert count_prefer_no_schedule(node(*taints), read(tolerations)) == count


@pytest.mark.parametrize(
    ("toleration", "text", "tolerated"),
    [
        pytest.param({"key": "a", "value": "b", "operator": ""}, "a=b:NoSchedule", True, id="an empty operator"),
        pytest.param({"key": "a"}, "a:NoSchedule", True, id="no value equals no value"),
        pytest.param({"key": "a", "operator": "Exists", "effect": ""}, "a:NoSchedule", True, id="an empty effect"),
        pytest.param({"key": "a", "operator": "Bogus"}, "a:NoSchedule", False, id="an unknown operator"),
        pytest.param({"key": "a", "operator": "Gt", "value": "4"}, "a=5:NoSchedule", True, id="Gt"),
        pytest.param({"key": "a", "operator": "Gt", "value": "-6"}, "a=-5:NoSchedule", True, id="negative numbers"),
        pytest.param({"key": "a", "operator": "Gt", "value": "04"}, "a=5:NoSchedule", False, id="a leading zero"),
        pytest.param({"key": "a", "operator": "Gt", "value": "-0"}, "a=5:NoSchedule", False, id="minus zero"),
        pytest.param({"key": "a", "operator": "Gt"}, "a=5:NoSchedule", False, id="Gt of nothing"),
        pytest.param(
            {"key": "a", "operator": "Gt", "value": "1"}, "a=9223372036854775807:NoSchedule", True, id="int64's end"
        ),
        pytest.param(
            {"key": "a", "operator": "Gt", "value": "1"}, "a=9223372036854775808:NoSchedule", False, id="past int64"
        ),
    ],
)
def test_a_toleration_is_read_as_the_scheduler_reads_it(
    toleration: dict[str, Any], text: str, *, tolerated: bool
) -> None:
    """Each row is what toleration.go does; the oracle is held to the same rows."""
    assert tolerates([convert(toleration, Toleration)], convert(taint(text), Taint)) is tolerated
    assert oracle.tolerates(toleration, taint(text)) is tolerated
