"""Explanation: the fields for one object, as scripts read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jsonpatch
import pytest
from support.drivers.explaining import a_pod, as_yaml, explained, run, the_cluster

from webhook.core.api.meta import NamespacedName
from webhook.core.opt_in import Policy
from webhook.core.view import Kind, NeedObjects, ObjectRef, Ref
from webhook.explain import explanation
from webhook.explain.evaluate import explain
from webhook.explain.explain_request import ExplainRequest
from webhook.explain.sources import cluster_reader
from webhook.explain.sources.manifests_reader import ManifestsReader
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


def test_manifests_leave_nothing_unread() -> None:
    """Core needs no further objects of manifests; if it did, an error would name the fault of the program."""
    needs = NeedObjects((ObjectRef(Kind.NODE, NamespacedName("", "node-a")),))
    with pytest.raises(AssertionError, match="core asked to read Node node-a, although all manifests were read"):
        cluster_reader.answer_when_read(the_cluster(), lambda _: needs)


class _Endless(ManifestsReader):
    """A cluster that reads nothing."""

    def read(self, refs: Sequence[Ref]) -> None:
        """Read nothing."""


def test_a_core_that_needs_objects_without_end_is_an_error() -> None:
    """A core that always needs more objects would be a fault of the program, and not an endless loop."""
    needs = NeedObjects((ObjectRef(Kind.NODE, NamespacedName("", "node-a")),))
    with pytest.raises(AssertionError, match="core still needs objects after 16 rounds of reads"):
        cluster_reader.answer_when_read(_Endless(the_cluster().view, "nowhere"), lambda _: needs)
