"""Longhorn's objects of longhorn.io/v1beta2 with the fields that a rule reads, its labels and names."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from webhook.core.api.meta import ObjectMeta
from webhook.core.api.node import NodeStatus

LONGHORN_API_VERSION: Final = "longhorn.io/v1beta2"
LONGHORN_CSI_DRIVER: Final = "driver.longhorn.io"
LABEL_LONGHORN_COMPONENT: Final = "longhorn.io/component"
LABEL_LONGHORN_SHARE_MANAGER: Final = "longhorn.io/share-manager"
SHARE_MANAGER: Final = "share-manager"
SHARE_MANAGER_POD_PREFIX: Final = "share-manager-"


class ShareManagerStatus(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """longhorn.io/v1beta2 ShareManagerStatus."""

    owner_id: str | None = field(name="ownerID", default=None)
    state: str | None = None


class ShareManager(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """longhorn.io/v1beta2 ShareManager; its name is Longhorn's volume name."""

    metadata: ObjectMeta
    status: ShareManagerStatus | None = None


class AttachmentTicket(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """longhorn.io/v1beta2 AttachmentTicket: who wants the volume attached, and on which node."""

    type: str | None = None
    node_id: str | None = field(name="nodeID", default=None)


class VolumeAttachmentSpec(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """longhorn.io/v1beta2 VolumeAttachmentSpec."""

    attachment_tickets: dict[str, AttachmentTicket] | None = None


class VolumeAttachment(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """longhorn.io/v1beta2 VolumeAttachment; its name is Longhorn's volume name."""

    metadata: ObjectMeta
    spec: VolumeAttachmentSpec | None = None


class LonghornNode(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """longhorn.io/v1beta2 Node; its name is the Kubernetes node's name."""

    metadata: ObjectMeta
    status: NodeStatus | None = None


ASSIGNED_STATES: Final = ("running", "starting", "absent")  # absent: a ShareManager without a state
