import base64
import json
from typing import Any

import pytest
from support.objects.builders import review, virt_launcher_pod

from webhook.core.api.admission_review import BadReview, decode, encode, uid_of

POD = virt_launcher_pod()


def body(**changes: Any) -> bytes:
    """Return a review with changed fields of its envelope."""
    return json.dumps({**review(POD), **changes}).encode()


def test_a_review_is_decoded() -> None:
    """The fields that core reads, and the pod in the object. Unknown fields are ignored."""
    request = decode(json.dumps(review(POD, uid="u", subResource="status", dryRun=True, unknown={"x": [1]})).encode())
    assert (request.uid, request.operation, request.namespace) == ("u", "CREATE", "vms")
    assert (request.sub_resource, request.dry_run) == ("status", True)
    assert request.pod()[0].metadata.generate_name == "virt-launcher-db01-"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(b"", ["truncated"], id="nothing"),
        pytest.param(b"{", ["truncated"], id="half an object"),
        pytest.param(b"nonsense", ["malformed"], id="no JSON"),
        pytest.param(b"{}\n{}", ["malformed"], id="two reviews"),
        pytest.param(b"[]", ["expected `object`, got `array`"], id="a list"),
        pytest.param(b"null", ["null"], id="null"),
        pytest.param(b'{"kind":"\xff"}', ["UTF-8"], id="bytes that are no UTF-8"),
        pytest.param(b'{"kind":"\\udc00"}', ["surrogate"], id="half a surrogate pair"),
        pytest.param(b"[" * 100_000, ["got `array`"], id="brackets without end"),
        pytest.param(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", ["nested too deeply"], id="an unknown abyss"),
        pytest.param(body(kind="Review"), ["kind", "'Review'", "AdmissionReview"], id="another kind"),
        pytest.param(body(kind=None), ["kind", "nothing"], id="no kind"),
        pytest.param(body(apiVersion="admission.k8s.io/v1beta1"), ["v1beta1", "admissionReviewVersions"], id="v1beta1"),
        pytest.param(body(apiVersion=None), ["apiVersion", "nothing"], id="no version"),
        pytest.param(body(kind="x" * 100_000), ["kind"], id="a long kind is cut"),
        pytest.param(body(request=None), ["request", "nothing"], id="no request"),
        pytest.param(body(request={}), ["request", "uid"], id="an empty request"),
        pytest.param(body(request={"uid": ""}), ["request.uid", "nothing"], id="an empty uid"),
        pytest.param(body(request={"uid": 1}), ["request.uid", "`str`", "`int`"], id="a number for a uid"),
        pytest.param(body(request={"uid": "u", "kind": 1}), ["request.kind", "`int`"], id="a number for a kind"),
        pytest.param(
            json.dumps(review({**POD, "spec": 1})).encode(),
            ["request.object.spec", "`object`", "`int`"],
            id="a bad spec",
        ),
        pytest.param(
            json.dumps(review({**POD, "spec": {"affinity": {"nodeAffinity": []}}})).encode(),
            ["request.object.spec.affinity.nodeAffinity", "`array`"],
            id="a list for an affinity",
        ),
        pytest.param(
            json.dumps(review({"metadata": {}})).encode(), ["request.object", "spec"], id="a pod without a spec"
        ),
        pytest.param(
            json.dumps(review({**POD, "metadata": {"labels": {"a": 1}}})).encode(),
            ["request.object.metadata.labels", "`int`"],
            id="a number for a label",
        ),
        pytest.param(body(request={"uid": "u" * 65}), ["request.uid", "length <= 64"], id="more than a uid"),
        pytest.param(
            body(request={"uid": "u", "operation": "x" * 254}), ["request.operation"], id="more than an operation"
        ),
        pytest.param(
            body(request={"uid": "u", "subResource": "x" * 254}), ["request.subResource"], id="more than a subresource"
        ),
        pytest.param(body(request={"uid": "u", "kind": {"kind": "x" * 254}}), ["request.kind"], id="more than a kind"),
        pytest.param(body(kind="\U000e0001" * 253), ["kind", "AdmissionReview"], id="a kind of escapes"),
        pytest.param(b'{"request":{"object":{"metadata":1},', ["truncated"], id="a bad object, then no more"),
        pytest.param(
            b'{"request":{"object":{"metadata":1},"uid":"\xff"}}', ["UTF-8"], id="a bad object, then bad bytes"
        ),
        pytest.param(
            b'{"request":{"object":{"metadata":1},"x":' + b"[" * 100_000, ["nested"], id="a bad object, then an abyss"
        ),
    ],
)
def test_another_body_is_rejected_with_the_field_and_the_reason(text: bytes, words: list[str]) -> None:
    """BadReview is the only exception. Its message is one line of bounded length, without the decoder's `$`."""
    with pytest.raises(BadReview) as caught:
        decode(text).pod()
    message = str(caught.value)
    assert all(word.lower() in message.lower() for word in words), message
    assert len(message) < 1_000
    assert "\n" not in message
    assert "$" not in message
    assert "jSON" not in message


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param({"uid": "u", "operation": "CREATE", "kind": {"kind": "Secret"}, "object": 7}, id="another kind"),
        pytest.param(review({"metadata": 1}, operation="UPDATE")["request"], id="an update of something odd"),
    ],
)
def test_the_object_of_another_kind_need_not_be_a_pod(request_: dict[str, Any]) -> None:
    """Such a request gets an answer and no error, because the API server can send it by a wrong configuration."""
    assert decode(body(request=request_)).uid == request_["uid"]


