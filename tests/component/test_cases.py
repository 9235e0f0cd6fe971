"""Each row of the corpus, through all of `webhook.core` on an embedded cluster."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import jsonpatch
import pytest
from support.models import oracle
from support.objects import corpus
from support.objects.builders import DECISION, NO_EVICTION, WRITTEN
from support.objects.corpus import UNCHANGED, Case
from support.objects.embedded import embedded, policy, shortlist_problems, shortlisted

from webhook.core.admit import AGAIN, Answer, Entry, admit
from webhook.core.reasons import Reason

CASES = corpus.load()
ROWS_AT_LEAST = 540

NEEDS_A_LIVE_CLUSTER = {
    "ReplicaShareFull",  # replicas
    "ClaimLookupFailed",
    "NodeLookupFailed",
    "ShareManagerPodUnread",
    "EvidenceNotConfirmed",
    "VolumeLookupFailed",
    "NamespaceLookupFailed",
    "OwnerLookupFailed",
}
NEEDS_TOO_MUCH = {
    "AnnotationsFull",
    "PodNotCompared",  # tests/unit/kube/records/test_large_pods.py
    "PodTooLarge",  # tests/unit/core/test_pod_limits.py
    "TooManyExistingTerms",  # a thousand: test_inter_pod_affinity.py has them
}
TOLD_OF_RUNNING_VMS = {reason.code for reason in Reason if reason.name.startswith("VM_")}
NEEDS_A_BUG = {"PatchDoesNotApply", "InternalError"}
NEEDS_A_SETTING = {
    "AuditPreferred",  # tests/component/test_audit.py
    "AuditRequired",
}
IS_NO_DECISION = {"NodeFeasible"}  # the fit of a node; the reason of such a decision is its evidence
BEFORE_OPT_IN = {  # rules 1 to 4: neither the pod nor a VM that it serves asked for us, and it gets no annotation
    "NotAPod",
    "NotACreate",
    "Subresource",
    "TextTooLong",
    "NotVirtLauncher",
    "MigrationTarget",
    "MigrationReceiver",
    "EphemeralProvisioning",
    "NodeAlreadySet",
    "NotOptedIn",
    "OptedOut",
    "NamespaceOptedOut",
    "BadNamespaceLabel",
    "ModeOff",
    "BadCoSchedule",
    "NotShareManager",
    "VolumeUnclaimed",
    "NoConsumer",
    "ConsumerNotOptedIn",
}
OTHER_PODS_DECIDE = {  # rules that the oracle does not model
    "NoRoom",
    "ExcludedByPod",
    "RuleNotEvaluated",
}

ABSENT = object()


def entry_of(case: Case) -> Entry:
    """Return the entry of the webhook configuration to which the API server sends the row's pod."""
    return next(entry for entry in Entry if entry.title == case.entry)


def ask(case: Case, body: dict[str, Any]) -> tuple[Answer, dict[str, Any]]:
    """Return (the answer, its response) to a review on the case's cluster."""
    answer = admit(json.dumps(body).encode(), embedded(case), policy(case), entry_of(case))
    assert isinstance(answer, Answer), "an embedded cluster is read whole: nothing can be missing"
    response = json.loads(answer.body)["response"]
    told = response["auditAnnotations"]
    response["auditAnnotations"] = {key.removeprefix(AGAIN): value for key, value in told.items()}
    return answer, response


