"""What holds for every pod on every cluster, checked by an oracle of the scheduler that shares no code."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from support.fakes.views import ViewWithGaps, cluster
from support.models import oracle
from support.models.cluster_model import ClusterModel
from support.models.outcomes import (
    PREFERRED,
    REQUIRED,
    assert_admitted,
    assert_affinity_stays_valid,
    assert_appended,
    assert_reached,
    assert_read_piece_by_piece,
    assert_second_admission_changes_nothing,
    assert_terms_kept,
    node_affinity,
    outcome,
    places,
    terms_of,
    without_webhook_parts,
)
from support.strategies.affinity_shapes import (
    LABELS,
    NODES,
    SANE_EXPRESSIONS,
    SANE_FIELDS,
    SELECTORS,
    WILD_EXPRESSIONS,
    WILD_FIELDS,
)
from support.strategies.strategies import NAMESPACE, TAINTS, TOLERATIONS, Scenario, scenarios

from webhook.core.api.affinity import MAX_TERMS, NodeSelector
from webhook.core.api.meta import NamespacedName
from webhook.core.api.node import Taint
from webhook.core.api.pod import Toleration
from webhook.core.scheduler.node_rules import matches_node_selector, tolerates
from webhook.core.view import Kind, NoObject, ObjectRef, Ref

_INDEXES = range(4)
_MANAGERS = {ObjectRef(Kind.SHARE_MANAGER, NamespacedName("", f"h{i}")) for i in _INDEXES}
_REFERENCES = [
    *sorted(_MANAGERS),
    *(ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName(NAMESPACE, f"c{i}")) for i in _INDEXES),
    *(ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", name)) for name in ("lost", *(f"pv{i}" for i in _INDEXES))),
    *(ObjectRef(Kind.SHARE_MANAGER_POD, NamespacedName("", f"share-manager-h{i}")) for i in _INDEXES),
    *(
        ObjectRef(kind, NamespacedName("", name))
        for kind in (Kind.NODE, Kind.LONGHORN_NODE)
        for name in (*NODES, "ghost")
    ),
]
REFERENCES = st.just(set(_REFERENCES)) | st.sets(st.sampled_from(_REFERENCES))
"""All, or some, of the objects that core could ask for in a scenario."""


@given(scenarios())
def test_a_pod_is_always_admitted_with_a_patch_that_applies(scenario: Scenario) -> None:
    """The response is allowed, has the request's uid, and has patch and patchType together or neither."""
    found = outcome(scenario.pod, scenario)
    assert_admitted(found)
    assert found.response["uid"] == "uid-1"


@given(scenarios())
def test_only_node_affinity_and_the_annotations_of_the_webhook_change(scenario: Scenario) -> None:
    """All other fields stay as they are, unknown ones included. Terms are only added to."""
    before, after = scenario.pod, outcome(scenario.pod, scenario).pod
    assert without_webhook_parts(after) == without_webhook_parts(before)
    old, new = node_affinity(before), node_affinity(after)
    assert {k: v for k, v in new.items() if k not in (REQUIRED, PREFERRED)} == {
        k: v for k, v in old.items() if k not in (REQUIRED, PREFERRED)
    }
    assert_appended(old, new)
    assert_terms_kept(old, new)
    assert len(terms_of(new)) >= len(terms_of(old))


@given(scenarios())
def test_a_second_admission_changes_nothing(scenario: Scenario) -> None:
    """A pod that was patched gets no operation, and the same decision."""
    assert_second_admission_changes_nothing(scenario)


@given(scenarios())
def test_the_new_affinity_admits_exactly_the_required_nodes_of_those_the_old_one_did(scenario: Scenario) -> None:
    """With required nodes, the pod may run on those of them that its old affinity allows. Without, no node is lost."""
    found = outcome(scenario.pod, scenario)
    for node in places(scenario):
        wanted = not found.hard_pin or oracle.name_of(node) in found.hard_pin
        before, after = oracle.affinity_admits(scenario.pod, node), oracle.affinity_admits(found.pod, node)
        assert after == (before and wanted), node


@given(scenarios())
def test_a_required_node_has_firm_evidence_and_can_start_the_pod(scenario: Scenario) -> None:
    """Each required node runs a share-manager of the pod, and the patched pod can start on it."""
    found, model = outcome(scenario.pod, scenario), ClusterModel(scenario.objects)
    assert found.hard_pin <= model.firm_nodes(scenario.pod, NAMESPACE)
    for node in found.hard_pin:
        assert model.can_start(found.pod, NAMESPACE, node), node


