import json
from copy import deepcopy
from typing import Any

import jsonpatch
import pytest
from msgspec import convert
from msgspec.structs import replace
from support.objects.builders import DECISION, WRITTEN, virt_launcher_pod
from support.objects.patches import for_decision

from webhook.core.api.pod import Pod
from webhook.core.decision import Leave, Pin, WeightedNode, decision_sentence
from webhook.core.evidence.facts import Finding
from webhook.core.patch.affinity_patch import pinned, reverted
from webhook.core.reasons import Reason

Object = dict[str, Any]
LIMIT = 256 * 1024
LEFT = Leave(why=Reason.NO_CLAIMS.why(), opted_in=True)


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
    result: Object = jsonpatch.apply_patch(pod, for_decision(convert(pod, Pod), decision))
    return result


RECORD = '{"decided":"unchanged","reason":"NoClaims","because":"the pod has no PersistentVolumeClaim volume"}'
OURS = len(DECISION) + len(decision_sentence(LEFT)) + len(WRITTEN) + len(RECORD)


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
    assert ((after.get(DECISION), after.get(WRITTEN)) == (decision_sentence(LEFT), RECORD)) is annotated
    size = sum(len(k.encode()) + len(v.encode()) for k, v in after.items())
    assert size <= LIMIT or after == annotations


def test_a_long_decision_is_cut() -> None:
    """Names of 253 characters make long sentences."""
    names = [f"{index}" + "n" * 250 for index in range(3)]
    text = patched(virt_launcher_pod(), pin(*names))["metadata"]["annotations"][DECISION]
    assert len(text) == 1024
    assert text.startswith(f"required on {names[0]}, ")


def test_the_record_of_a_long_decision_is_bounded() -> None:
    """The names of three nodes, and a sentence that is cut."""
    names = [f"{index}" + "n" * 250 for index in range(9)]
    long = replace(pin(**dict.fromkeys(names, 1)), why=Reason.INTERNAL_ERROR.why(problem="p" * 9_999))
    record = json.loads(patched(virt_launcher_pod(), long)["metadata"]["annotations"][WRITTEN])
    assert (record["on"], record["more"], len(record["because"])) == (names[:3], 6, 1024)


def test_a_field_that_the_webhook_does_not_know_stays_also_in_a_copy_of_its_term() -> None:
    """A later Kubernetes may have it. A copy without it would be wider than the user's term."""
    term = {"matchExpressions": [{"key": "zone", "operator": "Exists"}], "unknown": 0}
    own = {
        "unknown": False,
        "nodeAffinity": {
            "unknown": [],
            "requiredDuringSchedulingIgnoredDuringExecution": {"unknown": "", "nodeSelectorTerms": [term, {}]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "unknown": {}}],
        },
        "podAffinity": {"unknown": 1},
    }
    before = deepcopy(own)
    after, applied = pinned(own, pin("n1", "n2", n1=100))
    assert (own, reverted(after, applied)) == (before, before)
    terms = after["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [{**each, "matchFields": []} for each in terms if each] == 2 * [{**term, "matchFields": []}]
    assert terms[1] == {}
