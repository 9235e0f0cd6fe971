from typing import Any

import pytest
from msgspec import convert
from support.fakes.views import Gap, ViewWithGaps, cluster
from support.objects.builders import (
    persistent_volume,
    persistent_volume_claim,
    share_manager,
    share_manager_pod,
    virt_launcher_pod,
)

from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.evidence.facts import Finding
from webhook.core.evidence.share_managers import find_share_managers
from webhook.core.reasons import Reason
from webhook.core.view import Kind, NoObject, ObjectRef, Ref

CLAIM = ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "disk"))
VOLUME = ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", "pv"))
SHARE_MANAGER = ObjectRef(Kind.SHARE_MANAGER, NamespacedName("", "h"))
SHARE_MANAGER_POD = ObjectRef(Kind.SHARE_MANAGER_POD, NamespacedName("", "share-manager-h"))

BOUND = [persistent_volume_claim("disk", volume_name="pv"), persistent_volume("pv", claim="disk", handle="h")]


def finding(*objects: dict[str, Any], gaps: dict[Ref, Gap] | None = None) -> Finding:
    """What the claim `disk` leads to in a cluster of these objects."""
    pod = convert(virt_launcher_pod(claims=["disk"]), Pod)
    (found,) = find_share_managers(pod, "vms", ViewWithGaps(cluster(*BOUND, *objects), gaps or {}))
    return found


def test_a_hostile_node_name_is_shown_short_and_in_ascii() -> None:
    """The name gets into logs and annotations."""
    sentence = finding(share_manager("h", ownerID="é\n" * 1000)).why.sentence
    assert len(sentence) < 400
    assert sentence.isascii()
    assert sentence.isprintable()


@pytest.mark.parametrize(
    ("lost", "reason", "node", "firm", "nodes_unknown"),
    [
        pytest.param([CLAIM], Reason.CLAIM_LOOKUP_FAILED, None, False, True, id="the claim"),
        pytest.param([VOLUME], Reason.CLAIM_LOOKUP_FAILED, None, False, True, id="the volume"),
        pytest.param(
            [SHARE_MANAGER], Reason.SHARE_MANAGER_POD, "n1", True, False, id="the ShareManager: the pod is enough"
        ),
        pytest.param([SHARE_MANAGER, SHARE_MANAGER_POD], Reason.CLAIM_LOOKUP_FAILED, None, False, False, id="both"),
        pytest.param(
            [SHARE_MANAGER_POD], Reason.SHARE_MANAGER_POD_UNREAD, "n1", False, False, id="the pod: a hint is left"
        ),
    ],
)
def test_a_missing_answer_weakens_the_evidence(
    lost: list[Ref], reason: Reason, node: str | None, *, firm: bool, nodes_unknown: bool
) -> None:
    """A missing answer never counts as a missing object."""
    there = share_manager("h", state="running", ownerID="n1"), share_manager_pod("h", nodeName="n1")
    found = finding(*there, gaps=dict.fromkeys(lost, NoObject.UNAVAILABLE))
    assert (found.why.reason, found.node, found.firm, found.volume_nodes_unknown) == (reason, node, firm, nodes_unknown)
    assert ("503 for a test" in found.why.sentence) == (reason is not Reason.SHARE_MANAGER_POD)
