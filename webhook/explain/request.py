"""PodRequest: the AdmissionReview that the API server would send to the webhook for a pod."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api import admission_review
from webhook.core.api.meta import ObjectMeta
from webhook.core.api.pod import Pod
from webhook.core.patch.decision_patch import as_created
from webhook.explain.explanation import Subject
from webhook.objects.documents import Document, as_fields

V1_POD: Final = ("v1", "Pod")
REVIEW_KIND: Final = (admission_review.API_VERSION, admission_review.KIND)


class PodRequest(Struct, frozen=True, kw_only=True):
    """The AdmissionReview for `subject`. `existing`: the pod that it is, if that exists."""

    subject: Subject
    review: dict[str, Any]
    existing: Pod | None = None


def request_for_pod(pod: Pod, value: dict[str, Any], namespace: str, source: str) -> PodRequest:
    """Return the request that creates a pod; `value` is the pod as JSON."""
    meta = pod.metadata
    name, where = meta.name or meta.generate_name or "", meta.namespace or namespace
    request = {
        "uid": "explain",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "namespace": where,
        "operation": "CREATE",
        "object": value,
    }
    review = {"apiVersion": REVIEW_KIND[0], "kind": REVIEW_KIND[1], "request": request}
    return PodRequest(subject=Subject(kind=V1_POD[1], namespace=where, name=name, source=source), review=review)


def request_for_existing(pod: Pod, namespace: str, source: str) -> PodRequest:
    """Return the request that would create a pod of the cluster once more."""
    request = request_for_pod(pod, as_fields(as_created(pod)), namespace, source)
    return replace(request, existing=pod)


class _ReviewObject(Struct):
    metadata: ObjectMeta = ObjectMeta()


class _ReviewRequest(Struct):
    name: str | None = None
    namespace: str | None = None
    object: _ReviewObject | None = None


class _Review(Struct):
    """The part of an AdmissionReview that names its object. Core reads the rest."""

    request: _ReviewRequest | None = None


def request_for_review(document: Document, namespace: str) -> PodRequest:
    """Return the review as it is. The API server always names the namespace; a review that a user wrote can lack it."""
    request = document.read(_Review).request or _ReviewRequest()
    meta = (request.object or _ReviewObject()).metadata
    where = request.namespace or meta.namespace or namespace
    asked = document.value
    if asked.get("request") and not request.namespace:
        asked = {**asked, "request": {**asked["request"], "namespace": where}}
    name = meta.name or request.name or meta.generate_name
    return PodRequest(
        subject=Subject(kind=document.kind, namespace=where, name=name or "", source=document.place), review=asked
    )
