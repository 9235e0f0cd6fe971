"""Which of the pod's required terms the webhook takes its requirement out of, if several could be its own."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

import jsonpatch
import pytest
from msgspec import convert
from support.objects.builders import OWNER_UID, on_node, virt_launcher_pod

from webhook.core.api.node_selector import NodeSelectorTerm
from webhook.core.api.pod import Pod
from webhook.core.patch.applied_patch import AppliedPatch, fingerprint, to_annotation
from webhook.core.patch.unpatch import revert_operations
from webhook.core.reasons import ANNOTATION_APPLIED_PATCH

LATER: Final = {"matchExpressions": [{"key": "example.com/later", "operator": "DoesNotExist"}]}
PINNED: Final = {**LATER, **on_node("n1")}
CHANGED: Final = {"matchExpressions": [*LATER["matchExpressions"], *LATER["matchExpressions"]], **on_node("n1")}
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("terms", "recorded", "own"),
    [
        pytest.param([PINNED, PINNED], [1], 1, id="two-equal-terms"),
        pytest.param([LATER, LATER, PINNED], [0], 2, id="others-came-before-it"),
        pytest.param([CHANGED, PINNED], [0], 1, id="another-term-in-its-place"),
        pytest.param([CHANGED, CHANGED], [1], 1, id="both-changed-since"),
        pytest.param([LATER, CHANGED], [0], 1, id="changed-and-moved"),
    ],
)
def test_the_closest_term_is_the_webhooks_own(terms: list[Any], recorded: list[int], own: int) -> None:
    """The unchanged term in its place comes first, then an unchanged one, then a changed one in its place."""
    checksum = fingerprint(convert(PINNED, NodeSelectorTerm))
    record = AppliedPatch(nodes=("n1",), terms=tuple((index, checksum) for index in recorded), owner=OWNER_UID)
    pod = virt_launcher_pod(annotations={ANNOTATION_APPLIED_PATCH: to_annotation(record)})
    pod["spec"]["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [deepcopy(term) for term in terms]}}}
    after = jsonpatch.apply_patch(pod, revert_operations(convert(pod, Pod), OWNER_UID))
    left = after["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert ["matchFields" in term for term in left] == [
        index != own and "matchFields" in term for index, term in enumerate(terms)
    ]


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
    record = AppliedPatch(nodes=("n1",), terms=((0, fingerprint(convert(PINNED, NodeSelectorTerm))),), owner=owner)
    pod = virt_launcher_pod(annotations={ANNOTATION_APPLIED_PATCH: to_annotation(record)})
    pod["metadata"]["name"] = name
    pod["spec"]["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [deepcopy(PINNED)]}}}
    after = jsonpatch.apply_patch(pod, revert_operations(convert(pod, Pod), OWNER_UID))
    assert ("matchFields" in after["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"][0]) is not is_ours
    assert ANNOTATION_APPLIED_PATCH not in after["metadata"]["annotations"]
