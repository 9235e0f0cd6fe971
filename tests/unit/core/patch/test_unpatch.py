"""Out of which of the pod's required terms the webhook takes its requirement."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

import jsonpatch
import pytest
from msgspec import convert
from support.objects import patches
from support.objects.builders import OWNER_UID, SHARE_MANAGER_UID, on_node, share_manager_pod, virt_launcher_pod
from support.objects.patches import reverted

from webhook.core.api.pod import Pod
from webhook.core.decision import Pin, Steer, WeightedNode
from webhook.core.evidence.facts import Finding
from webhook.core.patch.applied_patch import AppliedPatch, to_annotation
from webhook.core.reasons import ANNOTATION_APPLIED_PATCH, Reason

LATER: Final = {"matchExpressions": [{"key": "example.com/later", "operator": "DoesNotExist"}]}
PINNED: Final = {**LATER, **on_node("n1")}
CHANGED_LATER: Final = {"matchExpressions": [*LATER["matchExpressions"], *LATER["matchExpressions"]]}
CHANGED: Final = {**CHANGED_LATER, **on_node("n1")}
TWICE: Final = {**LATER, "matchFields": 2 * on_node("n1")["matchFields"]}
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("terms", "narrowed", "left"),
    [
        pytest.param([PINNED, {**LATER, **on_node("n0")}], 2, [LATER], id="a-copy-for-a-further-node"),
        pytest.param([{**LATER, **on_node("n0")}, PINNED], 2, [LATER], id="a-copy-that-comes-first"),
        pytest.param([CHANGED, PINNED], 2, [CHANGED_LATER, LATER], id="a-changed-one-keeps-the-change"),
        pytest.param([CHANGED, PINNED], 1, [CHANGED, PINNED], id="one-more-than-written"),
        pytest.param([TWICE], 1, [TWICE], id="once-more-in-a-term"),
        pytest.param([TWICE], 2, [PINNED], id="one-is-taken-out-of-each"),
    ],
)
def test_what_the_record_counts_is_taken_out(terms: list[Any], narrowed: int, left: list[Any]) -> None:
    """If more terms name a node of the record than it counts, somebody else wrote one: all stay."""
    record = AppliedPatch(nodes=("n1", "n0"), narrowed=narrowed, owner=OWNER_UID)
    pod = virt_launcher_pod(annotations={ANNOTATION_APPLIED_PATCH: to_annotation(record)})
    pod["spec"]["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [deepcopy(term) for term in terms]}}}
    after = reverted(pod, OWNER_UID)
    assert after["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] == left


@pytest.mark.parametrize(
    ("owner", "name", "is_ours"),
    [
        pytest.param(OWNER_UID, None, True, id="this-vm"),
        pytest.param("8d1a5a5e-0000-4000-8000-000000000000", None, False, id="copied-from-another-start"),
        pytest.param("8d1a5a5e-0000-4000-8000-000000000000", "virt-launcher-db01", False, id="copied-and-running"),
        pytest.param("", None, False, id="of-no-owner"),
        pytest.param("", "virt-launcher-db01", False, id="of-no-owner-and-running"),
    ],
)
def test_only_a_record_of_this_pod_removes_a_term(owner: str, name: str | None, *, is_ours: bool) -> None:
    """KubeVirt copies a template's annotations to the pod. A copied record must not remove an administrator's term."""
    record = AppliedPatch(nodes=("n1",), narrowed=1, owner=owner)
    pod = virt_launcher_pod(annotations={ANNOTATION_APPLIED_PATCH: to_annotation(record)})
    pod["metadata"]["name"] = name
    pod["spec"]["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [deepcopy(PINNED)]}}}
    after = reverted(pod, OWNER_UID)
    assert ("matchFields" in after["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"][0]) is not is_ours
    assert ANNOTATION_APPLIED_PATCH not in after["metadata"]["annotations"]


TO_N1: Final[dict[str, Any]] = {
    "why": Reason.NO_CLAIMS.why(),
    "preferred": (WeightedNode("n1", 100),),
    "findings": [Finding(claim="c", why=Reason.NODE_NOT_FOUND.why(node="n1"), node="n1")],
}
PREFERRED: Final = [{"weight": 100, "preference": on_node("n1")}]


def steered(pod: Any, decision: Pin) -> Any:
    """The pod with the decision's operations applied."""
    return jsonpatch.apply_patch(pod, patches.for_decision(convert(pod, Pod), decision))


def test_beside_terms_of_others_a_share_manager_pod_has_ten_copies_of_its_preference() -> None:
    """One copy beside Longhorn's term against a delinquent node has half its weight. All copies go again."""
    theirs = {"weight": 100, "preference": {"matchExpressions": [{"key": "delinquent", "operator": "DoesNotExist"}]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [theirs]}}
    pod = share_manager_pod("h", phase=None, affinity=affinity)
    after = steered(pod, Steer(**TO_N1, near=(WeightedNode("n1", 100),), by_node=True))
    found = after["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert found == [theirs, *PREFERRED * 10]
    assert reverted(after, SHARE_MANAGER_UID)["spec"]["affinity"]["nodeAffinity"] == affinity["nodeAffinity"]
    alone = steered(share_manager_pod("h", phase=None), Steer(**TO_N1, near=(WeightedNode("n1", 100),), by_node=True))
    assert alone["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] == PREFERRED
