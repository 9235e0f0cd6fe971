"""What version 0.1.0 decided is read from its sentence. These texts are as that version wrote them."""

from __future__ import annotations

import pytest
from msgspec import convert
from support.objects import builders

from webhook.core.api.pod import Pod
from webhook.core.observe.decision_of_0_1_0 import NEW_CODES
from webhook.core.observe.past_decision import Decided, PastDecision, past_decision
from webhook.core.reasons import Reason

EVIDENCE = "ShareManagerPod: claim root: pod share-manager-root is on node a"
REASON = {"reason": "NodeCordoned", "sentence": "node b is cordoned"}
OPTED_IN = "; opted in by the Namespace's label"
BECAUSE = "NodeCordoned: node b is cordoned"


@pytest.mark.parametrize(
    ("sentence", "decision"),
    [
        (f"required on a: {EVIDENCE}", PastDecision(decided=Decided.REQUIRED, nodes=("a",))),
        (
            f"required on a: {EVIDENCE}; opted in by the Namespace's label",
            PastDecision(decided=Decided.REQUIRED, nodes=("a",)),
        ),
        (
            f"preferred on a, b: {EVIDENCE}; not required, because {BECAUSE}",
            PastDecision(decided=Decided.PREFERRED, nodes=("a", "b"), **REASON),
        ),
        (
            f"preferred on a, b, c and 12 more: {EVIDENCE}{OPTED_IN}; not required, because {BECAUSE}",
            PastDecision(decided=Decided.PREFERRED, nodes=("a", "b", "c"), more=12, **REASON),
        ),
        (f"preferred on a: {EVIDENCE}", PastDecision(decided=Decided.PREFERRED, nodes=("a",))),
        (
            f"preferred on a: {EVIDENCE}; not required, because NodeAwaited: x",
            PastDecision(decided=Decided.PREFERRED, nodes=("a",), reason="PinnedVmWaits", sentence="x"),
        ),
        (f"unchanged: {BECAUSE}", PastDecision(decided=Decided.UNCHANGED, **REASON)),
        (f"unchanged: {BECAUSE}; opted in by the Namespace's label", PastDecision(decided=Decided.UNCHANGED, **REASON)),
        ("", PastDecision(decided=Decided.NOTHING)),
        ("whatever", PastDecision(decided=Decided.NOTHING)),
        ("migrated", PastDecision(decided=Decided.NOTHING)),
        ("Required on a: x", PastDecision(decided=Decided.NOTHING)),
        ("required on a and many more: x", PastDecision(decided=Decided.REQUIRED, nodes=("a",))),
        ("required on a, b, c, d: x", PastDecision(decided=Decided.NOTHING)),
    ],
)
@pytest.mark.parametrize("record", [None, '{"nodes":["a"],"terms":[[0,"ac6145f6"]],"preferred":[["a",100,1]]}'])
def test_the_sentence_of_a_pod_that_version_0_1_0_decided_on_is_read(
    sentence: str, decision: PastDecision, record: str | None
) -> None:
    """Its record, which a pod left unchanged does not have, says nothing of the decision."""
    annotations = {builders.DECISION: sentence} | ({builders.WRITTEN: record} if record else {})
    assert past_decision(convert(builders.virt_launcher_pod(annotations=annotations), Pod)) == decision


def test_each_new_code_is_one_of_today() -> None:
    """And no reason of today has an old code."""
    today = {reason.code for reason in Reason}
    assert set(NEW_CODES.values()) <= today
    assert today.isdisjoint(NEW_CODES)


def test_a_long_text_of_a_user_is_cut() -> None:
    """Version 0.1.0 wrote at most 1,024 characters."""
    annotations = {builders.DECISION: "unchanged: NoRoom: " + "x" * 9_999}
    found = past_decision(convert(builders.virt_launcher_pod(annotations=annotations), Pod))
    assert len(f"unchanged: {found.because}") == 1_024
