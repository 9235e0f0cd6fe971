"""Longhorn's volumes and settings, and Kubernetes' storage, with all the fields that the commands read of them.

Invariant: every field can be absent or null, as in webhook.core.api.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from webhook.core.api import storage
from webhook.core.api.meta import ObjectMeta


class VolumeSpec(Struct, rename="camel", frozen=True, kw_only=True):
    """VolumeSpec. The access mode is rwo, rwx or rwop."""

    access_mode: str | None = None
    migratable: bool | None = None
    data_engine: str | None = None


class KubernetesStatus(Struct, rename="camel", frozen=True, kw_only=True):
    """KubernetesStatus: the name of the PersistentVolume, which can differ from the volume's name."""

    persistent_volume: str | None = field(default=None, name="pvName")


class VolumeStatus(Struct, rename="camel", frozen=True, kw_only=True):
    """VolumeStatus, in part."""

    kubernetes_status: KubernetesStatus | None = None


class Volume(Struct, rename="camel", frozen=True, kw_only=True):
    """Volume of Longhorn. Its name is the CSI volume handle."""

    metadata: ObjectMeta
    spec: VolumeSpec | None = None
    status: VolumeStatus | None = None

    @property
    def persistent_volume(self) -> str:
        """The name of its PersistentVolume; empty if it has none."""
        found = self.status.kubernetes_status if self.status else None
        return (found.persistent_volume if found else None) or ""


LONGHORN_VERSION: Final = "current-longhorn-version"  # the name of a Setting that Longhorn writes itself


class Setting(Struct, rename="camel", frozen=True, kw_only=True):
    """Setting of Longhorn."""

    metadata: ObjectMeta
    value: str | None = None


class PersistentVolumeSpec(storage.PersistentVolumeSpec, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.PersistentVolumeSpec, with the name of the StorageClass."""

    storage_class_name: str | None = None


class PersistentVolume(storage.PersistentVolume, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.PersistentVolume, with the way to its StorageClass."""

    spec: PersistentVolumeSpec | None = None


class TopologySelectorLabelRequirement(Struct, rename="camel", frozen=True, kw_only=True):
    """v1.TopologySelectorLabelRequirement: a node label, and the values that it may have."""

    key: str | None = None
    values: list[str] | None = None


class TopologySelectorTerm(Struct, rename="camel", frozen=True, kw_only=True):
    """v1.TopologySelectorTerm: requirements of node labels, ANDed."""

    match_label_expressions: list[TopologySelectorLabelRequirement] | None = None


class StorageClass(Struct, rename="camel", frozen=True, kw_only=True):
    """storage.k8s.io/v1 StorageClass: its parameters for Longhorn, and where its volumes may be."""

    metadata: ObjectMeta
    parameters: dict[str, str] | None = None
    allowed_topologies: list[TopologySelectorTerm] | None = None
