"""What the cluster shows, as values: the Secret and the MutatingWebhookConfiguration; and changes to them.

Pure. This is the whole memory of the keeper: a keeper that was just started knows as much as one that was not. A change
names the resourceVersion that it is for, so that whoever was faster wins, and nothing is overwritten.

In the Secret, beside `tls.crt`, `tls.key` and `ca.crt`: a pair that waits for its authority to be known everywhere
(`next.crt`, `next.key`, `next-ca.crt`), and the authorities that were published when the pair was put in place
(`previous-ca.crt`). Beside the bundle, in an annotation: since when each authority has been in its role.
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
    """What an authority is in the bundle for."""

    NEEDED = "needed"  # it verifies a pair of the Secret's
    LEAVING = "leaving"  # it verifies none; a server may still serve what it verifies


class Mark(Struct, frozen=True):
    """An authority has been in this role since."""

    role: Role
    since: _Moment


class Secret(Struct, frozen=True, kw_only=True):
    """The Secret that servers mount. `placed_at`: when its current pair was put there."""

    version: str
    current: Pair = NO_PAIR
    next: Pair = NO_PAIR
    previous: bytes = b""
    placed_at: datetime | None = None


class Hook(Struct, frozen=True):
    """One webhook of the configuration."""

    name: str
    bundle: bytes


class Configuration(Struct, frozen=True, kw_only=True):
    """The MutatingWebhookConfiguration. `raw` is what the API server sent: whatever we do not know stays in it."""

    version: str
    hooks: tuple[Hook, ...]
    marks: Mapping[str, Mark]
    raw: Mapping[str, Any]


class State(Struct, frozen=True):
    """Both; None for a Secret that is not there."""

    secret: Secret | None
    configuration: Configuration


def read_secret(raw: Mapping[str, Any]) -> Secret:
    """The Secret as the API server's JSON has it. What is damaged counts as empty: that is how it will be healed."""
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
    """The MutatingWebhookConfiguration as the API server's JSON has it."""
    return Configuration(
        version=raw["metadata"]["resourceVersion"],
        hooks=tuple(
            Hook(hook["name"], _decoded(hook["clientConfig"].get("caBundle") or ""))
            for hook in raw.get("webhooks") or ()
        ),
        marks=_marks((raw["metadata"].get("annotations") or {}).get(MARKS, "")),
        raw=raw,
    )


def secret_change(
    secret: Secret,
    *,
    current: Pair | None = None,
    following: Pair = NO_PAIR,
    previous: bytes = b"",
    placed_at: datetime | None = None,
) -> dict[str, Any]:
    """A JSON merge patch of the Secret. Without `current` the pair that is there stays; the next one never does."""
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


def configuration_change(configuration: Configuration, bundle: bytes, marks: Mapping[str, Mark]) -> dict[str, Any]:
    """A JSON merge patch of the configuration: this bundle for every webhook of it, and these marks.

    A merge patch replaces a list whole, so the webhooks are sent as they were read; the resourceVersion guards them.
    """
    text = base64.b64encode(bundle).decode()
    hooks: Sequence[Mapping[str, Any]] = configuration.raw.get("webhooks") or ()
    return {
        "metadata": {
            "resourceVersion": configuration.version,
            "annotations": {MARKS: msgspec.json.encode(marks).decode()},
        },
        "webhooks": [{**hook, "clientConfig": {**hook["clientConfig"], "caBundle": text}} for hook in hooks],
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
