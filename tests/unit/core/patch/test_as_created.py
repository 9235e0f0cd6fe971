"""as_created: an existing pod, as it was in the AdmissionReview of its creation."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonpatch
import pytest
from msgspec import convert, to_builtins
from support.fakes.views import cluster
from support.objects import corpus
from support.objects.corpus import Case
from support.objects.embedded import policy

from webhook.core.admit import Answer, Entry, admit
from webhook.core.api.longhorn import near
from webhook.core.api.pod import Pod
from webhook.core.patch.decision_patch import as_created

DECISION = "kubevirt-scheduler/decision"
WRITTEN = "kubevirt-scheduler/written"
ROWS_AT_LEAST = 400
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def pinned(*nodes: str, **more: Any) -> list[dict[str, Any]]:
    """A node selector term for each node, each with the same other requirements."""
    return [{**more, "matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]} for node in nodes]


def looks_like_the_webhooks(pod: dict[str, Any]) -> bool:
    """Whether the pod itself has a node's name or the webhook's annotation, which make it look patched."""
    has_decision = DECISION in (pod["metadata"].get("annotations") or {})
    return has_decision or "nodeName" in pod["spec"] or "metadata.name" in json.dumps(pod["spec"].get("affinity"))


def lean(value: Any) -> Any:
    """The value without empty and null fields, which mean the same to Kubernetes in an affinity."""
    if isinstance(value, dict):
        return {key: rest for key, inner in value.items() if (rest := lean(inner)) not in (None, {}, [])}
    if isinstance(value, list):
        return [lean(inner) for inner in value]
    return value


@pytest.mark.slow
def test_what_the_webhook_wrote_is_taken_out_again() -> None:
    """Every pod of the corpus, patched, bound to a node and reverted, is the pod of its AdmissionReview."""
    cases = [case for case in corpus.load() if case.creates_pod and case.expect.patched]
    cases = [case for case in cases if not looks_like_the_webhooks(case.pod)]
    assert len(cases) > ROWS_AT_LEAST
    for case in cases:
        found = as_created(convert(stored(case), Pod))
        assert found.spec.node_name is None, case.name
        assert lean(to_builtins(found)) == lean(to_builtins(convert(case.pod, Pod))), case.name


def stored(case: Case) -> dict[str, Any]:
    """The row's pod as the API server stores it after the webhook's answer, bound to a node."""
    entry = next(entry for entry in Entry if entry.title == case.entry)
    answer = admit(json.dumps(case.review).encode(), cluster(*case.objects), policy(case), entry)
    assert isinstance(answer, Answer)
    pod = jsonpatch.JsonPatch([dict(operation) for operation in answer.operations]).apply(copy.deepcopy(case.pod))
    return {**pod, "spec": {**pod["spec"], "nodeName": "node-x"}}


def wish(node: str, weight: int = 100) -> dict[str, Any]:
    """A preference for one node."""
    return {"weight": weight, "preference": pinned(node)[0]}


def record(nodes: str = "", terms: list[dict[str, Any]] | None = None, **more: Any) -> str:
    """The annotation with what the webhook wrote: the nodes as one word, and the terms after the patch."""
    return json.dumps({"nodes": list(nodes), "narrowed": len(terms or ()), "owner": "u", **more})


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    """Affinity with these required terms."""
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


ZONE = {REQUIRED: [{"topologyKey": "zone"}]}
A, B = pinned("a")[0], pinned("b")[0]
SSD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
SSD_A = {**SSD, **A}
ONLY_A = record("a", [A])
POD_ROWS: dict[str, tuple[str | None, dict[str, Any] | None, dict[str, Any] | None]] = {
    "no record: nothing is ours": (None, required(A), ...),
    "what others added to our requirements stays": (
        ONLY_A,
        required({"matchFields": [*A["matchFields"], {"key": "metadata.name", "operator": "NotIn", "values": ["c"]}]}),
        required({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["c"]}]}),
    ),
    "as often as it was written": (
        record(preferred=[["a", 100, 2]]),
        {"nodeAffinity": {PREFERRED: [wish("a"), wish("a"), wish("a")]}},
        {"nodeAffinity": {PREFERRED: [wish("a")]}},
    ),
    "a record that names a preference twice": (
        record(preferred=[["a", 100, 1], ["a", 100, 1]]),
        {"nodeAffinity": {PREFERRED: [wish("b"), wish("a")]}},
        {"nodeAffinity": {PREFERRED: [wish("b")]}},
    ),
    "nearness to a node goes, and other nearness stays": (
        record(near_nodes=[["a", 100, 1]]),
        {"podAffinity": {PREFERRED: [near("a", 100), near("a", 50), near("b", 100)]}},
        {"podAffinity": {PREFERRED: [near("a", 50), near("b", 100)]}},
    ),
}
POD_ROWS = {name: (told, old, old if new is ... else new) for name, (told, old, new) in POD_ROWS.items()}


@pytest.mark.parametrize(("told", "affinity", "expected"), POD_ROWS.values(), ids=POD_ROWS)
def test_only_what_the_annotation_names_is_taken_out(told: str | None, affinity: Any, expected: Any) -> None:
    """The annotation names what the webhook wrote; a pod without the annotation keeps everything."""
    annotations = {"a": "b", DECISION: "required on a: x"} | ({WRITTEN: told} if told else {})
    owner = [{"kind": "VirtualMachineInstance", "uid": "u"}]
    metadata = {"name": "p", "annotations": annotations, "ownerReferences": owner}
    pod = {"metadata": metadata, "spec": {"nodeName": "n", "affinity": affinity}}
    found = as_created(convert(pod, Pod))
    assert (found.metadata.annotations, found.spec.node_name) == ({"a": "b"}, None)
    if not expected:
        assert found.spec.affinity is None
    assert (lean(to_builtins(found.spec.affinity)) or {}) == (lean(expected) or {})
