"""What holds for every share-manager pod on every cluster. test_properties has the same for a VM's pod."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.views import ViewWithGaps, cluster
from support.models import oracle
from support.models.consumer_model import Model
from support.models.outcomes import (
    PREFERRED,
    REQUIRED,
    Outcome,
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
    without_webhook_parts,
)
from support.strategies.affinity_shapes import NODES
from support.strategies.steering_scenarios import MANY, VOLUME, scenarios
from support.strategies.strategies import NAMESPACE, Scenario

from webhook.core import refs
from webhook.core.api.meta import NamespacedName
from webhook.core.view import Kind, NoObject, ObjectRef, Ref

LEAST_OF_A_LIST = 16
ROUNDS = 4  # the volume, its tickets, the pods there, the nodes: where no cache knows anything
_SOME = (*NODES, "ghost", *MANY[:2])
_REFERENCES = [
    ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", VOLUME)),
    ObjectRef(Kind.VOLUME_ATTACHMENT, NamespacedName("", VOLUME)),
    *(refs.virt_launchers_on(space, node) for space in (NAMESPACE, "other") for node in _SOME),
    *(ObjectRef(kind, NamespacedName("", name)) for kind in (Kind.NODE, Kind.LONGHORN_NODE) for name in _SOME),
]
_CACHES = {
    ObjectRef(Kind.VIRT_LAUNCHER_POD, NamespacedName(NAMESPACE, f"c{i}")): NoObject.UNAVAILABLE for i in range(2)
}
REFERENCES = st.just(set(_REFERENCES)) | st.sets(st.sampled_from(_REFERENCES))
"""All, or some, of the objects that core could ask for in a scenario."""


def preferred_nodes(found: Outcome) -> set[str]:
    """Return the nodes that the answer prefers."""
    return set(filter(None, found.response["auditAnnotations"].get("node", "").split(",")))


def has_shortlist(scenario: Scenario, found: Outcome) -> bool:
    """Whether the answer changes the required terms."""
    return node_affinity(found.pod).get(REQUIRED) != node_affinity(scenario.pod).get(REQUIRED)


@given(scenarios())
def test_a_share_manager_pod_is_always_admitted_with_a_patch_that_applies(scenario: Scenario) -> None:
    """The response is allowed, has patch and patchType together or neither, and requires no single node."""
    found = outcome(scenario.pod, scenario)
    assert_admitted(found)
    assert found.response["auditAnnotations"]["decision"] in ("preferred", "unchanged")


@given(scenarios())
def test_only_preferences_the_short_list_and_annotations_change(scenario: Scenario) -> None:
    """Longhorn's own fields stay, unknown ones included. Preferences are appended, terms are only added to."""
    before, after = scenario.pod, outcome(scenario.pod, scenario).pod
    rests = [without_webhook_parts(pod) for pod in (before, after)]
    pod_affinities = [rest["affinity"].pop("podAffinity", None) or {} for rest in rests]
    assert rests[1] == rests[0]
    assert {**pod_affinities[1], PREFERRED: 0} == {**pod_affinities[0], PREFERRED: 0}
    assert_appended(*pod_affinities)
    assert_appended(node_affinity(before), node_affinity(after))
    assert_terms_kept(node_affinity(before), node_affinity(after))


@given(scenarios())
def test_a_second_admission_of_a_share_manager_pod_changes_nothing(scenario: Scenario) -> None:
    """A pod that was patched gets no operation, and the same decision."""
    assert_second_admission_changes_nothing(scenario)


@given(scenarios())
def test_the_new_affinity_admits_only_nodes_that_the_old_one_did(scenario: Scenario) -> None:
    """With a short list fewer nodes, but all preferred ones and enough others. Without it the same nodes."""
    found = outcome(scenario.pod, scenario)
    admitted = set()
    for node in places(scenario):
        before, after = oracle.affinity_admits(scenario.pod, node), oracle.affinity_admits(found.pod, node)
        assert after <= before, node
        assert after or not before or has_shortlist(scenario, found), node
        if after:
            admitted.add(oracle.name_of(node))
    if has_shortlist(scenario, found):
        assert preferred_nodes(found) <= admitted
        assert len(admitted) >= LEAST_OF_A_LIST
        assert all(Model(scenario).takes(name) for name in admitted)


