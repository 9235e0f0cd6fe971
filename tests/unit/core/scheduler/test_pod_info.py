from __future__ import annotations

from typing import Final

import pytest
from msgspec import convert
from support.objects import builders

from webhook.core.api.affinity import MAX_TERMS, PodAffinityTerm
from webhook.core.api.meta import LabelSelector
from webhook.core.api.pod import PodSpec
from webhook.core.scheduler.label_selector import parse_terms
from webhook.core.scheduler.pod_info import NO_TERMS, AntiAffinity, PodNode, anti_affinity, pod_info, pod_nodes
from webhook.core.scheduler.pod_requests import Usage

LABELS: Final = {"app": "db"}
MANAGER: Final = {"longhorn.io/component": "instance-manager"}


@pytest.mark.parametrize(
    ("on", "labels", "kept"),
    [
        pytest.param({"pinned": True}, LABELS, LABELS, id="a pinned pod"),
        pytest.param({"pinned": True}, None, {}, id="a pinned pod without labels"),
        pytest.param({"nominated": True, "pinned": True}, LABELS, LABELS, id="a pinned pod that is nominated"),
        pytest.param({}, LABELS, None, id="any other on the way"),
        pytest.param({"bound": True}, LABELS, None, id="a bound pod"),
        pytest.param({"bound": True}, None, None, id="a bound pod without labels"),
        pytest.param({"bound": True}, MANAGER, MANAGER, id="a bound instance manager"),
        pytest.param({}, MANAGER, None, id="one that forges an instance manager"),
    ],
)
def test_labels_are_kept_where_somebody_asks_for_them(
    on: dict[str, bool], labels: dict[str, str] | None, kept: dict[str, str] | None
) -> None:
    """Of a VM that is pinned and waits, and of Longhorn's instance managers; of all others they would cost memory."""
    info = pod_info("vms", Usage(), NO_TERMS, PodNode(node="n1", **on), labels)
    assert info.labels == kept


def test_a_pod_without_terms_has_no_object_of_its_own() -> None:
    """As most pods are, and those whose terms select no pod."""
    terms = [PodAffinityTerm(topology_key="zone", label_selector=each) for each in (None, LabelSelector())]
    assert anti_affinity(terms[:1], "vms") is anti_affinity([], "vms") is NO_TERMS
    assert anti_affinity(terms, "vms") == AntiAffinity(parse_terms(terms[1:], "vms"))


@pytest.mark.parametrize("count", [1, MAX_TERMS, MAX_TERMS + 1])
def test_a_pod_that_prefers_too_many_nodes_counts_nowhere(count: int) -> None:
    """The webhook never names so many, and each of them costs memory."""
    named = [f"n{index:04}" for index in range(count)]
    spec = convert({"affinity": builders.node_affinity(preferred=dict.fromkeys(named, 1))}, PodSpec)
    found = pod_nodes(spec, None, terminating=False, is_vm=True, recorded=True)
    assert list(found) == ([PodNode(node=name, queued=True) for name in named] if count <= MAX_TERMS else [])
