"""AdmissionReview v1 <-> bytes.

`decode` raises BadReview with the field and the reason; nothing else in core reads the envelope's bytes.
Invariant: `encode` always answers allowed, and has patch and patchType together or neither.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from webhook.core.api.pod import Pod

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
_UID_CHARS: Final = 128  # the API server's have 36
WHOLE_BYTES_MAX: Final = 768 * 1024
"""Of a longer review only the head is decoded. A launcher pod has 10 to 20 KB and 256 KiB of annotations at most, which
escapes can double. The slowest 768 KiB, deeply nested objects, take 30 ms to decode."""


class BadReview(Exception):
    """The bytes are not an AdmissionReview v1. The message has the field, what it is and what is expected."""


class GroupVersionKind(Struct, frozen=True):
    """metav1.GroupVersionKind; the core group is the empty string."""

    group: str = ""
    version: str = ""
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.group}/{self.version} {self.kind}".lstrip("/")


POD_KIND: Final = GroupVersionKind(version="v1", kind="Pod")


class RequestHead(Struct, rename="camel", frozen=True, kw_only=True):
    """admission/v1 AdmissionRequest without its object, with the fields that core reads."""

    uid: str
    kind: GroupVersionKind = GroupVersionKind()
    sub_resource: str | None = None
    namespace: str | None = None
    operation: str | None = None
    dry_run: bool | None = None

    @property
    def creates_pod(self) -> bool:
        """Whether the object is a v1 Pod that is being created."""
        return self.operation == "CREATE" and self.kind == POD_KIND


class AdmissionRequest(RequestHead, rename="camel", frozen=True, kw_only=True):
    """admission/v1 AdmissionRequest. `object` is None if the request has none, or one that is not a Pod."""

    object: Pod | None = None

    def pod(self) -> Pod:
        """Return the pod that is created.

        Raises:
            BadReview: the request has no object.
        """
        if self.object is None:
            raise BadReview("request.object: got nothing, expected a v1 Pod")
        return self.object


_Request = TypeVar("_Request")


class _Review(Struct, Generic[_Request], rename="camel", frozen=True):
    api_version: str | None = None
    kind: str | None = None
    request: _Request | None = None


class _Response(Struct, rename="camel", frozen=True, kw_only=True):
    uid: str
    allowed: bool = True
    patch_type: str | UnsetType = UNSET
    patch: str | UnsetType = UNSET
    audit_annotations: Mapping[str, str] | UnsetType = UNSET
    warnings: Sequence[str] | UnsetType = UNSET


class _Answer(Struct, rename="camel", frozen=True, kw_only=True):
    api_version: str = API_VERSION
    kind: str = KIND
    response: _Response


class _Uid(Struct, frozen=True):
    uid: str | None = None


class _Mark(Struct, frozen=True):
    request: _Uid | None = None


_mark_decoder: Final = msgspec.json.Decoder(_Mark)
_decoder: Final = msgspec.json.Decoder(_Review[AdmissionRequest])
_head_decoder: Final = msgspec.json.Decoder(_Review[RequestHead])
_encoder: Final = msgspec.json.Encoder()


def decode(body: bytes) -> AdmissionRequest:
    """Return the request in an AdmissionReview, without its object if the review is longer than WHOLE_BYTES_MAX.

    Args:
        body: the HTTP body, JSON.

    Raises:
        BadReview: not JSON, another kind or version, no request, no uid, or a field of the wrong type.
    """
    try:
        review = _decoder.decode(body) if len(body) <= WHOLE_BYTES_MAX else _without_object(_head_decoder.decode(body))
    except msgspec.ValidationError as error:
        review = _foreign(body, error)
    except (ValueError, RecursionError) as error:
        raise BadReview(f"the body is not an AdmissionReview: {_explain(error)}") from None
    if review.kind != KIND:
        raise BadReview(f"kind: got {_quoted(review.kind)}, expected {KIND}")
    if review.api_version != API_VERSION:
        raise BadReview(
            f"apiVersion: got {_quoted(review.api_version)}, expected {API_VERSION}; "
            "set admissionReviewVersions: [v1] in the webhook configuration"
        )
    if review.request is None:
        raise BadReview("request: got nothing, expected an AdmissionRequest")
    if not review.request.uid:
        raise BadReview("request.uid: got nothing, expected the uid to answer with")
    return review.request


def _foreign(body: bytes, error: msgspec.ValidationError) -> _Review[AdmissionRequest]:
    """Return the review without its object, if the object is not a Pod or the operation is not CREATE."""
    try:
        review = _head_decoder.decode(body)
    except msgspec.ValidationError:
        raise BadReview(_explain(error)) from None
    except (ValueError, RecursionError) as worse:
        raise BadReview(f"the body is not an AdmissionReview: {_explain(worse)}") from None
    if review.request is None or review.request.creates_pod:
        raise BadReview(_explain(error))
    return _without_object(review)


def _without_object(review: _Review[RequestHead]) -> _Review[AdmissionRequest]:
    request = AdmissionRequest(**msgspec.structs.asdict(review.request)) if review.request else None
    return _Review(review.api_version, review.kind, request)


def uid_of(body: bytes) -> str | None:
    """Return the request's uid in a body that can't be answered, None if it has none. It goes to the log."""
    try:
        marked = _mark_decoder.decode(body)
    except (ValueError, RecursionError):
        return None
    return marked.request.uid[:_UID_CHARS] if marked.request and marked.request.uid else None


def _explain(error: Exception) -> str:
    """Return a decoder's error as a sentence, with the field first if the error names one."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "not valid UTF-8"
    what, _, path = str(error).partition(" - at `$")
    field = path.strip(".`")
    return f"{field}: {what[:1].lower()}{what[1:]}" if field else what


def encode(
    uid: str,
    operations: Sequence[Mapping[str, Any]],
    *,
    audit_annotations: Mapping[str, str],
    warnings: Sequence[str] = (),
) -> bytes:
    """Return the AdmissionReview that answers request `uid`: allowed, with the RFC 6902 operations if there are any."""
    return _encoder.encode(
        _Answer(
            response=_Response(
                uid=uid,
                patch_type="JSONPatch" if operations else UNSET,
                patch=base64.b64encode(_encoder.encode(operations)).decode() if operations else UNSET,
                audit_annotations=audit_annotations or UNSET,
                warnings=warnings or UNSET,
            )
        )
    )


def _quoted(value: str | None) -> str:
    return "nothing" if value is None else repr(value[:80])
