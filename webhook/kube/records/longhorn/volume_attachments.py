"""Longhorn's VolumeAttachments: the record of one. No cache stores it: each is read when it is needed."""

from __future__ import annotations

from msgspec import Struct

from webhook.core.api.longhorn import VolumeAttachment, VolumeAttachmentSpec
from webhook.core.api.meta import ObjectMeta
from webhook.kube.client.metadata import BareMeta


class WireAttachment(Struct, gc=False):
    """A VolumeAttachment of Longhorn, as far as it is decoded."""

    metadata: BareMeta
    spec: VolumeAttachmentSpec | None = None


def transform(wire: WireAttachment) -> VolumeAttachmentSpec | None:
    """Return the spec of a VolumeAttachment, which is its record."""
    return wire.spec


def to_object(key: str, record: VolumeAttachmentSpec | None) -> VolumeAttachment:
    """Return the VolumeAttachment of this name and spec."""
    return VolumeAttachment(metadata=ObjectMeta(name=key), spec=record)
