"""as_created: a pod that is there, as it was when the webhook was asked about it."""

from __future__ import annotations

import copy
import json
from typing import Any

import corpus
import jsonpatch
import pytest
from corpus import Case
from views import cluster

from webhook.core.admit import Answer, Entry, admit
from webhook.core.placement import Mode, Policy
from webhook.explain.created import as_created

DECISION = "kubevirt-scheduler/decision"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def pinned(*nodes: str, **more: Any) -> list[dict[str, Any]]:
    """A node selector term for each node, each with the same further requirements."""
    return [{**more, "matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]} for node in nodes]


def near(label: str) -> dict[str, Any]:
    """A preference for where the pods with this label are."""
    return {"weight": 100, "podAffinityTerm": {"labelSelector": {"matchLabels": {label: "x"}}, "topologyKey": "t"}}


def looks_like_ours(pod: dict[str, Any]) -> bool:
    """Whether the pod itself has a node's name or our annotation: then what we wrote can't be told from its own."""
    told = DECISION in (pod["metadata"].get("annotations") or {})
    return told or "nodeName" in pod["spec"] or "metadata.name" in json.dumps(pod["spec"].get("affinity"))


def lean(value: Any) -> Any:
    """Without what is empty or null: these are one to Kubernetes where a pod's affinity is concerned."""
    if isinstance(value, dict):
        return {key: rest for key, inner in value.items() if (rest := lean(inner)) not in (None, {}, [])}
    if isinstance(value, list):
        return [lean(inner) for inner in value]
    return value


@pytest.mark.parametrize(
    "case",
    [case for case in corpus.load() if case.creates_pod and case.expect.patched and not looks_like_ours(case.pod)],
    ids=lambda case: case.name,
)
def test_what_the_webhook_wrote_is_taken_out_again(case: Case) -> None:
    """Every pod of the corpus, patched, bound to a node and taken back, is the pod that was asked about."""
    entry = next(entry for entry in Entry if entry.title == case.entry)
    answer = admit(json.dumps(case.review).encode(), cluster(*case.objects), Policy(Mode(case.mode)), entry)
    assert isinstance(answer, Answer)
    stored = jsonpatch.JsonPatch([dict(operation) for operation in answer.operations]).apply(copy.deepcopy(case.pod))
    stored["spec"]["nodeName"] = "node-x"
    found = as_created(stored)
    assert "nodeName" not in found["spec"]
    assert lean(found) == lean(case.pod)


POD_ROWS: dict[str, tuple[str | None, dict[str, Any] | None, dict[str, Any] | None]] = {
    "no annotation: nothing is ours": (None, {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": pinned("a")}}}, ...),
    "left unchanged: nothing is ours": (
        "unchanged: NoClaims: x",
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": pinned("a")}}},
        ...,
    ),
    "preferred: the requirement is its own": (
        "preferred on a: x",
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": pinned("a")}}},
        ...,
    ),
    "nodes become one term again": (
        "required on a, b: x",
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": pinned("a", "b", matchExpressions=[{"key": "k"}])}}},
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k"}]}]}}},
    ),
    "an empty term stays empty": (
        "required on a: x",
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}, *pinned("a", matchExpressions=[{"key": "k"}])]}}},
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}, {"matchExpressions": [{"key": "k"}]}]}}},
    ),
    "a preference with labels is its own": (
        "preferred on a: x",
        {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [{"key": "k"}]}}]}},
        ...,
    ),
    "other affinity stays": (
        "required on a: x",
        {"podAffinity": {"x": 1}, "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": pinned("a")}}},
        {"podAffinity": {"x": 1}},
    ),
    "a short list is no term of its own": (
        "preferred on a: x; required on any of 2 nodes, so that",
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": pinned("a", "b", matchExpressions=[{"key": "k"}])}}},
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k"}]}]}}},
    ),
    "nearness to a VM goes, and other nearness stays": (
        "preferred on a: x",
        {"podAffinity": {PREFERRED: [near("kubevirt.io/created-by"), near("app")]}, "nodeAffinity": {PREFERRED: []}},
        {"podAffinity": {PREFERRED: [near("app")]}},
    ),
    "nearness to a VM was all there was": (
        "preferred on a: x",
        {"podAffinity": {PREFERRED: [near("kubevirt.io/created-by")]}, "nodeAffinity": {PREFERRED: []}},
        {},
    ),
    "null stays null": ("required on a: x", None, ...),
    "no node affinity": ("required on a: x", {"nodeAffinity": None}, ...),
}
POD_ROWS = {name: (told, old, old if new is ... else new) for name, (told, old, new) in POD_ROWS.items()}


@pytest.mark.parametrize(("told", "affinity", "expected"), POD_ROWS.values(), ids=POD_ROWS)
def test_only_what_the_annotation_tells_of_is_taken_out(told: str | None, affinity: Any, expected: Any) -> None:
    """The annotation says whether a requirement is ours; a pod without it keeps all that it has."""
    annotations = {"a": "b"} | ({DECISION: told} if told else {})
    pod = {"metadata": {"name": "p", "annotations": annotations}, "spec": {"nodeName": "n", "affinity": affinity}}
    before = copy.deepcopy(pod)
    assert as_created(pod) == {
        "metadata": {"name": "p", "annotations": {"a": "b"}},
        "spec": {} if expected == {} else {"affinity": expected},
    }
    assert pod == before


@pytest.mark.parametrize("pod", [{}, {"metadata": None, "spec": {}}, {"metadata": {}, "spec": None}], ids=str)
def test_what_is_no_pod_is_left_for_others_to_refuse(pod: dict[str, Any]) -> None:
    """Nothing raises here: the object's reader says what is wrong with it."""
    assert as_created(pod) == pod
