"""`serve --audit=on`: every decision is made and told, and no pod changes except for the annotation that tells it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import jsonpatch
import pytest
from support.fakes.views import cluster
from support.objects import corpus
from support.objects.builders import DECISION, WRITTEN
from support.objects.corpus import Case
from support.objects.embedded import policy as policy_of
from support.objects.patches import reverted

from webhook.core import admit
from webhook.core.admit import Answer, Entry, PodCreation
from webhook.core.decision import Leave, decision_sentence
from webhook.core.observe.past_decision import Decided, past_decision
from webhook.core.opt_in import Mode
from webhook.core.patch.applied_patch import owner_uid
from webhook.core.patch.decision_patch import Operation
from webhook.core.reasons import Reason

CODES: Final = {Mode.REQUIRED: Reason.AUDIT_REQUIRED, Mode.PREFERRED: Reason.AUDIT_PREFERRED}
TOLD_AT_LEAST: Final = {Entry.VIRT_LAUNCHER: 200, Entry.SHARE_MANAGER: 20}


@pytest.mark.parametrize("entry", TOLD_AT_LEAST, ids=lambda entry: entry.title)
def test_each_row_of_the_corpus_shows_its_decision_and_does_not_carry_it_out(entry: Entry) -> None:
    """A pod that would get an affinity gets the annotation only. Every other answer is the same, byte for byte."""
    told = 0
    for case in corpus.load():
        if case.entry != entry.title:
            continue
        plain, audited = (answered(case, entry, audit=audit) for audit in (False, True))
        if isinstance(plain.decision, Leave):
            assert audited.body == plain.body, case.name
            continue
        told += 1
        assert isinstance(audited.decision, Leave)
        assert audited.decision.why.reason is CODES[plain.decision.strength]
        assert audited.decision.why.sentence.endswith(decision_sentence(plain.decision))
        assert audited.decision.findings == plain.decision.findings
        text, after = told_and_rest(case, audited.operations)
        assert text == f"unchanged: {audited.decision.why}"[:1024]
        owner = owner_uid(read(case.review, entry).pod.metadata.owner_references)
        assert after == split(reverted(case.pod, owner))[1], case.name
    assert told >= TOLD_AT_LEAST[entry]


def test_programs_that_read_the_annotation_see_a_pod_that_was_left_unchanged() -> None:
    """From the annotation, `status`, the page and the metrics read what was decided for a running pod."""
    case = next(case for case in corpus.load() if case.expect.decision == "required")
    audited = answered(case, Entry.VIRT_LAUNCHER, audit=True)
    pod = jsonpatch.apply_patch(case.pod, list(audited.operations))
    review = {**case.review, "request": {**case.review["request"], "object": pod}}
    found = past_decision(read(review, Entry.VIRT_LAUNCHER).pod)
    assert (found.decided, found.nodes) == (Decided.UNCHANGED, ())
    assert found.because == str(audited.decision.why)


def answered(case: Case, entry: Entry, *, audit: bool) -> Answer:
    """Return the answer of a webhook that acts, or of one that audits."""
    policy = policy_of(case, audit=audit)
    found = admit.admit(json.dumps(case.review).encode(), cluster(*case.objects), policy, entry)
    assert isinstance(found, Answer)
    return found


def read(review: Any, entry: Entry) -> PodCreation:
    """Return the pod creation in an AdmissionReview."""
    found = admit.read(json.dumps(review).encode(), entry)
    assert isinstance(found, PodCreation)
    return found


def told_and_rest(case: Case, operations: Sequence[Operation]) -> tuple[str | None, Any]:
    """Return the row's pod after these operations: the decision's annotation, and the rest without the record."""
    return split(jsonpatch.apply_patch(case.pod, [dict(each) for each in operations]))


def split(pod: Any) -> tuple[str | None, Any]:
    """Return the annotation of the decision of a pod, and the rest without the record."""
    annotations = pod["metadata"].pop("annotations", None) or {}
    annotations.pop(WRITTEN, None)
    return annotations.pop(DECISION, None), (annotations, pod)