def patched(pod: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    """Return the pod after the response's patch."""
    patch = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    after: dict[str, Any] = jsonpatch.apply_patch(copy.deepcopy(pod), patch)
    return after


def expected_affinity(case: Case) -> Any:
    """Return the pod's affinity afterwards, without a short list; ABSENT if it has none."""
    return case.pod["spec"].get("affinity", ABSENT) if case.expect.affinity == UNCHANGED else case.expect.affinity


def without_webhook_parts(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the pod without its affinity, the webhook's annotations, and parents that are then empty."""
    rest = copy.deepcopy(pod)
    for ours in (DECISION, WRITTEN, NO_EVICTION):
        (rest["metadata"].get("annotations") or {}).pop(ours, None)
    if not rest["metadata"].get("annotations"):
        rest["metadata"].pop("annotations", None)
    rest["spec"].pop("affinity", None)
    return rest


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_row_is_decided_as_it_says(case: Case) -> None:
    """Decision, envelope, patched pod and annotation; a second admission; and a model of kube-scheduler agrees."""
    answer, response = ask(case, case.review)
    after = patched(case.pod, response)
    check_decision(case, response)
    check_envelope(case, answer, response)
    check_pod(case, after)
    check_annotation(case, response, after)
    check_second_admission(case, response, after)
    if case.expect.binds or case.expect.pending or case.expect.shortlist:
        check_places(case, after)


def check_decision(case: Case, response: dict[str, Any]) -> None:
    """Decision, reason, nodes and warning are those of the row, and the audit annotations have the same text."""
    expect = case.expect
    audit = dict(response["auditAnnotations"])
    assert audit.pop("because"), "the reason's sentence"
    told = {"decision": expect.decision, "reason": expect.reason}
    assert audit == told | ({"node": ",".join(expect.nodes)} if expect.nodes else {})
    warnings = response.get("warnings", [])
    assert len(warnings) == (0 if expect.warning is None else 1)
    assert all(expect.warning in warning for warning in warnings)


def check_envelope(case: Case, answer: Answer, response: dict[str, Any]) -> None:
    """The response is allowed, has the request's uid, and has patch and patchType together or neither."""
    assert json.loads(answer.body).keys() == {"apiVersion", "kind", "response"}
    assert response["allowed"] is True
    assert response["uid"] == case.review["request"]["uid"]
    assert response.get("patchType") == ("JSONPatch" if "patch" in response else None)


def check_pod(case: Case, after: dict[str, Any]) -> None:
    """spec.affinity is exactly that of the row. Only the affinity and the webhook's annotations change."""
    assert shortlist_problems(case, after["spec"].get("affinity", ABSENT), expected_affinity(case)) == []
    assert without_webhook_parts(after) == without_webhook_parts(case.pod)


def check_annotation(case: Case, response: dict[str, Any], after: dict[str, Any]) -> None:
    """A pod that opted in has decision, reason and nodes in its annotation. Any other pod has no such annotation."""
    if case.expect.reason in BEFORE_OPT_IN:
        carried = {DECISION, WRITTEN} & (case.pod["metadata"].get("annotations") or {}).keys()
        assert ("patch" in response) is bool(carried)
        assert after["spec"] == case.pod["spec"]
        assert not {DECISION, WRITTEN} & (after["metadata"].get("annotations") or {}).keys()
        return
    assert ("patch" in response) is case.expect.patched
    told = after["metadata"]["annotations"][DECISION]
    first_nodes = ", ".join(case.expect.nodes[:3])
    assert told.startswith(f"{case.expect.decision} on {first_nodes}" if first_nodes else "unchanged: ")
    assert f"{case.expect.reason}: " in told
    for part in case.expect.annotation:
        assert part in told


def check_second_admission(case: Case, response: dict[str, Any], after: dict[str, Any]) -> None:
    """A second call with the patched pod gives no patch and the same decision."""
    again = copy.deepcopy(case.review)
    if case.creates_pod:
        again["request"]["object"] = after
    _, second = ask(case, again)
    assert "patch" not in second
    assert second["auditAnnotations"]["decision"] == case.expect.decision
    assert second["auditAnnotations"].get("node") == response["auditAnnotations"].get("node")


def check_places(case: Case, after: dict[str, Any]) -> None:
    """`binds`, `pending` or the short list of the row are the result of an independent model of kube-scheduler."""
    expect = case.expect
    names = {node["metadata"]["name"] for node in case.nodes}
    binds = frozenset(shortlisted(after["spec"]["affinity"])) if expect.shortlist else expect.binds or frozenset()
    assert binds <= names
    if expect.decision == "required":
        assert binds, "a hard pin never strands a VM"
        assert binds <= set(expect.nodes)
    if expect.reason in OTHER_PODS_DECIDE or case.pod["spec"].get("nodeName"):
        return
    assert {n["metadata"]["name"] for n in case.nodes if oracle.admits(after, n)} == binds


def test_the_corpus_is_large_enough() -> None:
    """Without this test a corpus that loses its rows would pass."""
    assert len(CASES) >= ROWS_AT_LEAST


def test_every_reason_occurs_in_the_corpus() -> None:
    """Each reason that core can give on an embedded cluster has a row, and the corpus names no other reason."""
    elsewhere = (
        NEEDS_A_LIVE_CLUSTER | NEEDS_TOO_MUCH | NEEDS_A_BUG | NEEDS_A_SETTING | IS_NO_DECISION | TOLD_OF_RUNNING_VMS
    )
    possible = {reason.code for reason in Reason} - elsewhere
    assert {case.expect.reason for case in CASES} == possible


def test_every_rendered_pod_occurs_in_the_corpus() -> None:
    """Each pod that KubeVirt has rendered has a row."""
    rendered = {path.stem for path in (corpus.DIRECTORY / "pods").glob("*.json")}
    rows = (corpus.DIRECTORY / "fixtures.yaml").read_text(encoding="utf-8")
    assert rendered
    assert [name for name in sorted(rendered) if f"fixture: {name}" not in rows] == []
