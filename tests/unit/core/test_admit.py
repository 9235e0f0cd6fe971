import json
from typing import Any

import pytest
from support.fakes.views import MISSING, ViewWithGaps, cluster
from support.objects.builders import (
    node,
    persistent_volume,
    persistent_volume_claim,
    review,
    share_manager,
    virt_launcher_pod,
)

from webhook.core import refs
from webhook.core.admit import Answer, Entry, PodCreation, admit, proven_answer, read
from webhook.core.api.admission_review import BadReview
from webhook.core.api.meta import NamespacedName
from webhook.core.opt_in import Policy
from webhook.core.reasons import Reason
from webhook.core.view import ClusterView

Object = dict[str, Any]
CLUSTER = [
    persistent_volume_claim("disk", volume_name="pv"),
    persistent_volume("pv", claim="disk", handle="h"),
    share_manager("h", state="running", ownerID="n1"),
    node("n1"),
]
SECOND = [
    persistent_volume_claim("b", volume_name="pv-b"),
    persistent_volume("pv-b", claim="b"),
    share_manager("pv-b", state="running", ownerID="n2"),
    node("n2"),
]
POD = virt_launcher_pod(claims=["disk"])


def answer(envelope: Object, view: ClusterView | None = None) -> Answer:
    """Return the answer to a review."""
    found = admit(json.dumps(envelope).encode(), view or cluster(*CLUSTER), Policy())
    assert isinstance(found, Answer)
    return found


def response(found: Answer) -> Object:
    """Return the response that is sent."""
    sent: Object = json.loads(found.body)["response"]
    return sent


OF_NO_EFFECT = {
    "a target": virt_launcher_pod(labels={"kubevirt.io/migrationJobUID": "u"}),
    "of no VM": virt_launcher_pod(labels={"kubevirt.io": "virt-api"}),
}


@pytest.mark.parametrize("pod", OF_NO_EFFECT.values(), ids=OF_NO_EFFECT)
def test_no_vm_is_read_for_a_pod_that_the_entry_is_not_for(pod: Object) -> None:
    """There is no Event, and no pod is assumed."""
    view = ViewWithGaps(cluster(*CLUSTER), {refs.virtual_machine_instance(NamespacedName("vms", "db01")): MISSING})
    assert answer(review(pod), view).of_owner is None
    assert not view.missing


def test_operations_that_do_not_apply_are_not_sent() -> None:
    """The API server would reject the pod for them. The pod stays unchanged, and the reason says so."""
    found = answer(review(POD))
    creation = read(json.dumps(review(POD)).encode(), Entry.VIRT_LAUNCHER)
    assert isinstance(creation, PodCreation)
    broken = [{"op": "remove", "path": "/spec/affinity/podAffinity/x"}]
    sent = response(proven_answer(creation, found.decision, creation.places, broken))
    assert (sent["allowed"], sent["auditAnnotations"]["reason"]) == (True, "PatchDoesNotApply")
    assert sent.keys().isdisjoint({"patch", "patchType"})


@pytest.mark.parametrize("depth", [10, 300, 400, 500, 700, 900, 960, 980, 1000, 3000, 100_000])
@pytest.mark.parametrize(
    "place",
    [
        pytest.param(
            '{"nodeAffinity":{"%s":{"nodeSelectorTerms":[{"matchFields":[],"matchExpressions":'
            '[{"key":"a","operator":"DoesNotExist"}],"x":@}]}}}',
            id="an unknown field of a term",
        ),
        pytest.param('{"podAffinity":{"%s":@}}', id="the terms of another affinity"),
        pytest.param("@", id="the affinity itself"),
    ],
)
def test_deep_nesting_is_answered_or_refused(place: str, depth: int) -> None:
    """At any depth there is an answer or a BadReview, no other exception, and no fault that a user is to report."""
    affinity = place.replace("%s", "requiredDuringSchedulingIgnoredDuringExecution")
    text = json.dumps(review(virt_launcher_pod(claims=["disk", "b"], affinity="@")))
    body = text.replace('"@"', affinity.replace("@", "[" * depth + "]" * depth)).encode()
    try:
        found = admit(body, cluster(*CLUSTER, *SECOND), Policy())
    except BadReview:
        assert depth > 10 or place == "@" or "podAffinity" in place  # whose terms are read too: lists are none
    else:
        assert isinstance(found, Answer)
        assert response(found)["allowed"] is True
        assert not found.decision.why.reason.columns.fault


def test_a_field_that_stands_twice_in_a_large_pod_is_read_as_it_stands_last() -> None:
    """The decoder of a small pod takes the last one, too."""
    twice = '{"containers":[],"affinity":"' + "x" * 70_000 + '","affinity":null}'
    pod = '{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"a-"},"spec":' + twice + "}"
    request = '{"uid":"u","kind":{"version":"v1","kind":"Pod"},"operation":"CREATE","object":' + pod + "}"
    body = '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":' + request + "}"
    found = read(body.encode(), Entry.VIRT_LAUNCHER)
    assert not isinstance(found, Answer)
    assert found.pod.spec.affinity is None


def test_a_pod_whose_annotations_are_full_is_admitted_unchanged() -> None:
    """The API server would reject the pod with one more annotation."""
    pod = virt_launcher_pod(claims=["disk"], annotations={"full": "x" * (256 * 1024 - 256)})
    answer = admit(json.dumps(review(pod)).encode(), cluster(*CLUSTER), Policy())
    assert isinstance(answer, Answer)
    assert (answer.operations, answer.decision.why.reason) == ([], Reason.ANNOTATIONS_FULL)
