from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert
from support.fakes.views import cluster
from support.objects.builders import node, on_node, vm_pod

from webhook.core.api.affinity import PREFERRED, NodeSelector, only_node
from webhook.core.api.pod import Pod
from webhook.core.placement.shortlist import pod_prefers_against

Object = dict[str, Any]
FREE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}


def selector(*terms: Object) -> NodeSelector:
    """Return a required node affinity of these terms."""
    return convert({"nodeSelectorTerms": list(terms)}, NodeSelector)


def field(operator: str, *names: str) -> Object:
    """Return a term for, or against, these node names."""
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": list(names)}]}


@pytest.mark.parametrize(
    ("terms", "only"),
    [
        pytest.param([], None, id="no term"),
        pytest.param([on_node("n1")], "n1", id="one term that names a node"),
        pytest.param([{**FREE, **on_node("n1")}], "n1", id="and asks for a label"),
        pytest.param([on_node("n1"), {**FREE, **on_node("n1")}], "n1", id="two terms that name the same node"),
        pytest.param([on_node("n1"), {}], "n1", id="beside an empty term, which matches nothing"),
        pytest.param([{}], None, id="an empty term alone"),
        pytest.param([on_node("n1"), on_node("n2")], None, id="two nodes"),
        pytest.param([on_node("n1"), FREE], None, id="a term that names none"),
        pytest.param([FREE], None, id="only such terms"),
        pytest.param([field("NotIn", "n1")], None, id="a name that is excluded"),
        pytest.param([field("In", "n1", "n2")], None, id="two names in one requirement"),
    ],
)
def test_the_one_node_that_a_selector_leaves(terms: list[Object], only: str | None) -> None:
    """Every term that can match must name that node. Without a selector every node is left."""
    assert only_node(selector(*terms)) == only
    assert only_node(None) is None


def label(operator: str, *values: str) -> Object:
    """Return a term about the label zone."""
    return {"matchExpressions": [{"key": "zone", "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("preference", "against"),
    [
        pytest.param(None, False, id="no preference"),
        pytest.param({}, False, id="an empty one"),
        pytest.param(field("NotIn", "n1"), True, id="this node by name: Longhorn's delinquent one"),
        pytest.param(field("NotIn", "n2"), False, id="another node by name"),
        pytest.param(field("In", "n2"), False, id="a wish for another node is not against this one"),
        pytest.param(label("NotIn", "a"), True, id="its label"),
        pytest.param(label("NotIn", "b"), False, id="another label"),
        pytest.param(label("In", "b"), False, id="a wish for another label"),
        pytest.param({**label("NotIn", "b"), **field("NotIn", "n1")}, True, id="its name, and another label"),
        pytest.param({**label("NotIn", "a"), **field("NotIn", "n2")}, True, id="its label, and another name"),
    ],
)
def test_a_preference_against_a_node(preference: Object | None, against: bool) -> None:  # noqa: FBT001 - a column
    """Only NotIn is against a node. A node whose labels are unknown is matched by its name alone."""
    view = cluster(node("n1", labels={"zone": "a"}))
    terms: list[Object] = [{"weight": 1}, {"weight": 1, "preference": preference}]
    pod = convert(vm_pod("vm", affinity={"nodeAffinity": {PREFERRED: terms}}), Pod)
    assert pod_prefers_against("n1", pod, view) is against
    assert pod_prefers_against("n3", pod, view) is False
    assert pod_prefers_against("n1", convert(vm_pod("vm"), Pod), view) is False