@given(scenarios())
def test_a_valid_affinity_stays_valid_to_the_api_server(scenario: Scenario) -> None:
    """Weights are 1 to 100, every named node has a valid name, and the number of terms is bounded."""
    found = outcome(scenario.pod, scenario)
    old, new = node_affinity(scenario.pod), node_affinity(found.pod)
    assert_affinity_stays_valid(old, new)
    assert all(map(oracle.is_subdomain, found.hard_pin))
    assert len(terms_of(new)) <= max(MAX_TERMS, len(terms_of(old)))


@given(scenarios(), REFERENCES)
def test_a_view_that_is_read_piece_by_piece_gives_the_same_answer(scenario: Scenario, unread: set[Ref]) -> None:
    """Reading what is missing and asking again ends, decides the same, and reads no more than that needs."""
    assert_read_piece_by_piece(scenario, unread)


@given(scenarios(), REFERENCES)
def test_missing_answers_never_make_a_preference_required(scenario: Scenario, lost: set[Ref]) -> None:
    """Each required node was itself read, still has firm evidence, and can start the pod."""
    model = ClusterModel(scenario.objects)
    view = ViewWithGaps(cluster(*scenario.objects), dict.fromkeys(lost, NoObject.UNAVAILABLE))
    found = outcome(scenario.pod, scenario, view)
    for node in found.hard_pin:
        assert not {ObjectRef(Kind.NODE, NamespacedName("", node)), *_claims_of(found.pod)} & lost
        assert model.can_start(found.pod, NAMESPACE, node)
    assert not found.hard_pin or found.hard_pin >= outcome(scenario.pod, scenario).hard_pin
    # A ShareManager that could not be read may be absent: then its pod alone was the evidence.
    assert found.hard_pin <= model.firm_nodes(scenario.pod, NAMESPACE) or lost & _MANAGERS


def _claims_of(pod: dict[str, Any]) -> set[Ref]:
    sources = [volume.get("persistentVolumeClaim") for volume in pod["spec"].get("volumes") or []]
    return {
        ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName(NAMESPACE, source["claimName"]))
        for source in sources
        if source
    }


ONE_EXPRESSION = (SANE_EXPRESSIONS | WILD_EXPRESSIONS).map(
    lambda one: {"nodeSelectorTerms": [{"matchExpressions": [one]}]}
)
ONE_FIELD = (SANE_FIELDS | WILD_FIELDS).map(lambda one: {"nodeSelectorTerms": [{"matchFields": [one]}]})


@given(ONE_EXPRESSION | ONE_FIELD, LABELS, st.sampled_from(NODES))
def test_a_requirement_is_met_as_in_kube_scheduler(selector: dict[str, Any], labels: dict[str, str], name: str) -> None:
    """One requirement of any form that an API server stores, also one that kube-scheduler can't read."""
    assert matches_node_selector(convert(selector, NodeSelector), labels, name) == oracle.selector_matches(
        selector, labels, name
    )


@given(SELECTORS, LABELS, st.sampled_from(NODES))
def test_a_matches_node_selector_what_the_scheduler_admits(
    selector: dict[str, Any], labels: dict[str, str], name: str
) -> None:
    """Required node affinity and PersistentVolume affinity are evaluated as in kube-scheduler."""
    read_selector = convert(selector, NodeSelector)
    assert matches_node_selector(read_selector, labels, name) == oracle.selector_matches(selector, labels, name)
    assert matches_node_selector(read_selector, labels, None) == oracle.selector_matches(selector, labels, "")


@given(st.lists(TOLERATIONS, max_size=3), TAINTS)
def test_a_taint_is_tolerated_as_by_the_scheduler(tolerations: list[dict[str, Any]], taint: dict[str, Any]) -> None:
    """All operators, absent and empty fields, and numbers in other than canonical form."""
    ours = tolerates(convert(tolerations, list[Toleration]), convert(taint, Taint))
    assert ours == oracle.tolerated(tolerations, taint)


def _multiplied(scenario: Scenario) -> bool:
    found = outcome(scenario.pod, scenario)
    before, after = (len(terms_of(node_affinity(pod))) for pod in (scenario.pod, found.pod))
    return len(found.hard_pin) > 1 and after > before > 1


def _softened_by(reason: str, words: str = "") -> Callable[[Scenario], bool]:
    def softened(scenario: Scenario) -> bool:
        audit = outcome(scenario.pod, scenario).response["auditAnnotations"]
        return audit["decision"] == "preferred" and audit["reason"] == reason and words in audit["because"]

    return softened


@pytest.mark.slow
def test_the_scenarios_reach_the_hard_cases() -> None:
    """Without this test the properties above could hold because no example changes a pod."""
    hard = {
        "several nodes multiply several terms": _multiplied,
        "an infeasible node is only preferred": _softened_by("TaintNotTolerated"),
        "a term with matchFields is not narrowed": _softened_by(
            "RuleNotEvaluated", "a required node affinity term with matchFields"
        ),
    }
    assert_reached(scenarios(), hard, examples=20_000)
