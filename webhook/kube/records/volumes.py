"""PersistentVolumes: what is kept of one."""

from __future__ import annotations

from collections.abc import Iterable
from sys import intern
from typing import Any

from msgspec import Struct

from webhook.core.api.longhorn import (
    LONGHORN_CSI_DRIVER,
)
from webhook.core.api.meta import ObjectMeta, ObjectReference
from webhook.core.api.storage import (
    CSIPersistentVolumeSource,
    PersistentVolume,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
)
from webhook.core.scheduler.plugins.volume_zone import TOPOLOGY_LABELS
from webhook.kube.client.metadata import WireMeta
from webhook.kube.informer.index import Indexer
from webhook.kube.informer.resource import namespaced_key
from webhook.kube.records.shared import share


class ByHandle(Indexer):
    """PersistentVolumes by their CSI volume handle, those left out that are called as it is: most are."""

    def _about(self, key: str, record: Any) -> Iterable[str]:
        return (record.handle,) if record.handle and record.handle != key and record.claim else ()


class _Attributes(Struct, rename="camel", gc=False):
    migratable: str | None = None
    data_locality: str | None = None
    data_engine: str | None = None

    def kept(self) -> dict[str, str] | None:
        """As a PersistentVolume has them."""
        told = {"migratable": self.migratable, "dataLocality": self.data_locality, "dataEngine": self.data_engine}
        return {name: value for name, value in told.items() if value is not None} or None


class _WireCSI(Struct, rename="camel", gc=False):
    driver: str | None = None
    volume_handle: str | None = None
    volume_attributes: _Attributes | None = None


class _WireVolumeSpec(Struct, rename="camel", gc=False):
    csi: _WireCSI | None = None
    claim_ref: ObjectReference | None = None
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None


class WireVolume(Struct, gc=False):
    """A PersistentVolume."""

    metadata: WireMeta
    spec: _WireVolumeSpec | None = None


class _VolumeRest(Struct, frozen=True, gc=False):
    """A PersistentVolume less its names; `driver` is None for one that is not CSI's."""

    labels: dict[str, str] | None
    driver: str | None
    attributes: dict[str, str] | None
    volume_mode: str | None
    node_affinity: VolumeNodeAffinity | None


class _Volume(Struct, frozen=True, gc=False):
    """`claim` is NAMESPACE/NAME, and None for any volume that is not Longhorn's: nobody asks for those by handle."""

    handle: str | None
    claim: str | None
    rest: _VolumeRest


def keep_volume(wire: WireVolume) -> _Volume:
    """Record."""
    spec = wire.spec or _WireVolumeSpec()
    csi = spec.csi or _WireCSI()
    rest = _VolumeRest(
        {key: value for key, value in (wire.metadata.labels or {}).items() if key in TOPOLOGY_LABELS} or None,
        None if spec.csi is None else csi.driver or "",
        csi.volume_attributes.kept() if csi.volume_attributes else None,
        spec.volume_mode,
        spec.node_affinity,
    )
    bound = spec.claim_ref if csi.driver == LONGHORN_CSI_DRIVER else None
    claim = intern(namespaced_key(bound.namespace or "", bound.name)) if bound and bound.name else None
    return _Volume(csi.volume_handle and intern(csi.volume_handle), claim, share(rest))


def build_volume(name: str, volume: _Volume) -> PersistentVolume:
    """Object."""
    rest = volume.rest
    csi = CSIPersistentVolumeSource(driver=rest.driver, volume_handle=volume.handle, volume_attributes=rest.attributes)
    return PersistentVolume(
        metadata=ObjectMeta(name=name, labels=rest.labels),
        spec=PersistentVolumeSpec(
            csi=None if rest.driver is None else csi,
            claim_ref=None if volume.claim is None else _reference(volume.claim),
            volume_mode=rest.volume_mode,
            node_affinity=rest.node_affinity,
        ),
    )


def _reference(key: str) -> ObjectReference:
    namespace, _, name = key.partition("/")
    return ObjectReference(namespace=namespace, name=name)
