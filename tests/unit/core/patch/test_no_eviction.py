"""A steered share-manager pod asks the descheduler not to evict it: its eviction would stall NFS."""

from __future__ import annotations

from typing import Any, Final

import jsonpatch
from msgspec import convert
from support.objects import patches
from support.objects.builders import SHARE_MANAGER_UID, on_node, share_manager_pod

from webhook.core.api.pod import Pod
from webhook.core.decision import Pin, Steer, WeightedNode
from webhook.core.evidence.facts import Finding
from webhook.core.reasons import Reason

KEY: Final = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
TO_N1: Final[dict[str, Any]] = {
    "why": Reason.NO_CLAIMS.why(),
    "preferred": (WeightedNode("n1", 100),),
    "findings": [Finding(claim="c", why=Reason.NODE_NOT_FOUND.why(node="n1"), node="n1")],
}
TO_N1_NEAR: Final = Steer(**TO_N1, near=(WeightedNode("n1", 100),))
PREFERRED: Final = [{"weight": 100, "preference": on_node("n1")}]


def steered(pod: Any, decision: Pin) -> Any:
    """The pod with the decision's operations applied."""
    return jsonpatch.apply_patch(pod, patches.for_decision(convert(pod, Pod), decision))


def reverted(pod: Any) -> Any:
    """The pod without what the webhook wrote."""
    return patches.reverted(pod, SHARE_MANAGER_UID)


def test_an_annotation_of_others_stays() -> None:
    """The webhook neither rewrites nor removes it."""
    pod = share_manager_pod("h", phase=None)
    pod["metadata"]["annotations"][KEY] = "theirs"
    after = steered(pod, TO_N1_NEAR)
    assert after["metadata"]["annotations"][KEY] == "theirs"
    assert reverted(after)["metadata"]["annotations"][KEY] == "theirs"


def test_beside_terms_of_others_a_share_manager_pod_has_ten_copies_of_its_preference() -> None:
    """One copy beside Longhorn's term against a delinquent node has half its weight. All copies go again."""
    theirs = {"weight": 100, "preference": {"matchExpressions": [{"key": "delinquent", "operator": "DoesNotExist"}]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [theirs]}}
    pod = share_manager_pod("h", phase=None, affinity=affinity)
    after = steered(pod, Steer(**TO_N1, near=(WeightedNode("n1", 100),), by_node=True))
    found = after["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert found == [theirs, *PREFERRED * 10]
    assert reverted(after)["spec"]["affinity"]["nodeAffinity"] == affinity["nodeAffinity"]
    alone = steered(share_manager_pod("h", phase=None), Steer(**TO_N1, near=(WeightedNode("n1", 100),), by_node=True))
    assert alone["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] == PREFERRED
