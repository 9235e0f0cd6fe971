"""What pods request of nodes, and what their anti-affinity is about, while they are added and removed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.api.meta import LabelSelector, LabelSelectorRequirement
from webhook.core.scheduler.cache import NodeInfo, NodeRequests, SchedulerCache
from webhook.core.scheduler.label_selector import Term, parse_terms
from webhook.core.scheduler.pod_info import (
    NO_TERMS,
    PARTS_NOT_READ,
    TERMS_NOT_READ,
    AntiAffinity,
    PodInfo,
    PodNode,
    anti_affinity,
    pod_info,
)
from webhook.core.scheduler.pod_requests import Usage

HAS: Final = {"pods": 10, "cpu": 1000}
SMALL, LARGE = Usage((("cpu", 100), ("memory", 2**20))), Usage((("cpu", 2000),))
DB: Final = LabelSelector(match_labels={"app": "db"})
APART: Final = anti_affinity([PodAffinityTerm(topology_key="zone", label_selector=DB)], "vms")
LABELS: Final = {"app": "db"}


def a_pod(node: str = "n1", *, usage: Usage = SMALL, terms: AntiAffinity = NO_TERMS, **on: Any) -> PodInfo:
    """A pod that is bound to n1, if nothing else is said."""
    return pod_info("vms", usage, terms, PodNode(node=node, **(on or {"bound": True})), LABELS)


def holding(*pods: PodInfo) -> SchedulerCache:
    """A cache of these pods."""
    cache = SchedulerCache()
    for pod in pods:
        cache.add(pod)
    return cache


def n1(cache: SchedulerCache) -> NodeInfo:
    """Return the node as the cache has it."""
    return cache.node_info("n1", HAS, {})


def total(requests: NodeRequests) -> tuple[int, dict[str, int]]:
    """The number of pods, and the amounts that are not zero."""
    return requests.pods, {name: amount for name, amount in requests.amounts.items() if amount}


def terms_near(cache: SchedulerCache, namespace: str = "vms", **labels: str) -> dict[Term, set[str]]:
    """The terms that can be meant for a pod with these labels, with the nodes of the pods that have them."""
    near = cache.existing_terms.near(namespace, labels)
    return {term: set(nodes) for term, nodes in near if term.matches(namespace, labels)}


@pytest.mark.parametrize(
    ("on", "coming"),
    [
        pytest.param({"queued": True}, (1, {"cpu": 2000}), id="on the way"),
        pytest.param({"queued": True, "pinned": True}, (1, {"cpu": 2000}), id="on the way to the only node"),
        pytest.param({"pinned": True}, (0, {}), id="tried, and it waits for the only node"),
        pytest.param({"nominated": True}, (0, {}), id="nominated"),
    ],
)
def test_what_is_on_the_way_is_a_part_of_what_is_requested(on: dict[str, bool], coming: tuple[int, Any]) -> None:
    """However large it is. The terms of a pod count before it is bound: it can be bound first."""
    found = holding(a_pod(), a_pod(usage=LARGE, terms=APART, **on))
    assert total(n1(found).requested) == (2, {"cpu": 2100, "memory": 2**20})
    assert total(n1(found).on_the_way) == coming
    assert terms_near(found, app="db") == {APART.terms[0]: {"n1"}}


def test_pods_on_a_short_list_are_counted_by_shape() -> None:
    """Each on one of its nodes."""
    found = holding(
        a_pod(shortlisted=True),
        a_pod("n2", shortlisted=True),
        a_pod(usage=LARGE, shortlisted=True),
        a_pod(pinned=True),
    )
    assert found.shortlisted == {SMALL: 2, LARGE: 1}


def expression(operator: str, *values: str) -> LabelSelector:
    """A selector by the label `app`."""
    requirement = LabelSelectorRequirement(key="app", operator=operator, values=list(values))
    return LabelSelector(match_expressions=[requirement])


NAMESPACES: Final = ("vms", "other", "third")
TERMS: Final = st.builds(
    PodAffinityTerm,
    topology_key=st.sampled_from(["zone", "kubernetes.io/hostname"]),
    label_selector=st.sampled_from(
        [
            None,
            LabelSelector(),
            DB,
            LabelSelector(match_labels={"app": "db", "tier": "gold"}),
            expression("In", "db", "web"),
            expression("NotIn", "db"),
            expression("Exists"),
            expression("DoesNotExist"),
        ]
    ),
    namespaces=st.sampled_from([None, [], ["other"], ["vms", "other"]]),
    namespace_selector=st.sampled_from([None, LabelSelector(), LabelSelector(match_labels={"team": "a"})]),
)
ANTI_AFFINITY: Final = st.sampled_from([NO_TERMS, PARTS_NOT_READ, TERMS_NOT_READ]) | st.builds(
    anti_affinity, st.lists(TERMS, min_size=1, max_size=3), st.sampled_from(NAMESPACES)
)
FLAGS: Final = dict.fromkeys(("bound", "queued", "pinned", "shortlisted"), st.booleans())
ON: Final = st.builds(PodNode, node=st.sampled_from(["n1", "n2"]), **FLAGS)
PODS: Final = st.lists(
    st.builds(pod_info, st.just("vms"), st.sampled_from([SMALL, LARGE]), ANTI_AFFINITY, ON, st.just(LABELS)), max_size=8
)
POD_LABELS: Final = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["db", "web", "gold"]))


@given(pods=PODS, namespace=st.sampled_from(NAMESPACES), labels=POD_LABELS)
def test_every_term_that_can_be_meant_for_a_pod_is_found(
    pods: list[PodInfo], namespace: str, labels: dict[str, str]
) -> None:
    """By whatever namespace and label it is looked up; with all nodes of the pods that have it."""

    def meant(terms: Iterable[Term]) -> list[Term]:
        return [term for term in terms if term.matches(namespace, labels)]

    expected: dict[Term, set[str]] = {}
    for pod in pods:
        for term in meant(pod.anti_affinity.terms):
            expected.setdefault(term, set()).add(pod.on.node)
    assert terms_near(holding(*pods), namespace, **labels) == expected


def test_a_term_about_one_value_of_a_label_is_found_by_it_alone() -> None:
    """So a lookup does not grow with the terms of a cluster."""
    selectors = [LabelSelector(match_labels={"app": app}) for app in ("db", "web", "cache")]
    terms = [PodAffinityTerm(topology_key="zone", label_selector=selector) for selector in selectors]
    cache = holding(a_pod(terms=anti_affinity(terms, "vms")))
    assert [term for term, _ in cache.existing_terms.near("vms", {"app": "db", "tier": "gold"})] == list(APART.terms)
    assert not list(cache.existing_terms.near("other", LABELS))


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
