from __future__ import annotations

from copy import deepcopy
from typing import Any

import jsonpatch
import pytest
from msgspec import convert
from support.objects.builders import DECISION, WRITTEN
from support.objects.patches import for_decision

from webhook.core.api.affinity import MAX_TERMS
from webhook.core.api.pod import Pod
from webhook.core.decision import NODES_SHOWN, Leave, Pin, WeightedNode, decision_sentence
from webhook.core.evidence.facts import Finding
from webhook.core.patch.affinity_patch import pinned, reverted
from webhook.core.patch.applied_patch import (
    RECORD_MAX_CHARS,
    AppliedPatch,
    from_annotation,
    to_annotation,
)
from webhook.core.reasons import SENTENCE_MAX_CHARS, Reason

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


_NAMES = tuple(f"{each:03}" + "n" * 250 for each in range(MAX_TERMS))


def test_the_longest_record_is_read() -> None:
    """With names of 253 characters, and a text of which JSON escapes each character."""
    longest = AppliedPatch(
        nodes=_NAMES,
        narrowed=MAX_TERMS,
        preferred=tuple((name, 100, 10) for name in _NAMES),
        near_nodes=tuple((name[:63], 100, 1) for name in _NAMES),
        no_eviction=True,
        owner="u" * 36,
        by="namespace",
        decided="required",
        on=_NAMES[:NODES_SHOWN],
        more=10_000,
        reason="r" * 40,
        because=chr(34) * SENTENCE_MAX_CHARS,
    )
    written = to_annotation(longest)
    assert len(written) <= RECORD_MAX_CHARS
    assert from_annotation(written) == longest


@pytest.mark.parametrize("record", [AppliedPatch(nodes=("n",) * 65), AppliedPatch(preferred=(("n", 1, 1),) * 65)])
def test_a_record_of_more_nodes_is_none(record: AppliedPatch) -> None:
    """Each of them would be compared with each term of the pod."""
    assert from_annotation(to_annotation(record)) == AppliedPatch()
