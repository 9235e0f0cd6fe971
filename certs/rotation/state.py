"""The state in the cluster: the Secret and the MutatingWebhookConfiguration as values, and patches of them.

Pure. This state is the whole memory of the controller, so a restart loses nothing. A patch names the resourceVersion
that it changes: the API server refuses it if another client has written since.

The Secret has more keys than `tls.crt`, `tls.key` and `ca.crt`:

- `next.crt`, `next.key`, `next-ca.crt`: the next pair, which waits until every API server trusts its authority.
- `previous-ca.crt`: the authorities that were published when the current pair was written.

An annotation of the configuration has the role of each authority in the bundle, and the time since it has that role.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from certs.x509.pki import NO_PAIR, Pair

MARKS: Final = "kubevirt-coschedule.io/ca-bundle-marks"  # on the configuration
PLACED_AT: Final = "kubevirt-coschedule.io/tls-placed-at"  # on the Secret
CURRENT_KEYS: Final = ("tls.crt", "tls.key", "ca.crt")
NEXT_KEYS: Final = ("next.crt", "next.key", "next-ca.crt")
PREVIOUS_KEY: Final = "previous-ca.crt"

_Moment = Annotated[datetime, Meta(tz=True)]


class Role(StrEnum):
    """Why an authority is in the bundle."""

    NEEDED = "needed"  # it verifies a pair in the Secret
    LEAVING = "leaving"  # it verifies no pair in the Secret, but a server may still serve an older pair of its own


class Mark(Struct, frozen=True):
    """The role of an authority, and the time since which it has that role."""

    role: Role
    since: _Moment


class Secret(Struct, frozen=True, kw_only=True):
    """The Secret that servers mount. `placed_at`: when its current pair was written."""

    version: str
    current: Pair = NO_PAIR
    next: Pair = NO_PAIR
    previous: bytes = b""
    placed_at: datetime | None = None


class MutatingWebhook(Struct, frozen=True):
    """One webhook of the configuration, with its caBundle decoded to PEM."""

    name: str
    bundle: bytes


class Configuration(Struct, frozen=True, kw_only=True):
    """The MutatingWebhookConfiguration. `raw` is the object as the API server sent it, with all its fields."""

    version: str
    webhooks: tuple[MutatingWebhook, ...]
    marks: Mapping[str, Mark]
    raw: Mapping[str, Any]


class ClusterState(Struct, frozen=True):
    """Both objects; None for a Secret that does not exist."""

    secret: Secret | None
    configuration: Configuration


def read_secret(raw: Mapping[str, Any]) -> Secret:
    """Return the Secret of the API server's JSON. A damaged value counts as empty, so that it is repaired."""
    data = {key: _decoded(value) for key, value in (raw.get("data") or {}).items()}
    stated = (raw["metadata"].get("annotations") or {}).get(PLACED_AT, "")
    return Secret(
        version=raw["metadata"]["resourceVersion"],
        current=Pair(*(data.get(key, b"") for key in CURRENT_KEYS)),
        next=Pair(*(data.get(key, b"") for key in NEXT_KEYS)),
        previous=data.get(PREVIOUS_KEY, b""),
        placed_at=_moment(stated),
    )


def read_configuration(raw: Mapping[str, Any]) -> Configuration:
    """Return the MutatingWebhookConfiguration of the API server's JSON."""
    return Configuration(
        version=raw["metadata"]["resourceVersion"],
        webhooks=tuple(
            MutatingWebhook(webhook["name"], _decoded(webhook["clientConfig"].get("caBundle") or ""))
            for webhook in raw.get("webhooks") or ()
        ),
        marks=_marks((raw["metadata"].get("annotations") or {}).get(MARKS, "")),
        raw=raw,
    )


def secret_patch(
    secret: Secret,
    *,
    current: Pair | None = None,
    following: Pair = NO_PAIR,
    previous: bytes = b"",
    placed_at: datetime | None = None,
) -> dict[str, Any]:
    """Return a JSON merge patch of the Secret. Without `current` it keeps the current pair. It always sets the next."""
    values: dict[str, bytes | None] = {
        key: value or None
        for key, value in zip(NEXT_KEYS, (following.certificate, following.key, following.authority), strict=True)
    }
    if current or following:
        values[PREVIOUS_KEY] = previous or None
    metadata: dict[str, Any] = {"resourceVersion": secret.version}
    if current:
        values |= zip(CURRENT_KEYS, (current.certificate, current.key, current.authority), strict=True)
    if placed_at:
        metadata["annotations"] = {PLACED_AT: placed_at.isoformat()}
    return {"metadata": metadata, "data": {key: _encoded(value) if value else None for key, value in values.items()}}


def configuration_patch(configuration: Configuration, bundle: bytes, marks: Mapping[str, Mark]) -> dict[str, Any]:
    """Return a JSON merge patch of the configuration: this bundle (PEM) for each of its webhooks, and these marks.

    A merge patch replaces a whole list. So it has the webhooks as they were read; the resourceVersion protects them.
    """
    text = base64.b64encode(bundle).decode()
    webhooks: Sequence[Mapping[str, Any]] = configuration.raw.get("webhooks") or ()
    return {
        "metadata": {
            "resourceVersion": configuration.version,
            "annotations": {MARKS: msgspec.json.encode(marks).decode()},
        },
        "webhooks": [
            {**webhook, "clientConfig": {**webhook["clientConfig"], "caBundle": text}} for webhook in webhooks
        ],
    }


def _marks(text: str) -> dict[str, Mark]:
    try:
        return msgspec.json.decode(text, type=dict[str, Mark])
    except msgspec.DecodeError:
        return {}


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(value)
    except binascii.Error:
        return b""


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()
