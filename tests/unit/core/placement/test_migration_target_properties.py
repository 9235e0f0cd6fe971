"""What holds for every pod and cluster by the entry of migration targets."""

from __future__ import annotations

import dataclasses
from typing import Final

from hypothesis import assume, event, given
from hypothesis import strategies as st
from support.fakes.views import ViewWithGaps, cluster
from support.models.outcomes import PREFERRED, ask, node_affinity, outcome, without_webhook_parts
from support.strategies.affinity_shapes import NODES
from support.strategies.migration_shapes import migrations
from support.strategies.strategies import NAMESPACE, Scenario, scenarios

from webhook.core import refs
from webhook.core.admit import Answer, Entry
from webhook.core.api.meta import NamespacedName
from webhook.core.decision import Leave
from webhook.core.view import Kind, NoObject, ObjectRef, Ref

_JOB: Final = "kubevirt.io/migrationJobUID"


@given(migrations())
def test_preferred_terms_are_added_and_nothing_else(scenario: Scenario) -> None:
    """The pod may run wherever it could before: required terms, node selector and all other fields stay."""
    before, found = scenario.pod, outcome(scenario.pod, scenario)
    event(found.response["auditAnnotations"]["reason"])
    old, new = node_affinity(before), node_affinity(found.pod)
    assert without_webhook_parts(found.pod) == without_webhook_parts(before)
    assert {**new, PREFERRED: None} == {**old, PREFERRED: None}
    wishes = old.get(PREFERRED) or []
    assert (new.get(PREFERRED) or [])[: len(wishes)] == wishes
    assert found.response["auditAnnotations"]["decision"] in ("preferred", "unchanged")


@given(migrations())
def test_no_pod_but_a_migration_target_that_nobody_sent_somewhere_gets_a_preference(scenario: Scenario) -> None:
    """Neither its migration nor the one that placed the VM before names a node, and the source is never preferred."""
    answer = ask(scenario.pod, scenario, cluster(*scenario.objects))
    assert isinstance(answer, Answer)
    if isinstance(answer.decision, Leave):
        return
    labels = scenario.pod["metadata"]["labels"]
    assert labels[_JOB] == "job"
    assert labels["kubevirt.io"] == "virt-launcher"
    assert "kubernetes.io/hostname" not in (scenario.pod["spec"].get("nodeSelector") or {})
    assert labels["kubevirt.io/nodeName"] not in answer.decision.nodes
    [running] = [each for each in scenario.objects if each["metadata"]["name"] == "virt-launcher-running"]
    assert running["spec"].get("nodeSelector") is None or running["spec"]["nodeSelector"] == (
        scenario.pod["spec"].get("nodeSelector")
    )


@given(scenarios())
def test_a_start_pod_is_never_touched(scenario: Scenario) -> None:
    """By this entry; only the label of a migration target opens it."""
    assume(_JOB not in (scenario.pod["metadata"].get("labels") or {}))
    found = outcome(scenario.pod, dataclasses.replace(scenario, entry=Entry.MIGRATION_TARGET))
    assert found.patch == []


@given(migrations())
def test_a_migration_target_is_never_touched_by_the_entry_of_start_pods(scenario: Scenario) -> None:
    """The component adds an entry. It does not change what the others do."""
    if _JOB in scenario.pod["metadata"]["labels"]:
        assert outcome(scenario.pod, dataclasses.replace(scenario, entry=Entry.VIRT_LAUNCHER)).patch == []


@given(migrations())
def test_a_second_admission_changes_nothing(scenario: Scenario) -> None:
    """A pod that was patched gets no operation, and the same decision."""
    first = outcome(scenario.pod, scenario)
    second = outcome(first.pod, scenario)
    assert second.patch == []
    assert second.response["auditAnnotations"] == first.response["auditAnnotations"]


_PODS: Final = [ObjectRef(Kind.VIRT_LAUNCHER_POD, NamespacedName(NAMESPACE, f"c{index}")) for index in range(4)]
_ON: Final = [refs.virt_launchers_on(NAMESPACE, name) for name in (*NODES, "ghost")]


@given(migrations(), st.sets(st.sampled_from(_PODS)))
def test_it_does_not_matter_whether_a_cache_or_the_api_server_has_the_source_pod(
    scenario: Scenario, uncached: set[Ref]
) -> None:
    """The answer is the same, byte for byte."""
    whole = cluster(*scenario.objects)
    expected = ask(scenario.pod, scenario, whole)
    found = ask(scenario.pod, scenario, ViewWithGaps(whole, dict.fromkeys(uncached, NoObject.UNAVAILABLE)))
    assert isinstance(expected, Answer)
    assert isinstance(found, Answer)
    assert found.body == expected.body


@given(migrations())
def test_without_the_source_pod_no_preference_is_written(scenario: Scenario) -> None:
    """If neither a cache nor the API server has it, nobody knows whether somebody chose the node."""
    gaps: dict[Ref, NoObject] = dict.fromkeys([*_PODS, *_ON], NoObject.UNAVAILABLE)
    answer = ask(scenario.pod, scenario, ViewWithGaps(cluster(*scenario.objects), gaps))
    assert isinstance(answer, Answer)
    assert isinstance(answer.decision, Leave)
