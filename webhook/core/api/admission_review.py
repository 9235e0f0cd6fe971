"""AdmissionReview v1 <-> bytes.

`decode` raises BadReview with the field and the reason; nothing else in core reads the envelope's bytes.
Invariant: `encode` always answers allowed, and has patch and patchType together or neither.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from webhook.core.api.affinity import Affinity
from webhook.core.api.meta import ApiType
from webhook.core.api.pod import AdmittedPod, BoundedName, BoundedUid, Pod

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
_LEVELS_MAX: Final = 64
"""Of lists and objects in an affinity; Kubernetes' has 9. jsonpatch and the webhook take up to two calls for each."""
_TOO_DEEP: Final = "nested too deeply"
_TOO_LONG: Final = re.compile(r"Expected `str` of length <= (?P<most>\d+) - at (?P<path>.*)")  # msgspec's words
_T = TypeVar("_T")


class BadReview(Exception):
    """The bytes are not an AdmissionReview v1. The message has the field, what it is and what is expected.

    It has less than a thousand characters: the decoder's own words name fields, and at most 80 characters are quoted.
    """


class TextTooLong(Exception):
    """A text of the pod has more than `most` characters. `what`: the path of its field."""

    def __init__(self, what: str, most: str) -> None:
        super().__init__(f"{what} has more than {most} characters")
        self.what = what
        self.most = most


class GroupVersionKind(ApiType):
    """metav1.GroupVersionKind; the core group is the empty string."""

    group: BoundedName = ""
    version: BoundedName = ""
    kind: BoundedName = ""

    def __str__(self) -> str:
        return f"{self.group}/{self.version} {self.kind}".lstrip("/")


POD_KIND: Final = GroupVersionKind(version="v1", kind="Pod")


class AdmissionRequest(ApiType):
    """admission/v1 AdmissionRequest, with the fields that core reads. `object` is JSON until `pod` is called.

    All of its texts are bounded but the namespace, which is a user's: webhook.core.admit bounds it.
    """

    uid: BoundedUid
    kind: GroupVersionKind = GroupVersionKind()
    sub_resource: BoundedName | None = None
    namespace: str | None = None
    operation: BoundedName | None = None
    dry_run: bool | None = None
    object: Raw = Raw(b"null")

    def pod(self) -> tuple[Pod, Raw]:
        """Return the pod that is created, without its affinity, and that as JSON (`with_affinity`, `every_field`).

        Raises:
            BadReview: the request has no object, or one that is not a Pod.
            TextTooLong: the pod has a text that is longer than its field in `AdmittedPod` allows.
        """
        pod = decoded(_decode_pod, self.object, "request.object")
        if pod is None:
            raise BadReview("request.object: got nothing, expected a v1 Pod")
        return replace(pod, spec=replace(pod.spec, affinity=None)), pod.spec.affinity


class _Review(ApiType):
    api_version: BoundedName | None = None
    kind: BoundedName | None = None
    request: AdmissionRequest | None = None


class _Response(ApiType, omit_defaults=False):
    uid: str
    allowed: bool = True
    patch_type: str | UnsetType = UNSET
    patch: str | UnsetType = UNSET
    audit_annotations: Mapping[str, str] | UnsetType = UNSET
    warnings: Sequence[str] | UnsetType = UNSET


class _Answer(ApiType, kw_only=True, omit_defaults=False):
    api_version: str = API_VERSION
    kind: str = KIND
    response: _Response


class _MarkedRequest(ApiType):
    uid: BoundedUid | None = None


class _Mark(ApiType):
    request: _MarkedRequest | None = None


_decode_mark: Final = msgspec.json.Decoder(_Mark).decode
_decode_review: Final = msgspec.json.Decoder(_Review).decode
_decode_pod: Final = msgspec.json.Decoder[AdmittedPod | None](AdmittedPod | None).decode
_decode_affinity: Final = msgspec.json.Decoder[Affinity | None](Affinity | None).decode
_decode_json: Final = msgspec.json.Decoder[Any]().decode
_encoder: Final = msgspec.json.Encoder()


def decode(body: bytes) -> AdmissionRequest:
    """Return the request in an AdmissionReview.

    Raises:
        BadReview: not JSON, another kind or version, no request, no uid, or a field of the wrong type.
    """
    review = decoded(_decode_review, body)
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


def decoded(decode: Callable[[bytes | Raw], _T], data: bytes | Raw, path: str = "") -> _T:
    """Return what `decode` makes of the part of a review at `path`. Raises BadReview for all that msgspec raises."""
    try:
        return decode(data)
    except msgspec.ValidationError as error:
        too_long = _TOO_LONG.fullmatch(str(error)) if decode is _decode_pod else None
        if too_long:
            what = too_long["path"].replace("`", "").replace("$.", "")
            raise TextTooLong(what, too_long["most"]) from None
        raise BadReview(_explain(error, path)) from None
    except (ValueError, RecursionError) as error:
        raise BadReview(f"the body is not an AdmissionReview: {_explain(error, path)}") from None


def with_affinity(pod: Pod, affinity: Raw) -> Pod:
    """Return the pod with its affinity, which is JSON. Raises BadReview."""
    found = decoded(_decode_affinity, affinity, "request.object.spec.affinity")
    return replace(pod, spec=replace(pod.spec, affinity=found))


def every_field(part: Raw) -> Any:
    """Return a part of a pod as JSON, also with the fields that core does not know.

    Raises:
        BadReview: it can't be decoded, or has too many levels.
    """
    whole = decoded(_decode_json, part, "request.object")
    level = [whole]
    for _ in range(_LEVELS_MAX):
        below = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        if not (level := [each for inner in below for each in inner]):
            return whole
    raise BadReview(f"the body is not an AdmissionReview: request.object: {_TOO_DEEP}")


def uid_of(body: bytes) -> str | None:
    """Return the request's uid in a body that can't be answered, None without one of a uid's length: for the log."""
    try:
        marked = _decode_mark(body)
    except (ValueError, RecursionError):
        return None
    return (marked.request.uid or None) if marked.request else None


def _explain(error: Exception, path: str) -> str:
    """Return the error of a decoder at `path` as a sentence, with the field first if there is one."""
    if isinstance(error, RecursionError):
        return _TOO_DEEP
    if isinstance(error, UnicodeDecodeError):
        return "not valid UTF-8"
    what, _, below = str(error).partition(" - at `$")
    field = f"{path}{below}".strip(".`")
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