def test_a_create_without_an_object_has_no_pod() -> None:
    """The request can be decoded. Only `pod()` raises."""
    with pytest.raises(BadReview, match=r"request\.object: .*expected a v1 Pod"):
        decode(json.dumps(review(None)).encode()).pod()


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        pytest.param({"group": "apps", "version": "v1", "kind": "Deployment"}, "apps/v1 Deployment", id="a group"),
        pytest.param({"group": "", "version": "v1", "kind": "Pod"}, "v1 Pod", id="the core group"),
    ],
)
def test_a_kind_is_shown_as_kubernetes_writes_it(kind: dict[str, str], shown: str) -> None:
    """group/version Kind, and version Kind in the core group."""
    assert str(decode(json.dumps(review(POD, kind=kind)).encode()).kind) == shown


def test_an_answer_without_a_patch_has_no_patch_type() -> None:
    """Patch and patchType are both there or both absent. Empty lists are left out."""
    answer = json.loads(encode("u", [], audit_annotations={}))
    assert answer == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u", "allowed": True},
    }


def test_an_answer_with_a_patch_carries_it_in_base64() -> None:
    """The patch is RFC 6902 JSON in base64, beside the audit annotations and the warnings."""
    operations = [{"op": "add", "path": "/spec/affinity", "value": {"é": None}}]
    response = json.loads(encode("u", operations, audit_annotations={"reason": "X"}, warnings=["mind"]))["response"]
    assert json.loads(base64.b64decode(response.pop("patch"))) == operations
    assert response == {
        "uid": "u",
        "allowed": True,
        "patchType": "JSONPatch",
        "auditAnnotations": {"reason": "X"},
        "warnings": ["mind"],
    }


@pytest.mark.parametrize(
    ("text", "uid"),
    [
        pytest.param(body(), "705ab4f5-6393-11e8-b7cc-42010a800002", id="a review"),
        pytest.param(body(kind=1, apiVersion=[]), "705ab4f5-6393-11e8-b7cc-42010a800002", id="no review"),
        pytest.param(body(request={"uid": "u", "object": 1}), "u", id="a pod that is none"),
        pytest.param(body(request={"uid": "u" * 64}), "u" * 64, id="a long uid"),
        pytest.param(body(request={"uid": "u" * 65}), None, id="more than a uid"),
        pytest.param(body(request={"uid": ""}), None, id="an empty one"),
        pytest.param(body(request={"uid": 1}), None, id="a number"),
        pytest.param(body(request={}), None, id="none"),
        pytest.param(body(request=None), None, id="no request"),
        pytest.param(b"[]", None, id="a list"),
        pytest.param(b"{", None, id="half an object"),
        pytest.param(b'{"request":{"uid":"\xff"}}', None, id="bytes that are no UTF-8"),
        pytest.param(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", None, id="an abyss"),
    ],
)
def test_the_uid_is_found_in_a_body_without_an_answer(text: bytes, uid: str | None) -> None:
    """If the body has a uid, the log shows it, so that the operator can find the call."""
    assert uid_of(text) == uid
