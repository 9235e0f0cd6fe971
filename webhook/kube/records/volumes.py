"""PersistentVolumes: the record of one, and the index function over their CSI volume handles."""

from __future__ import annotations

from sys import intern

from msgspec import Struct

from webhook.core.api.longhorn import LONGHORN_CSI_DRIVER, SHARE_MANAGER_NODE_SELECTOR
from webhook.core.api.meta import ObjectMeta, ObjectReference
from webhook.core.api.storage import (
    CSIPersistentVolumeSource,
    InTreeSources,
    PersistentVolume,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
    in_tree_sources,
)
from webhook.core.scheduler.plugins.volumes import TOPOLOGY_LABELS
from webhook.kube.informer.resource import namespaced_key
from webhook.kube.records.shared import share


class _WireAttributes(Struct, rename="camel", gc=False):
    migratable: str | None = None
    data_locality: str | None = None
    data_engine: str | None = None
    encrypted: str | None = None
    share_manager_node_selector: str | None = None

    def as_dict(self) -> dict[str, str] | None:
        """Return the attributes that are set, with their names in a PersistentVolume; None if there are none."""
        attributes = {
            "migratable": self.migratable,
            "dataLocality": self.data_locality,
            "dataEngine": self.data_engine,
            "encrypted": self.encrypted,
            SHARE_MANAGER_NODE_SELECTOR: self.share_manager_node_selector,
        }
        return {name: value for name, value in attributes.items() if value is not None} or None


class _WireCSI(Struct, rename="camel", gc=False):
    driver: str | None = None
    volume_handle: str | None = None
    volume_attributes: _WireAttributes | None = None


class _WireSpec(InTreeSources, rename="camel", frozen=True, kw_only=True, gc=False):
    csi: _WireCSI | None = None
    claim_ref: ObjectReference | None = None
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None


class WireVolume(Struct, gc=False):
    """A PersistentVolume, as far as it is decoded."""

    metadata: ObjectMeta
    spec: _WireSpec | None = None


class _VolumeCommon(Struct, frozen=True, weakref=True):
    """A PersistentVolume without its names. `driver` is None if no CSI driver provides the volume.

    `in_tree` is the name of its in-tree source, if kube-scheduler translates that to CSI.
    """

    labels: dict[str, str] | None
    driver: str | None
    attributes: dict[str, str] | None
    volume_mode: str | None
    node_affinity: VolumeNodeAffinity | None
    in_tree: str | None


class VolumeRecord(Struct, frozen=True, gc=False):
    """40 bytes a volume, its handle, and the key of its claim. Nearly all volumes share a few `common` parts.

    `claim` is NAMESPACE/NAME. It is None for volumes of other drivers than Longhorn's: core never asks for those.
    """

    handle: str | None
    claim: str | None
    common: _VolumeCommon


def transform(wire: WireVolume) -> VolumeRecord:
    """Return the record of a PersistentVolume: its handle, claim, topology labels, attributes and node affinity."""
    spec = wire.spec or _WireSpec()
    csi = spec.csi or _WireCSI()
    common = _VolumeCommon(
        {key: value for key, value in (wire.metadata.labels or {}).items() if key in TOPOLOGY_LABELS} or None,
        None if spec.csi is None else csi.driver or "",
        csi.volume_attributes.as_dict() if csi.volume_attributes else None,
        spec.volume_mode,
        spec.node_affinity,
        spec.in_tree(),
    )
    bound = spec.claim_ref if csi.driver == LONGHORN_CSI_DRIVER else None
    claim = intern(namespaced_key(bound.namespace or "", bound.name)) if bound and bound.name else None
    return VolumeRecord(csi.volume_handle and intern(csi.volume_handle), claim, share(common))


def to_object(key: str, record: VolumeRecord) -> PersistentVolume:
    """Return the PersistentVolume of this name and record."""
    common = record.common
    csi = CSIPersistentVolumeSource(
        driver=common.driver, volume_handle=record.handle, volume_attributes=common.attributes
    )
    return PersistentVolume(
        metadata=ObjectMeta(name=key, labels=common.labels),
        spec=PersistentVolumeSpec(
            csi=None if common.driver is None else csi,
            claim_ref=None if record.claim is None else _reference(record.claim),
            volume_mode=common.volume_mode,
            node_affinity=common.node_affinity,
            **in_tree_sources(common.in_tree),
        ),
    )


def by_handle(key: str, record: VolumeRecord) -> tuple[str, ...]:
    """Index a volume of Longhorn's driver by its CSI volume handle.

    Most volumes have their handle as name: the cache key already leads to those, so the index leaves them out.
    """
    return (record.handle,) if record.handle and record.handle != key and is_longhorn(record) else ()


def is_longhorn(record: VolumeRecord) -> bool:
    """Whether the volume is of Longhorn's driver."""
    return record.common.driver == LONGHORN_CSI_DRIVER


def _reference(key: str) -> ObjectReference:
    namespace, _, name = key.partition("/")
    return ObjectReference(namespace=namespace, name=name)