@given(scenarios())
def test_a_preferred_node_is_one_of_an_opted_in_vm_and_can_take_the_pod(scenario: Scenario) -> None:
    """A VM's pod or a ticket names the node. By the scheduler's and Longhorn's rules the pod can run there."""
    model = Model(scenario)
    nodes = preferred_nodes(outcome(scenario.pod, scenario))
    assert nodes <= model.homes
    assert all(map(model.takes, nodes))


@given(scenarios())
def test_a_volume_that_no_opted_in_vm_uses_is_left_alone(scenario: Scenario) -> None:
    """Its share-manager pod gets no patch, except that a decision which the webhook did not write is removed.

    A pod of another volume than that of its ShareManager says that.
    """
    found = outcome(scenario.pod, scenario)
    removed = {"op": "remove", "path": "/metadata/annotations/kubevirt-scheduler~1decision"}
    no_owner = found.response["auditAnnotations"]["reason"] == "NoOwner"
    assert Model(scenario).asking or found.patch in ([], [removed]) or no_owner


@given(scenarios())
def test_the_node_of_the_only_vm_is_preferred_if_the_pod_can_run_there(scenario: Scenario) -> None:
    """One VM that opts in, on a node that can run the share-manager pod."""
    model, found = Model(scenario), outcome(scenario.pod, scenario)
    labels, spec = scenario.pod["metadata"].get("labels") or {}, scenario.pod["spec"]
    is_ours = labels.get("longhorn.io/share-manager") == VOLUME and not spec.get("nodeName")
    if not is_ours or len(model.vms) != 1 or model.asking != model.vms:
        return
    home = model.vms[0]["spec"].get("nodeName")
    if home and model.takes(home):
        assert preferred_nodes(found) == {home}


@given(scenarios())
def test_what_is_added_to_a_share_manager_pod_is_valid(scenario: Scenario) -> None:
    """A valid affinity stays valid, weights are 1 to 100, and every named node has a valid name."""
    found = outcome(scenario.pod, scenario)
    assert_affinity_stays_valid(node_affinity(scenario.pod), node_affinity(found.pod))


@given(scenarios(), REFERENCES, st.booleans())
def test_a_share_manager_pod_is_decided_alike_piece_by_piece(
    scenario: Scenario,
    unread: set[Ref],
    caches_know: bool,  # noqa: FBT001 - drawn
) -> None:
    """Reading what is missing and asking again ends."""
    assert assert_read_piece_by_piece(scenario, unread, {} if caches_know else _CACHES) <= ROUNDS


@given(scenarios(), REFERENCES, st.booleans())
def test_a_missing_answer_never_narrows_to_unread_nodes(
    scenario: Scenario,
    lost: set[Ref],
    caches_know: bool,  # noqa: FBT001 - drawn
) -> None:
    """A node is still preferred on evidence, and a short list has only nodes that were read."""
    caches = {} if caches_know else _CACHES
    view = ViewWithGaps(cluster(*scenario.objects), {**dict.fromkeys(lost, NoObject.UNAVAILABLE), **caches})
    found = outcome(scenario.pod, scenario, view)
    assert preferred_nodes(found) <= Model(scenario).homes
    assert all(map(oracle.is_subdomain, preferred_nodes(found)))
    if has_shortlist(scenario, found):
        for node in places(scenario):
            name = oracle.name_of(node)
            if oracle.affinity_admits(found.pod, node):
                assert ObjectRef(Kind.NODE, NamespacedName("", name)) not in lost


def _listed(scenario: Scenario) -> bool:
    return has_shortlist(scenario, outcome(scenario.pod, scenario))


def _by_ticket(scenario: Scenario) -> bool:
    return outcome(scenario.pod, scenario).response["auditAnnotations"]["reason"] == "AttachmentTicket"


def _by_pods(scenario: Scenario) -> bool:
    return bool((outcome(scenario.pod, scenario).pod["spec"].get("affinity") or {}).get("podAffinity"))


def _several(scenario: Scenario) -> bool:
    return len(preferred_nodes(outcome(scenario.pod, scenario))) > 1


@pytest.mark.slow
def test_the_share_manager_scenarios_reach_the_hard_cases() -> None:
    """Without this test the properties above could hold because no example changes a pod."""
    hard = {
        "a short list": _listed,
        "a VM's node by its ticket": _by_ticket,
        "a pod that is drawn to pods as well": _by_pods,
        "several nodes": _several,
    }
    assert_reached(scenarios(), hard, examples=5_000)
