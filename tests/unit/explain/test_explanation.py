"""The explanation of a pod: what core says of it, as scripts read it."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import jsonpatch
import pytest
from support.drivers.explaining import a_pod, explained, the_cluster

from webhook.core import refs
from webhook.core.opt_in import Policy
from webhook.explain.explanation import Subject
from webhook.explain.pod import Context, explain_pod
from webhook.explain.subjects import PodRequest
from webhook.invocation import Invocation
from webhook.kube.live_cluster import LiveCluster
from webhook.objects.documents import BadDocument
from webhook.objects.objects import ClusterBundle
from webhook.objects.unread import WebhookSettings


def test_the_patch_leads_from_before_to_after() -> None:
    """The patch is the one of the webhook: applied to the pod, it gives the affinity and the annotation."""
    pod = a_pod("root")
    found = explained(pod)
    patched = jsonpatch.JsonPatch(found["patch"]).apply(pod)
    assert "affinity" in patched["spec"]
    assert found["annotation"] == patched["metadata"]["annotations"]["kubevirt-scheduler/decision"]
    assert found["annotation"].startswith("required on node-b")


def test_a_deeply_nested_object_is_bad_input() -> None:
    """An object that is nested too deeply to be encoded is an error with a sentence, as in the webhook."""
    value: Any = "x"
    for _ in range(200_000):
        value = [value]
    subject = Subject(kind="Pod", namespace="vms", name="a", source="stdin:1")
    request = PodRequest(subject=subject, review={"request": value})
    with pytest.raises(BadDocument, match=r"^stdin:1: Pod: nested too deeply$"):
        explain_pod(request, Context(the_cluster(), "vms", WebhookSettings(policy=Policy()), Invocation()))


def test_a_pod_that_carries_the_decision_shows_no_change() -> None:
    """A second admission has the same decision, an empty patch, and no change of the affinity."""
    pod = a_pod("root")
    patched = jsonpatch.JsonPatch(explained(pod)["patch"]).apply(pod)
    found = explained(patched)
    assert (found["decision"], found["patch"]) == ("required", [])


def test_a_core_that_needs_objects_without_end_is_an_error() -> None:
    """A core that always needs more objects would be a fault of the program, and not an endless loop."""
    runner = Mock()
    runner.run = lambda reads: reads.close()  # it reads nothing
    endless = LiveCluster(runner, Mock(), "a cluster", longhorn_namespace="longhorn-system")
    at = "2026-01-01T00:00:00Z"
    endless.objects.bundle = ClusterBundle(cluster="", at=at, namespace="", longhorn_namespace="", lists=[])
    with pytest.raises(AssertionError, match="please report this"):
        endless.ask(lambda view: view.get(refs.node("node-a")))
