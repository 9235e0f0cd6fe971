import json
from typing import Any

import pytest
from support.objects.builders import review, virt_launcher_pod

from webhook.core.api.admission_review import BadReview, decode, uid_of

POD = virt_launcher_pod()


def body(**changes: Any) -> bytes:
    """Return a review with changed fields of its envelope."""
    return json.dumps({**review(POD), **changes}).encode()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(b"", ["truncated"], id="nothing"),
        pytest.param(b"{}\n{}", ["malformed"], id="two reviews"),
        pytest.param(b"[]", ["expected `object`, got `array`"], id="a list"),
        pytest.param(b'{"kind":"\xff"}', ["UTF-8"], id="bytes that are no UTF-8"),
        pytest.param(b'{"kind":"\\udc00"}', ["surrogate"], id="half a surrogate pair"),
        pytest.param(b"[" * 100_000, ["got `array`"], id="brackets without end"),
        pytest.param(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", ["nested too deeply"], id="an unknown abyss"),
        pytest.param(body(kind="Review"), ["kind", "'Review'", "AdmissionReview"], id="another kind"),
        pytest.param(body(apiVersion="admission.k8s.io/v1beta1"), ["v1beta1", "admissionReviewVersions"], id="v1beta1"),
        pytest.param(body(kind="x" * 100_000), ["kind"], id="a long kind is cut"),
        pytest.param(body(request=None), ["request", "nothing"], id="no request"),
        pytest.param(body(request={"uid": ""}), ["request.uid", "nothing"], id="an empty uid"),
        pytest.param(body(request={"uid": 1}), ["request.uid", "`str`", "`int`"], id="a number for a uid"),
        pytest.param(
            json.dumps(review({**POD, "spec": 1})).encode(),
            ["request.object.spec", "`object`", "`int`"],
            id="a bad spec",
        ),
        pytest.param(
            json.dumps(review({"metadata": {}})).encode(), ["request.object", "spec"], id="a pod without a spec"
        ),
        pytest.param(body(request={"uid": "u" * 65}), ["request.uid", "length <= 64"], id="more than a uid"),
        pytest.param(
            body(request={"uid": "u", "operation": "x" * 254}), ["request.operation"], id="more than an operation"
        ),
        pytest.param(body(request={"uid": "u", "kind": {"kind": "x" * 254}}), ["request.kind"], id="more than a kind"),
        pytest.param(
            body(request={"uid": "u", "subResource": "x" * 254}), ["request.subResource"], id="more than a subresource"
        ),
        pytest.param(body(kind="\U000e0001" * 253), ["kind", "AdmissionReview"], id="a kind of escapes"),
        pytest.param(b'{"request":{"object":{"metadata":1},', ["truncated"], id="a bad object, then no more"),
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


def test_a_create_without_an_object_has_no_pod() -> None:
    """The request can be decoded. Only `pod()` raises."""
    with pytest.raises(BadReview, match=r"request\.object: .*expected a v1 Pod"):
        decode(json.dumps(review(None)).encode()).pod()
