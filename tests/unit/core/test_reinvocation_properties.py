"""The API server calls the webhook again if a later webhook changed the pod (reinvocationPolicy IfNeeded)."""

from __future__ import annotations

from hypothesis import given
from support.models import oracle
from support.models.outcomes import outcome, places
from support.models.pod_changes import CHANGES, NAME_CHANGES, Change, changed, plain
from support.strategies import steering_scenarios
from support.strategies.strategies import Scenario, scenarios


def is_decided_from_the_start(scenario: Scenario, changes: list[Change]) -> None:
    """Whether a patched pod gets the same result as a pod that the webhook has never seen."""
    first = outcome(scenario.pod, scenario)
    again = outcome(changed(first.pod, changes), scenario)
    fresh = outcome(changed(scenario.pod, changes), scenario)
    assert plain(again.pod) == plain(fresh.pod)
    assert again.response["auditAnnotations"] == fresh.response["auditAnnotations"]
    assert outcome(again.pod, scenario).patch == []


def requires_nothing_more_and_is_not_wider(scenario: Scenario, changes: list[Change]) -> None:
    """Whether a patched pod gets no requirement that a new pod would not get, and no node beyond those of both."""
    given_pod = changed(outcome(scenario.pod, scenario).pod, changes)
    again = outcome(given_pod, scenario)
    unseen = changed(scenario.pod, changes)
    fresh = outcome(unseen, scenario)
    assert not again.hard_pin or fresh.hard_pin
    for node in places(scenario):
        allowed = any(oracle.affinity_admits(pod, node) for pod in (given_pod, unseen))
        assert allowed or not oracle.affinity_admits(again.pod, node)
    assert outcome(again.pod, scenario).patch == []


@given(scenarios(), CHANGES)
def test_a_virt_launcher_pod_is_decided_from_the_start(scenario: Scenario, changes: list[Change]) -> None:
    """Other webhooks changed the pod meanwhile. Its pin, its preference or its reason is what is right now."""
    is_decided_from_the_start(scenario, changes)


@given(steering_scenarios.scenarios(), CHANGES)
def test_a_share_manager_pod_is_decided_from_the_start(scenario: Scenario, changes: list[Change]) -> None:
    """As for a virt-launcher pod: Longhorn never recreates a Pending share-manager pod."""
    is_decided_from_the_start(scenario, changes)


@given(scenarios(), NAME_CHANGES)
def test_a_virt_launcher_pod_with_new_terms_by_name_gets_no_requirement_more(
    scenario: Scenario, changes: list[Change]
) -> None:
    """Another webhook's term can equal this webhook's. Then both stay, and nothing is required."""
    requires_nothing_more_and_is_not_wider(scenario, changes)


@given(steering_scenarios.scenarios(), NAME_CHANGES)
def test_a_share_manager_pod_with_new_terms_by_name_gets_no_requirement_more(
    scenario: Scenario, changes: list[Change]
) -> None:
    """As for a virt-launcher pod."""
    requires_nothing_more_and_is_not_wider(scenario, changes)
