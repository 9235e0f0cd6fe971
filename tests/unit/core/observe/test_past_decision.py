"""What the record in a pod says that was decided at its creation."""

from __future__ import annotations

import json
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from support.objects import builders
from support.objects.patches import for_decision

from webhook.core.api.pod import Pod
from webhook.core.decision import Decision, Leave, Pin, Steer, WeightedNode
from webhook.core.evidence.facts import Finding
from webhook.core.observe.past_decision import Decided, PastDecision, past_decision
from webhook.core.reasons import Reason

Object = dict[str, Any]
BUSY = Reason.NODE_CORDONED.why(node="b")
NOT_CALLED = PastDecision(decided=Decided.NOTHING)
WHY = {"reason": "NodeCordoned", "sentence": "node b is cordoned"}


def pin(*nodes: str, required: bool) -> Pin:
    """A decision for these nodes."""
    why = Reason.SHARE_MANAGER_POD.why(claim="root", volume="v", node="", besides="")
    return Pin(
        why=BUSY,
        required=nodes if required else (),
        preferred=tuple(WeightedNode(node, 100) for node in nodes),
        findings=[Finding(claim="root", node=node, why=why) for node in nodes],
    )


def decided(decision: Decision) -> Object:
    """A pod as the webhook patches it."""
    pod = builders.virt_launcher_pod()
    patched: Object = jsonpatch.apply_patch(pod, for_decision(convert(pod, Pod), decision))
    return patched


def read(pod: Object) -> PastDecision:
    """What is read of the pod."""
    return past_decision(convert(pod, Pod))


@pytest.mark.parametrize(
    ("decision", "past", "on"),
    [
        (pin("b", required=True), PastDecision(decided=Decided.REQUIRED, nodes=("b",)), "b"),
        (pin("b", "c", required=False), PastDecision(decided=Decided.PREFERRED, nodes=("b", "c"), **WHY), "b, c"),
        (
            pin("a", "b", "c", "d", "e", required=True),
            PastDecision(decided=Decided.REQUIRED, nodes=("a", "b", "c"), more=2),
            "a, b, c and 2 more",
        ),
        (Leave(why=BUSY, opted_in=True), PastDecision(decided=Decided.UNCHANGED, **WHY), ""),
        (
            Steer(why=BUSY, preferred=(WeightedNode("b", 100),), findings=pin("b", required=False).findings),
            PastDecision(decided=Decided.PREFERRED, nodes=("b",)),
            "b",
        ),
    ],
)
def test_what_the_webhook_writes_is_read_back(decision: Decision, past: PastDecision, on: str) -> None:
    """At most three nodes, and why none is required. That is the rule for a share-manager pod, and needs no reason."""
    found = read(decided(decision))
    assert (found, found.on) == (past, on)
    assert found.because == (str(BUSY) if past.reason else "")


def test_the_sentence_for_people_is_not_read() -> None:
    """Its words can change with each version."""
    pod = decided(pin("b", required=True))
    pod["metadata"]["annotations"][builders.DECISION] = "preferred on c: in other words"
    assert read(pod) == PastDecision(decided=Decided.REQUIRED, nodes=("b",))


def test_a_copied_record_says_nothing() -> None:
    """KubeVirt copies the annotations of a template to the pod. The sentence beside the record is a copy, too."""
    pod = decided(pin("b", required=True))
    pod["metadata"]["ownerReferences"][0]["uid"] = "of-the-next-start"
    assert read(pod) == NOT_CALLED


def test_the_target_of_a_migration_has_no_required_node() -> None:
    """The webhook writes none there, so such a record is the one of the VM's start."""
    target = decided(pin("b", required=True))
    target["metadata"]["labels"]["kubevirt.io/migrationJobUID"] = "3f"
    assert read(target) == PastDecision(decided=Decided.MIGRATED)


OURS = {"owner": builders.OWNER_UID, "decided": "required", "on": ["b"]}


@pytest.mark.parametrize(
    "record",
    [
        pytest.param("", id="empty"),
        pytest.param("required on b: x", id="no JSON"),
        pytest.param("null", id="null"),
        pytest.param("[]", id="a list"),
        pytest.param('{"x":' + "[" * 100_000, id="nested too deep"),
        pytest.param(json.dumps(OURS, ensure_ascii=False) + "\ud800", id="no text"),
        pytest.param(json.dumps({**OURS, "decided": 1}), id="a number as the decision"),
        pytest.param(json.dumps({**OURS, "on": "b"}), id="a text as the nodes"),
        pytest.param(json.dumps({**OURS, "more": "many"}), id="a text as a number"),
        pytest.param(json.dumps({**OURS, "more": -1}), id="fewer than no further nodes"),
        pytest.param(json.dumps({**OURS, "decided": "migrated"}), id="what is never recorded"),
        pytest.param(json.dumps({**OURS, "decided": "Required"}), id="another word"),
        pytest.param(json.dumps({**OURS, "owner": ""}), id="no owner"),
        pytest.param(json.dumps({**OURS, "on": ["a", "b", "c", "d"]}), id="more nodes than the webhook records"),
        pytest.param(json.dumps({**OURS, "because": "x" * 2_100}), id="a text that is too long"),
    ],
)
def test_a_broken_or_forged_record_says_nothing(record: str) -> None:
    """Users may write what they like, and nothing raises."""
    assert read(builders.virt_launcher_pod(annotations={builders.WRITTEN: record})) == NOT_CALLED


KEYS = st.sampled_from([*OURS, "more", "reason"])
VALUES = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.text(max_size=3), max_size=5)


@given(st.text(max_size=60) | st.dictionaries(KEYS, VALUES).map(json.dumps))
def test_no_record_raises(record: str) -> None:
    """Whatever it is, it is read."""
    assert read(builders.virt_launcher_pod(annotations={builders.WRITTEN: record})).decided in Decided
