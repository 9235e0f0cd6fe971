from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert
from support.fakes.views import cluster
from support.models import oracle
from support.objects.builders import node, on_node, vm_pod

from webhook.core.api import affinity
from webhook.core.api.affinity import PREFERRED, NodeSelector, NodeSelectorTerm, only_node
from webhook.core.api.pod import Pod
from webhook.core.placement.shortlist import pod_prefers_against
from webhook.core.scheduler import node_rules

INT64_MAX = "9223372036854775807"
INT64_MIN = "-9223372036854775808"
PAST_INT64 = "9223372036854775808"


def selector(*terms: dict[str, Any]) -> NodeSelector:
    """A NodeSelector from its JSON."""
    return convert({"nodeSelectorTerms": list(terms)}, NodeSelector)


def label(key: Any, operator: Any, *values: str) -> dict[str, Any]:
    """A term with one requirement on a label."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def field(key: Any, operator: Any, *values: str) -> dict[str, Any]:
    """A term with one requirement on a field."""
    return {"matchFields": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("term", "labels", "admitted"),
    [
        pytest.param({}, {}, False, id="an empty term matches nothing"),
        pytest.param({"matchExpressions": None, "matchFields": None}, {}, False, id="nor two nulls"),
        pytest.param(label("zone", "In", ""), {"zone": ""}, True, id="In the empty value"),
        pytest.param(label("zone", "In", ""), {}, False, id="an absent label is not the empty one"),
        pytest.param(label("zone", "Exists"), {"zone": ""}, True, id="Exists with an empty value"),
        pytest.param(label("cpu", "Gt", "3"), {"cpu": "3"}, False, id="Gt equal"),
        pytest.param(label("cpu", "Gt", "3"), {"cpu": "10"}, True, id="Gt counts and does not compare text"),
        pytest.param(label("cpu", "Lt", "3"), {}, False, id="Lt of an absent label"),
        pytest.param(label("cpu", "Gt", "x"), {"cpu": "4"}, False, id="Gt of a word does not parse"),
        pytest.param(label("cpu", "Gt", "-3"), {"cpu": "4"}, False, id="a negative number is no label value"),
        pytest.param(label("cpu", "Gt", "0"), {"cpu": INT64_MAX}, True, id="int64's end"),
        pytest.param(label("cpu", "Gt", "0"), {"cpu": PAST_INT64}, False, id="past int64's end is no number"),
        pytest.param(label("cpu", "Lt", "0"), {"cpu": INT64_MIN}, True, id="int64's beginning"),
        pytest.param(label("zone", "Equals", "a"), {"zone": "a"}, False, id="an unknown operator"),
        pytest.param(label("zone", "NotIn", "é"), {}, False, id="a value that is not ASCII"),
        pytest.param(label("zone", "NotIn", "v" * 63), {}, True, id="the longest value"),
        pytest.param(label("zone", "NotIn", "v" * 64), {}, False, id="a value that is too long"),
        pytest.param(label("zone", "NotIn", "-a"), {}, False, id="a value with a dash in front"),
        pytest.param(field("metadata.name", "NotIn", "n1"), {}, False, id="NotIn the node's name"),
        pytest.param(field("metadata.namespace", "In", "n1"), {}, False, id="an unknown field"),
        pytest.param(field("metadata.namespace", "In", ""), {}, True, id="an unknown field reads as empty"),
        pytest.param({**label("zone", "Exists"), **on_node("n1")}, {"zone": "a"}, True, id="both hold"),
        pytest.param({**label("zone", "Exists"), **on_node("n1")}, {}, False, id="the label does not"),
    ],
)
def test_a_term_admits_a_node(term: dict[str, Any], labels: dict[str, str], *, admitted: bool) -> None:
    """Each row is what k8s.io/component-helpers does with the node n1; the oracle is held to the same rows."""
    assert node_rules.matches_node_selector(selector(term), labels, "n1") is admitted
    assert oracle.selector_matches({"nodeSelectorTerms": [term]}, labels, "n1") is admitted


@pytest.mark.parametrize(
    ("given", "admitted"),
    [
        pytest.param(None, True, id="nothing required"),
        pytest.param(NodeSelector(), False, id="terms absent"),
        pytest.param(selector(), False, id="no terms"),
        pytest.param(selector(label("zone", "Exists"), on_node("n1")), True, id="one of two holds"),
        pytest.param(selector(label("zone", "Bogus"), on_node("n1")), True, id="a term that can't be parsed is passed"),
    ],
)
def test_terms_are_ored(given: NodeSelector | None, *, admitted: bool) -> None:
    """No selector admits every node, an empty one none; labels may be absent."""
    assert node_rules.matches_node_selector(given, None, "n1") is admitted


@pytest.mark.parametrize(
    ("term", "admitted"),
    [
        pytest.param(on_node("elsewhere"), True, id="a field does not refuse"),
        pytest.param({**label("zone", "Exists"), **on_node("n1")}, False, id="labels do"),
    ],
)
def test_a_volume_is_asked_for_labels_alone(term: dict[str, Any], *, admitted: bool) -> None:
    """For PersistentVolumes the scheduler knows the labels of the node and not its name."""
    assert node_rules.matches_node_selector(selector(term), {}, None) is admitted
    assert (
        oracle.volume_admits(
            {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}}, {"metadata": {"name": "n1"}}
        )
        is admitted
    )


@pytest.mark.parametrize(
    ("name", "good"),
    [
        pytest.param("n1", True, id="plain"),
        pytest.param("", False, id="empty"),
        pytest.param("Node", False, id="upper case"),
        pytest.param("a_b", False, id="underscore"),
        pytest.param("-a", False, id="dash in front"),
        pytest.param("node-4.example.com", True, id="dotted"),
        pytest.param("10.0.0.1", True, id="an address"),
        pytest.param("a-", False, id="dash behind"),
        pytest.param("a..b", False, id="empty part"),
        pytest.param("a.", False, id="dot behind"),
        pytest.param("n1\n", False, id="line feed"),
        pytest.param("nöde", False, id="not ASCII"),
        pytest.param("a" * 253, True, id="the longest"),
        pytest.param("a" * 254, False, id="too long"),
    ],
)
def test_a_node_name_is_a_dns_subdomain(name: str, *, good: bool) -> None:
    """What ValidateNodeName takes; anything else in matchFields has the pod rejected."""
    assert affinity.is_node_name(name) is good
    assert oracle.is_subdomain(name) is good


@pytest.mark.parametrize(
    ("term", "names"),
    [
        pytest.param({}, set(), id="an empty term"),
        pytest.param(on_node("n1"), {"n1"}, id="one"),
        pytest.param({"matchFields": on_node("a")["matchFields"] + on_node("b")["matchFields"]}, {"a", "b"}, id="two"),
        pytest.param(field("metadata.name", "NotIn", "n1"), set(), id="NotIn names none"),
        pytest.param(field("metadata.namespace", "In", "n1"), set(), id="nor does another field"),
        pytest.param({"matchFields": [{"key": "metadata.name", "operator": "In"}]}, set(), id="no values"),
    ],
)
def test_the_nodes_that_a_term_names(term: dict[str, Any], names: set[str]) -> None:
    """Only metadata.name In names a node."""
    assert affinity.pinned_nodes(convert(term, NodeSelectorTerm)) == names


OPEN, BIG = label("zone", "Exists"), label("zone", "In", *["v" * 63] * 500)


@pytest.mark.parametrize(
    ("terms", "wanted", "most"),
    [
        pytest.param(None, 70, 64, id="no selector: as many as may be scored"),
        pytest.param([], 3, 3, id="no terms"),
        pytest.param([OPEN] * 2, 70, 32, id="two terms"),
        pytest.param([OPEN] * 65, 70, 0, id="one more"),
        pytest.param([BIG], 70, 1, id="a big term is copied as often as its bytes allow"),
        pytest.param([BIG] * 4, 3, 1, id="and at least stands once"),
    ],
)
def test_how_many_nodes_a_pin_may_name(terms: list[dict[str, Any]] | None, wanted: int, most: int) -> None:
    """MAX_TERMS bounds the terms that a pin leaves, and bytes bound the copies; never less than none."""
    given = None if terms is None else selector(*terms)
    assert affinity.most_nodes(given, wanted) == most


FREE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}


def selecting(*terms: dict[str, Any]) -> NodeSelector:
    """Return a required node affinity of these terms."""
    return convert({"nodeSelectorTerms": list(terms)}, NodeSelector)


def named(operator: str, *names: str) -> dict[str, Any]:
    """Return a term for, or against, these node names."""
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": list(names)}]}


@pytest.mark.parametrize(
    ("terms", "only"),
    [
        pytest.param([], None, id="no term"),
        pytest.param([on_node("n1")], "n1", id="one term that names a node"),
        pytest.param([{**FREE, **on_node("n1")}], "n1", id="and asks for a zoned"),
        pytest.param([on_node("n1"), {**FREE, **on_node("n1")}], "n1", id="two terms that name the same node"),
        pytest.param([on_node("n1"), {}], "n1", id="beside an empty term, which matches nothing"),
        pytest.param([{}], None, id="an empty term alone"),
        pytest.param([on_node("n1"), on_node("n2")], None, id="two nodes"),
        pytest.param([on_node("n1"), FREE], None, id="a term that names none"),
        pytest.param([FREE], None, id="only such terms"),
        pytest.param([named("NotIn", "n1")], None, id="a name that is excluded"),
        pytest.param([named("In", "n1", "n2")], None, id="two names in one requirement"),
    ],
)
def test_the_one_node_that_a_selector_leaves(terms: list[dict[str, Any]], only: str | None) -> None:
    """Every term that can match must name that node. Without a selecting every node is left."""
    assert only_node(selecting(*terms)) == only
    assert only_node(None) is None


def zoned(operator: str, *values: str) -> dict[str, Any]:
    """Return a term about the zoned zone."""
    return {"matchExpressions": [{"key": "zone", "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("preference", "against"),
    [
        pytest.param(None, False, id="no preference"),
        pytest.param({}, False, id="an empty one"),
        pytest.param(named("NotIn", "n1"), True, id="this node by name: Longhorn's delinquent one"),
        pytest.param(named("NotIn", "n2"), False, id="another node by name"),
        pytest.param(named("In", "n2"), False, id="a wish for another node is not against this one"),
        pytest.param(zoned("NotIn", "a"), True, id="its zoned"),
        pytest.param(zoned("NotIn", "b"), False, id="another zoned"),
        pytest.param(zoned("In", "b"), False, id="a wish for another zoned"),
        pytest.param({**zoned("NotIn", "b"), **named("NotIn", "n1")}, True, id="its name, and another zoned"),
        pytest.param({**zoned("NotIn", "a"), **named("NotIn", "n2")}, True, id="its zoned, and another name"),
    ],
)
def test_a_preference_against_a_node(preference: dict[str, Any] | None, against: bool) -> None:  # noqa: FBT001 - a column
    """Only NotIn is against a node. A node whose labels are unknown is matched by its name alone."""
    view = cluster(node("n1", labels={"zone": "a"}))
    terms: list[dict[str, Any]] = [{"weight": 1}, {"weight": 1, "preference": preference}]
    pod = convert(vm_pod("vm", affinity={"nodeAffinity": {PREFERRED: terms}}), Pod)
    assert pod_prefers_against("n1", pod, view) is against
    assert pod_prefers_against("n3", pod, view) is False
    assert pod_prefers_against("n1", convert(vm_pod("vm"), Pod), view) is False
