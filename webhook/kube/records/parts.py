"""Kinds of which core reads one part: this part is the record. Equal parts are one object."""

from __future__ import annotations

from collections.abc import Iterator
from sys import intern
from typing import Final

from msgspec import Struct

from webhook.core.api.longhorn import (
    LonghornNode,
    LonghornNodeStatus,
    Need,
    ShareManager,
    ShareManagerStatus,
    VolumeAttachment,
    VolumeAttachmentSpec,
)
from webhook.core.api.meta import ConfigMap, Namespace, ObjectMeta
from webhook.core.api.node import CSINode, csi_drivers_of
from webhook.core.opt_in import kept_value
from webhook.core.reasons import LABEL_CO_SCHEDULE
from webhook.core.scheduler.state.node_info import CSIDrivers
from webhook.kube.records.shared import kept_name, share


class ShareManagerRecord(Struct, frozen=True, gc=False):
    """32 bytes a ShareManager, and its uid. Nearly all share a few statuses."""

    uid: str | None
    status: ShareManagerStatus | None


def share_manager_record(wire: ShareManager) -> ShareManagerRecord:
    """Return the record of a ShareManager: its uid, by which its pod names it, and its status."""
    return ShareManagerRecord(wire.metadata.uid and kept_name(wire.metadata.uid), wire.status and share(wire.status))


def to_share_manager(key: str, record: ShareManagerRecord) -> ShareManager:
    """Return the ShareManager of this name and record."""
    return ShareManager(metadata=ObjectMeta(name=key, uid=record.uid), status=record.status)


def longhorn_conditions(wire: LonghornNode) -> LonghornNodeStatus:
    """Return the record of a Longhorn node: conditions with words of a closed set. Nearly all nodes share one."""
    return share((wire.status or LonghornNodeStatus()).known())


def to_longhorn_node(key: str, record: LonghornNodeStatus) -> LonghornNode:
    """Return the Longhorn node of this name and status."""
    return LonghornNode(metadata=ObjectMeta(name=key), status=record)


def by_lack(_: str, record: LonghornNodeStatus) -> Iterator[Need]:
    """Index a Longhorn node by what it certainly lacks."""
    return (lack.need for lack in record.lacks if lack.certain)


def attachment_spec(wire: VolumeAttachment) -> VolumeAttachmentSpec | None:
    """Return the record of a VolumeAttachment: its spec. No cache stores it: each is read when it is needed."""
    return wire.spec


def to_attachment(key: str, record: VolumeAttachmentSpec | None) -> VolumeAttachment:
    """Return the VolumeAttachment of this name and spec."""
    return VolumeAttachment(metadata=ObjectMeta(name=key), spec=record)


class _CSIDrivers(dict[str, int | None]):
    __slots__ = ("__weakref__",)


def csi_drivers(wire: CSINode) -> CSIDrivers:
    """Return the record of a CSINode: its drivers, with their limits. Nearly all nodes share one."""
    return share(_CSIDrivers(csi_drivers_of(wire.spec)))


def to_csi_drivers(_: str, record: CSIDrivers) -> CSIDrivers:
    """Return the record: core reads the drivers only."""
    return record


_NO_LABEL: Final = (None,)


def namespace_label(wire: Namespace) -> tuple[str | None]:
    """Return the record of a Namespace: the value of its label LABEL_CO_SCHEDULE."""
    label = kept_value(wire.metadata.label(LABEL_CO_SCHEDULE))
    return _NO_LABEL if label is None else (intern(label),)


def to_namespace(key: str, record: tuple[str | None]) -> Namespace:
    """Return the Namespace of this name and label."""
    (label,) = record
    return Namespace(metadata=ObjectMeta(name=key, labels=None if label is None else {LABEL_CO_SCHEDULE: label}))


def nothing(_: ConfigMap) -> tuple[()]:
    """Return the record of a ConfigMap, which is empty: only its name counts.

    cluster-autoscaler rewrites its status every 10 s. So the data is never decoded, and all records are equal.
    """
    return ()


def to_config_map(key: str, _: tuple[()]) -> ConfigMap:
    """Return the ConfigMap of this namespace and name."""
    namespace, _slash, name = key.partition("/")
    return ConfigMap(metadata=ObjectMeta(namespace=namespace, name=name))
