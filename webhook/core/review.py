"""AdmissionReview v1 <-> bytes.

`decode` raises BadReview with the field and the reason; nothing else in core looks at the envelope's bytes.
Invariant: `encode` always says allowed, and gives patch and patchType together or neither.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from webhook.core.objects import Pod

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"


class BadReview(Exception):
    """The bytes are no AdmissionReview v1 that we can answer; the message says which field, got and expected."""


class GroupVersionKind(Struct, frozen=True):
    """metav1.GroupVersionKind; the core group is the empty string."""

    group: str = ""
    version: str = ""
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.group}/{self.version} {self.kind}".lstrip("/")


class AdmissionRequest(Struct, rename="camel", frozen=True, kw_only=True):
    """admission/v1 AdmissionRequest, the fields that are read. `object` stays undecoded until it is known as a Pod."""

    uid: str
    kind: GroupVersionKind = GroupVersionKind()
    sub_resource: str | None = None
    namespace: str | None = None
    operation: str | None = None
    object: Raw = Raw(b"null")
    dry_run: bool | None = None

    def pod(self) -> Pod:
        """The object, read as a Pod.

        Raises:
            BadReview: it is absent, or a field has the wrong type.
        """
        try:
            return _pod_decoder.decode(self.object)
        except (ValueError, RecursionError) as error:
            raise BadReview(f"request.object: {explain(error)}; expected a v1 Pod") from None


class _Review(Struct, rename="camel", frozen=True):
    api_version: str | None = None
    kind: str | None = None
    request: AdmissionRequest | None = None


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


_review_decoder: Final = msgspec.json.Decoder(_Review)
_pod_decoder: Final = msgspec.json.Decoder(Pod)
_encoder: Final = msgspec.json.Encoder()


def explain(error: Exception) -> str:
    """A decoder's error as part of a sentence, without the decoder's own path notation."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "not valid UTF-8"
    text = str(error).replace(" - at `$.", " at `").replace(" - at `$", " at `")
    return text[:1].lower() + text[1:]


def decode(body: bytes) -> AdmissionRequest:
    """The request in an AdmissionReview.

    Args:
        body: the HTTP body, JSON.

    Raises:
        BadReview: no JSON, another kind or version, no request, no uid, or a field of the wrong type.
    """
    try:
        review = _review_decoder.decode(body)
    except (ValueError, RecursionError) as error:
        raise BadReview(f"the body is no AdmissionReview: {explain(error)}") from None
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


def encode(
    uid: str,
    operations: Sequence[Mapping[str, Any]],
    *,
    audit_annotations: Mapping[str, str],
    warnings: Sequence[str] = (),
) -> bytes:
    """The AdmissionReview that answers request `uid`: allowed, with the RFC 6902 operations where there are any."""
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
