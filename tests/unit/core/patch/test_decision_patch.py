from typing import Any

import jsonpatch
import pytest
from msgspec import convert
from support.objects.builders import DECISION, on_node, virt_launcher_pod

from webhook.core.api.pod import Pod
from webhook.core.decision import Leave, Pin, WeightedNode, decision_sentence
from webhook.core.evidence.finding import Finding
from webhook.core.patch.decision_patch import for_decision
from webhook.core.patch.json_patch import apply, tree_of
from webhook.core.reasons import Reason

Object = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
LIMIT = 256 * 1024
LEFT = Leave(why=Reason.NO_CLAIMS.why(), opted_in=True)
ZONE = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}


def pin(*required: str, **preferred: int) -> Pin:
    """Return a pin to these nodes, with a finding for each."""
    nodes = {*required, *preferred}
    return Pin(
        why=Reason.NO_CLAIMS.why(),
        required=required,
        preferred=tuple(WeightedNode(node, weight) for node, weight in preferred.items()),
        findings=[Finding(claim="c", why=Reason.NODE_NOT_FOUND.why(node=node), node=node) for node in nodes],
    )


def patched(pod: Object, decision: Pin | Leave) -> Object:
    """Return the pod with the decision's operations applied."""
    operations = for_decision(convert(pod, Pod), decision)
    assert isinstance(operations, list)
    apply(tree_of(convert(pod, Pod)), operations)
    result: Object = jsonpatch.apply_patch(pod, operations)
    return result


def preferred_term(node: str, weight: int) -> Object:
    """Return a preferred term."""
    return {"weight": weight, "preference": on_node(node)}


def both(node: str, **term: Any) -> Object:
    """Return a term that is narrowed to a node after its own requirements."""
    return {**term, "matchFields": [*(term.get("matchFields") or []), *on_node(node)["matchFields"]]}


ONLY_N1 = {REQUIRED: {"nodeSelectorTerms": [on_node("n1")]}, PREFERRED: [preferred_term("n1", 100)]}


@pytest.mark.parametrize(
    ("affinity", "after"),
    [
        pytest.param(None, {"nodeAffinity": ONLY_N1}, id="null"),
        pytest.param({}, {"nodeAffinity": ONLY_N1}, id="empty"),
        pytest.param({"nodeAffinity": None, "x": 1}, {"nodeAffinity": ONLY_N1, "x": 1}, id="null nodeAffinity"),
        pytest.param({"nodeAffinity": {}}, {"nodeAffinity": ONLY_N1}, id="empty nodeAffinity"),
        pytest.param({"nodeAffinity": {REQUIRED: None, PREFERRED: None}}, {"nodeAffinity": ONLY_N1}, id="two nulls"),
        pytest.param({"nodeAffinity": {PREFERRED: []}}, {"nodeAffinity": ONLY_N1}, id="an empty list"),
        pytest.param(
            {"nodeAffinity": {"x": 1, PREFERRED: [{**preferred_term("n2", 7), "x": 1}]}},
            {
                "nodeAffinity": {
                    **ONLY_N1,
                    "x": 1,
                    PREFERRED: [{**preferred_term("n2", 7), "x": 1}, preferred_term("n1", 100)],
                }
            },
            id="preferences are appended to",
        ),
        pytest.param(
            {"nodeAffinity": {PREFERRED: [preferred_term("n1", 100)]}},
            {"nodeAffinity": ONLY_N1},
            id="the wish is there already",
        ),
        pytest.param({"nodeAffinity": ONLY_N1}, {"nodeAffinity": ONLY_N1}, id="all is there already"),
    ],
)
def test_affinity_is_added_to_what_exists(affinity: Object | None, after: Object) -> None:
    """Absent, null and empty parents are created. What exists stays."""
    pod = virt_launcher_pod(affinity=affinity)
    assert patched(pod, pin("n1", n1=100))["spec"]["affinity"] == after


def test_an_absent_affinity_is_created() -> None:
    """KubeVirt renders a pod with a named CPU model without an affinity."""
    pod = virt_launcher_pod()
    assert "affinity" not in pod["spec"]
    assert patched(pod, pin("n1", n1=100))["spec"]["affinity"] == {"nodeAffinity": ONLY_N1}


