"""Longhorn's ShareManagers: the record of one."""

from __future__ import annotations

from msgspec import Struct

from webhook.core.api.longhorn import ShareManager, ShareManagerStatus
from webhook.core.api.meta import ObjectMeta
from webhook.kube.client.metadata import BareMeta
from webhook.kube.records.shared import share


class WireShareManager(Struct, gc=False):
    """A ShareManager, as far as it is decoded."""

    metadata: BareMeta
    status: ShareManagerStatus | None = None


def transform(wire: WireShareManager) -> ShareManagerStatus | None:
    """Return the status of a ShareManager, which is its record. Equal statuses share one object."""
    return share(wire.status)


def to_object(key: str, record: ShareManagerStatus | None) -> ShareManager:
    """Return the ShareManager of this name and status."""
    return ShareManager(metadata=ObjectMeta(name=key), status=record)
