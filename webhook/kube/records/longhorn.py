"""ShareManagers and Longhorn's VolumeAttachments: what is kept of one."""

from __future__ import annotations

from msgspec import Struct

from webhook.core.api.longhorn import (
    ShareManager,
    ShareManagerStatus,
    VolumeAttachment,
    VolumeAttachmentSpec,
)
from webhook.core.api.meta import ObjectMeta
from webhook.kube.client.metadata import BareMeta
from webhook.kube.records.shared import share


class WireShareManager(Struct, gc=False):
    """A ShareManager."""

    metadata: BareMeta
    status: ShareManagerStatus | None = None


def keep_share_manager(wire: WireShareManager) -> ShareManagerStatus | None:
    """Record."""
    return share(wire.status)


def build_share_manager(name: str, status: ShareManagerStatus | None) -> ShareManager:
    """Object."""
    return ShareManager(metadata=ObjectMeta(name=name), status=status)


class WireAttachment(Struct, gc=False):
    """A VolumeAttachment of Longhorn's. It is never kept: only what it says now counts."""

    metadata: BareMeta
    spec: VolumeAttachmentSpec | None = None


def keep_attachment(wire: WireAttachment) -> VolumeAttachmentSpec | None:
    """Record."""
    return wire.spec


def build_attachment(name: str, spec: VolumeAttachmentSpec | None) -> VolumeAttachment:
    """Object."""
    return VolumeAttachment(metadata=ObjectMeta(name=name), spec=spec)