@pytest.mark.parametrize(
    ("terms", "nodes", "after"),
    [
        pytest.param([ZONE], ["n1"], [both("n1", **ZONE)], id="one term, one node"),
        pytest.param([ZONE], ["n1", "n2"], [both("n1", **ZONE), both("n2", **ZONE)], id="several nodes multiply it"),
        pytest.param(
            [{**ZONE, "x": {"deep": [None]}}],
            ["n1", "n2"],
            [both("n1", **ZONE, x={"deep": [None]}), both("n2", **ZONE, x={"deep": [None]})],
            id="with its unknown fields",
        ),
        pytest.param(
            [ZONE, {"matchExpressions": [], **on_node("n3")}],
            ["n1"],
            [both("n1", **ZONE), both("n1", matchExpressions=[], **on_node("n3"))],
            id="a pin elsewhere is made impossible",
        ),
        pytest.param([on_node("n3")], ["n1", "n2"], [both("n1", **on_node("n3"))], id="and is not multiplied"),
        pytest.param([on_node("n1"), ZONE], ["n1"], [on_node("n1"), both("n1", **ZONE)], id="a pin here is enough"),
        pytest.param([on_node("n2")], ["n1", "n2"], [on_node("n2")], id="a pin to one of the nodes is enough"),
        pytest.param([{}, ZONE], ["n1"], [{}, both("n1", **ZONE)], id="an empty term stays empty"),
        pytest.param([{"matchFields": [], "matchExpressions": None}], ["n1"], None, id="in any form"),
        pytest.param([{**ZONE, "matchFields": None}], ["n1"], [both("n1", **ZONE)], id="null fields become a list"),
        pytest.param([{**ZONE, "matchFields": []}], ["n1"], [both("n1", **ZONE)], id="empty fields are appended to"),
        pytest.param(
            [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n9"]}]}],
            ["n1", "n2"],
            [
                both("n1", matchFields=[{"key": "metadata.name", "operator": "NotIn", "values": ["n9"]}]),
                both("n2", matchFields=[{"key": "metadata.name", "operator": "NotIn", "values": ["n9"]}]),
            ],
            id="NotIn is no pin",
        ),
        pytest.param(
            [ZONE, {}, {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}],
            ["n1", "n2", "n3"],
            [both("n1", **ZONE), {}, on_node("n2"), both("n2", **ZONE), both("n3", **ZONE)],
            id="copies stand behind all terms",
        ),
        pytest.param(None, ["n1"], None, id="no terms at all stay none"),
    ],
)
def test_every_term_that_could_match_is_narrowed(
    terms: list[Object] | None, nodes: list[str], after: list[Object] | None
) -> None:
    """The requirement is appended. Terms are ORed: one term without the requirement would allow other nodes."""
    pod = virt_launcher_pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms, "x": 1}}})
    required = patched(pod, pin(*nodes))["spec"]["affinity"]["nodeAffinity"][REQUIRED]
    assert required == {"nodeSelectorTerms": terms if after is None else after, "x": 1}


def test_a_preference_leaves_required_terms_alone() -> None:
    """Without required nodes no required term changes."""
    own = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [ZONE]}}}
    after = patched(virt_launcher_pod(affinity=own), pin(n2=100, n1=50))["spec"]["affinity"]["nodeAffinity"]
    assert after == {**own["nodeAffinity"], PREFERRED: [preferred_term("n2", 100), preferred_term("n1", 50)]}
    made = patched(virt_launcher_pod(), pin(n2=100))["spec"]["affinity"]["nodeAffinity"]
    assert made == {PREFERRED: [preferred_term("n2", 100)]}


def test_a_pod_that_did_not_opt_in_gets_no_operation() -> None:
    """It gets no annotation, either."""
    assert for_decision(convert(virt_launcher_pod(), Pod), Leave(why=Reason.OPTED_OUT.why())) == []


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({}, id="empty"),
        pytest.param(None, id="null"),
        pytest.param({"a/b~c": "d", "é": "f"}, id="others, with what JSON Pointer escapes"),
        pytest.param({DECISION: "an older one"}, id="an older decision"),
    ],
)
def test_the_decision_is_annotated(annotations: dict[str, str] | None) -> None:
    """All other annotations stay."""
    pod = virt_launcher_pod()
    pod["metadata"]["annotations"] = annotations
    after = patched(pod, LEFT)
    assert after["metadata"]["annotations"] == {**(annotations or {}), DECISION: decision_sentence(LEFT)}


def test_absent_annotations_are_created() -> None:
    """For a pod that has no annotation at all."""
    assert for_decision(convert({"metadata": {}, "spec": {}}, Pod), LEFT) == [
        {"op": "add", "path": "/metadata/annotations", "value": {DECISION: decision_sentence(LEFT)}}
    ]


OURS = len(DECISION) + len(decision_sentence(LEFT))


@pytest.mark.parametrize(
    ("annotations", "annotated"),
    [
        pytest.param({"k": "v" * (LIMIT - OURS - 1)}, True, id="it just fits"),
        pytest.param({"k": "v" * (LIMIT - OURS)}, False, id="one byte too much"),
        pytest.param({"k" * (LIMIT - OURS): ""}, True, id="keys count"),
        pytest.param({"k" * (LIMIT - OURS): "v"}, False, id="keys count, one byte too much"),
        pytest.param({"k": "é" * ((LIMIT - OURS - 1) // 2)}, True, id="bytes of UTF-8 count"),
        pytest.param({"k": "é" * ((LIMIT - OURS - 1) // 2 + 1)}, False, id="bytes of UTF-8, too much"),
        pytest.param({"k": "😀" * (LIMIT // 4)}, False, id="four bytes each"),
        pytest.param({"k": "v" * (LIMIT - OURS - 1), DECISION: "x"}, True, id="an older decision gives up its room"),
        pytest.param({"k": "v" * (LIMIT * 2)}, False, id="far too much"),
    ],
)
def test_the_annotation_is_left_out_if_it_does_not_fit(annotations: dict[str, str], *, annotated: bool) -> None:
    """kube-apiserver rejects a pod with more than 256 KiB of annotations, so the VM would not start."""
    pod = {"metadata": {"annotations": annotations}, "spec": {}}
    after = patched(pod, LEFT)["metadata"]["annotations"]
    assert (after.get(DECISION) == decision_sentence(LEFT)) is annotated
    size = sum(len(k.encode()) + len(v.encode()) for k, v in after.items())
    assert size <= LIMIT or after == annotations


def test_a_long_decision_is_cut() -> None:
    """Names of 253 characters make long sentences."""
    names = [f"{index}" + "n" * 250 for index in range(3)]
    text = patched(virt_launcher_pod(), pin(*names))["metadata"]["annotations"][DECISION]
    assert len(text) == 1024
    assert text.startswith(f"required on {names[0]}, ")
