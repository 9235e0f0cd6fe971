"""What the annotation of a pod says that was decided at its creation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from support.objects import builders

from webhook.core.api.pod import Pod
from webhook.core.decision import Leave, Pin, WeightedNode, decision_sentence
from webhook.core.evidence.finding import Finding
from webhook.core.observe.past_decision import Decided, PastDecision, past_decision, without_evidence
from webhook.core.reasons import Reason

BUSY = Reason.NODE_CORDONED.why(node="node-b")


def told(annotation: str) -> PastDecision:
    """What the pod with this annotation says."""
    return past_decision(convert(builders.virt_launcher_pod(annotations={builders.DECISION: annotation}), Pod))


def written(*nodes: str, required: bool) -> str:
    """The annotation of a decision for these nodes."""
    findings = [
        Finding(
            claim="root", node=node, why=Reason.SHARE_MANAGER_POD.why(claim="root", volume="v", node=node, besides="")
        )
        for node in nodes
    ]
    preferred = tuple(WeightedNode(node, 100) for node in nodes)
    return decision_sentence(Pin(why=BUSY, required=nodes if required else (), preferred=preferred, findings=findings))


def test_what_the_webhook_writes_is_read_back() -> None:
    """Nodes, and the reason why none is required."""
    assert told(written("node-b", required=True)) == PastDecision(decided=Decided.REQUIRED, on="node-b")
    preferred = told(written("node-b", "node-c", required=False))
    assert preferred == PastDecision(decided=Decided.PREFERRED, on="node-b, node-c", because=str(BUSY))
    assert (preferred.nodes, preferred.names_all) == ({"node-b", "node-c"}, True)
    left = told(decision_sentence(Leave(why=BUSY)))
    assert (left, left.nodes) == (PastDecision(decided=Decided.UNCHANGED, because=str(BUSY)), frozenset())


def test_of_many_nodes_the_annotation_names_three() -> None:
    """The others are not known."""
    found = told(written("a", "b", "c", "d", "e", required=True))
    assert (found.nodes, found.names_all) == ({"a", "b", "c"}, False)


@pytest.mark.parametrize("annotation", ["", "whatever", "migrated", "Required on node-b: x"])
def test_a_text_of_somebody_else_is_no_decision(annotation: str) -> None:
    """Users may write what they like."""
    assert told(annotation) == PastDecision(decided=Decided.NOTHING)


@given(
    st.one_of(
        st.text(max_size=40),
        st.tuples(
            st.sampled_from(["required", "preferred", "unchanged", "x"]),
            st.sampled_from([" on a: ", " on a, b and 2 more: ", ": ", " "]),
            st.sampled_from(["", "NoRoom: x", "E: y; not required, because NoRoom: x: y"]),
        ).map("".join),
    )
)
def test_without_the_evidence_an_annotation_says_the_same(annotation: str) -> None:
    """A cache stores the short text."""
    short = without_evidence(annotation)
    assert told(short) == told(annotation)
    assert len(short) <= len(annotation)


def test_a_long_text_of_a_user_is_cut() -> None:
    """The webhook itself writes at most 1,024 characters."""
    assert len(without_evidence("unchanged: " + "x" * 9_999)) == 1_024
