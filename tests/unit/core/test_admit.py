import base64
import json
from typing import Any

import jsonpatch
import pytest
from support.fakes.views import Patchy, cluster
from support.objects.builders import (
    DECISION,
    node,
    on_node,
    persistent_volume,
    persistent_volume_claim,
    review,
    share_manager,
    virt_launcher_pod,
)

from webhook.core.admit import Answer, _proven, admit, unchanged
from webhook.core.api.admission_review import BadReview
from webhook.core.api.meta import NamespacedName
from webhook.core.opt_in import Mode, Policy
from webhook.core.reasons import Reason
from webhook.core.view import ClusterView, Kind, NeedObjects, NoObject, ObjectRef

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


def answer(envelope: Object, view: ClusterView | None = None, mode: Mode = Mode.REQUIRED) -> Answer:
    """The answer to a review."""
    found = admit(json.dumps(envelope).encode(), view or cluster(*CLUSTER), Policy(mode=mode))
    assert isinstance(found, Answer)
    return found


def response(found: Answer) -> Object:
    """The response that is sent."""
    sent: Object = json.loads(found.body)["response"]
    return sent


def test_a_launcher_pod_is_pinned_to_its_share_managers_node() -> None:
    """The mission, bytes to bytes: required and preferred, the annotation, and what the audit log is told."""
    found = answer(review(POD, uid="u-1"))
    sent = response(found)
    patch = json.loads(base64.b64decode(sent["patch"]))
    assert patch == list(found.operations)
    pod = jsonpatch.apply_patch(POD, patch)
    assert pod["spec"]["affinity"]["nodeAffinity"] == {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [on_node("n1")]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": on_node("n1")}],
    }
    assert pod["metadata"]["annotations"][DECISION].startswith("required on n1: ShareManagerOwner")
    assert (sent["uid"], sent["allowed"], sent["patchType"]) == ("u-1", True, "JSONPatch")
    told = sent["auditAnnotations"]
    assert (told["decision"], told["reason"], told["node"]) == ("required", "ShareManagerOwner", "n1")
    assert "warnings" not in sent


@pytest.mark.parametrize(
    ("envelope", "reason"),
    [
        pytest.param(review(POD, operation="UPDATE"), Reason.NOT_A_CREATE, id="an update"),
        pytest.param(review(None, operation="DELETE"), Reason.NOT_A_CREATE, id="a deletion, which has no object"),
        pytest.param(review(POD, subResource="binding"), Reason.SUBRESOURCE, id="a subresource"),
        pytest.param(
            review({"data": 1}, kind={"group": "", "version": "v1", "kind": "Secret"}), Reason.NOT_A_POD, id="no pod"
        ),
    ],
)
def test_what_is_no_pods_creation_is_admitted_unread(envelope: Object, reason: Reason) -> None:
    """Whatever the object is: it is not looked at."""
    found = answer(envelope)
    assert found.decision.why.reason is reason
    assert found.pod is None
    assert response(found)["allowed"] is True
    assert "patch" not in response(found)


def test_a_decision_to_leave_the_pod_is_annotated_and_told() -> None:
    """One that opted in and has nothing to follow."""
    found = answer(review(virt_launcher_pod()))
    told = response(found)["auditAnnotations"]
    assert (told["decision"], told["reason"]) == ("unchanged", "NoClaims")
    assert "node" not in told
    assert [operation["path"] for operation in found.operations] == [
        f"/metadata/annotations/{DECISION.replace('/', '~1')}"
    ]


def test_a_value_that_is_not_understood_comes_back_as_a_warning() -> None:
    """It is what kubectl shows it to whoever creates the pod; the pod stays as it is."""
    sent = response(answer(review(virt_launcher_pod(opt_in="yes"))))
    assert len(sent["warnings"]) == 1
    assert "'yes'" in sent["warnings"][0]
    assert "patch" not in sent


@pytest.mark.parametrize(
    ("request_namespace", "pod_namespace", "reason"),
    [
        pytest.param("vms", None, Reason.SHARE_MANAGER_OWNER, id="the request's"),
        pytest.param("vms", "other", Reason.SHARE_MANAGER_OWNER, id="the request's counts more than the pod's"),
        pytest.param(None, "vms", Reason.SHARE_MANAGER_OWNER, id="the pod's where the request has none"),
        pytest.param("other", None, Reason.CLAIM_NOT_FOUND, id="another"),
        pytest.param(None, None, Reason.CLAIM_NOT_FOUND, id="none at all"),
    ],
)
def test_claims_are_looked_up_in_the_namespace_of_the_request(
    request_namespace: str | None, pod_namespace: str | None, reason: Reason
) -> None:
    """metadata.namespace may be empty at CREATE."""
    pod = virt_launcher_pod(claims=["disk"], namespace=pod_namespace)
    assert answer(review(pod, namespace=request_namespace)).decision.why.reason is reason


def test_what_the_view_has_not_read_is_needed() -> None:
    """The caller reads it and asks again."""
    ref = ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "disk"))
    view = Patchy(cluster(*CLUSTER), {ref: NoObject.NOT_CACHED})
    assert admit(json.dumps(review(POD)).encode(), view, Policy()) == NeedObjects((ref,))


def test_a_pod_that_cannot_be_read_is_a_bad_review() -> None:
    """It goes to failurePolicy then."""
    with pytest.raises(BadReview):
        answer(review({"metadata": {}}))
    with pytest.raises(BadReview):
        answer(review(None))


def test_operations_that_do_not_apply_are_not_sent() -> None:
    """The pod is admitted as it is, and the reason names the operation: the API server would refuse the pod."""
    found = answer(review(POD))
    assert found.pod is not None
    broken = [{"op": "add", "path": "/spec/affinity/podAffinity/x", "value": 1}]
    sent = response(_proven(found.request, found.pod, found.decision, [], broken))
    assert (sent["allowed"], sent["auditAnnotations"]["reason"]) == (True, "PatchNotProven")
    assert "add /spec/affinity/podAffinity/x" in sent["auditAnnotations"]["because"]
    assert sent.keys().isdisjoint({"patch", "patchType"})


def test_a_request_can_be_answered_without_a_decision() -> None:
    """What the serving side does when something inside fails: the pod starts as it is."""
    request = answer(review(POD)).request
    sent = response(unchanged(request, Reason.INTERNAL_ERROR.why(problem="KeyError")))
    assert (sent["allowed"], sent["auditAnnotations"]["reason"]) == (True, "InternalError")
    assert "patch" not in sent


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
    """Wherever the recursion limit strikes there is an answer or a BadReview, and no other exception."""
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


def test_a_pod_whose_annotations_are_full_is_admitted_as_it_is() -> None:
    """The API server would refuse it with one more."""
    pod = virt_launcher_pod(claims=["disk"], annotations={"full": "x" * (256 * 1024 - 256)})
    answer = admit(json.dumps(review(pod)).encode(), cluster(*CLUSTER), Policy())
    assert isinstance(answer, Answer)
    assert (answer.operations, answer.decision.why.reason) == ([], Reason.ANNOTATIONS_FULL)
