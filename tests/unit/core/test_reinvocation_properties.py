"""The API server asks again whenever a webhook after ours changed the pod (reinvocationPolicy IfNeeded)."""

from __future__ import annotations

from hypothesis import given
from support.models.outcomes import outcome
from support.models.pod_changes import CHANGES, Change, changed, plain
from support.strategies import steering_scenarios
from support.strategies.strategies import Scenario, scenarios


def judged_afresh(scenario: Scenario, changes: list[Change]) -> None:
    """What we make of a pod that we saw before is what we make of one that we never saw."""
    first = outcome(scenario.pod, scenario)
    again = outcome(changed(first.pod, changes), scenario)
    fresh = outcome(changed(scenario.pod, changes), scenario)
    assert plain(again.pod) == plain(fresh.pod)
    assert again.response["auditAnnotations"] == fresh.response["auditAnnotations"]
    assert outcome(again.pod, scenario).patch == []


@given(scenarios(), CHANGES)
def test_a_virt_launcher_pod_is_judged_afresh(scenario: Scenario, changes: list[Change]) -> None:
    """Whatever others changed meanwhile: the pin, the preference or the refusal is the one that is right now."""
    judged_afresh(scenario, changes)


@given(steering_scenarios.scenarios(), CHANGES)
def test_a_share_manager_pod_is_judged_afresh(scenario: Scenario, changes: list[Change]) -> None:
    """As a virt-launcher pod: Longhorn never makes a Pending one anew."""
    judged_afresh(scenario, changes)
