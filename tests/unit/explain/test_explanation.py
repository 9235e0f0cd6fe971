"""Explanation: the fields for one object, as scripts read them."""

from __future__ import annotations

from typing import Any

import jsonpatch
import pytest
from support.drivers.explaining import a_pod, as_yaml, explained, run, the_cluster

from webhook.core.opt_in import Policy
from webhook.explain import explanation
from webhook.explain.evaluate import explain
from webhook.explain.explain_request import ExplainRequest
from webhook.objects.documents import BadDocument


def test_the_patch_leads_from_before_to_after() -> None:
    """The patch is the one of the webhook: applied to the pod, it gives the affinity and the annotation."""
    pod = a_pod("root")
    found = explained(pod)
    patched = jsonpatch.JsonPatch(found["patch"]).apply(pod)
    assert found["affinity"] == {"before": None, "after": patched["spec"]["affinity"]}
    assert found["annotation"] == patched["metadata"]["annotations"]["kubevirt-scheduler/decision"]
    assert found["annotation"].startswith("required on node-b")


def test_a_deeply_nested_object_is_bad_input() -> None:
    """An object that is nested too deeply to be encoded is an error with a sentence, as in the webhook."""
    value: Any = "x"
    for _ in range(200_000):
        value = [value]
    subject = explanation.Subject(kind="Pod", namespace="vms", name="a", source="stdin:1")
    question = ExplainRequest(subject=subject, review={"request": value})
    with pytest.raises(BadDocument, match=r"^stdin:1: Pod: nested too deeply$"):
        explain(question, the_cluster(), Policy())


def test_a_pod_that_carries_the_decision_shows_no_change() -> None:
    """A second admission has the same decision, an empty patch, and no change of the affinity."""
    pod = a_pod("root")
    patched = jsonpatch.JsonPatch(explained(pod)["patch"]).apply(pod)
    found = explained(patched)
    assert (found["decision"], found["patch"]) == ("required", [])
    assert found["affinity"]["before"] == found["affinity"]["after"]
    assert run(as_yaml(patched)).out.endswith("Affinity:\n  unchanged\n")
