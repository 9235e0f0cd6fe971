"""v1.PersistentVolumeClaim and v1.PersistentVolume with the fields that a rule reads."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from webhook.core.api.affinity import NodeSelector
from webhook.core.api.longhorn import LONGHORN_CSI_DRIVER
from webhook.core.api.meta import NamespacedName, ObjectMeta, ObjectReference, Present

_GO_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})  # strconv.ParseBool


class PersistentVolumeClaimSpec(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.PersistentVolumeClaimSpec; `volume_name` is the bound PersistentVolume."""

    access_modes: list[str] | None = None
    volume_name: str | None = None
    volume_mode: str | None = None


class PersistentVolumeClaimStatus(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.PersistentVolumeClaimStatus; the phase is Pending, Bound or Lost."""

    phase: str | None = None


class PersistentVolumeClaim(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.PersistentVolumeClaim: the claim of a pod on storage."""

    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec | None = None
    status: PersistentVolumeClaimStatus | None = None


class CSIPersistentVolumeSource(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.CSIPersistentVolumeSource. `volume_handle` is Longhorn's volume; the PersistentVolume's name can differ."""

    driver: str | None = None
    volume_handle: str | None = None
    volume_attributes: dict[str, str] | None = None

    def attribute(self, name: str) -> str | None:
        """Return a StorageClass parameter, as Longhorn copies it (longhorn-manager csi/controller_server.go)."""
        return (self.volume_attributes or {}).get(name)

    def flag(self, name: str) -> bool:
        """Whether a parameter is true, as Longhorn reads it (longhorn-manager csi/util.go, getVolumeOptions)."""
        return self.attribute(name) in _GO_TRUE


class VolumeNodeAffinity(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.VolumeNodeAffinity: the nodes from which a volume can be reached."""

    required: NodeSelector | None = None


class InTreeSources(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """The in-tree sources that kube-scheduler translates to CSI (k8s.io/csi-translation-lib, translate.go)."""

    aws_elastic_block_store: Present | None = None
    azure_disk: Present | None = None
    azure_file: Present | None = None
    cinder: Present | None = None
    gce_persistent_disk: Present | None = None
    portworx_volume: Present | None = None
    vsphere_volume: Present | None = None

    def in_tree(self) -> str | None:
        """Return the name of the source that is set, as in Kubernetes; None if the volume has another source."""
        return next((encoded for name, encoded in _IN_TREE.items() if getattr(self, name) is not None), None)


_IN_TREE: Final = dict(zip(InTreeSources.__struct_fields__, InTreeSources.__struct_encode_fields__, strict=True))


def in_tree_sources(encoded: str | None) -> dict[str, Present]:
    """Return the field of the source with this name, for the constructor of an InTreeSources."""
    return {name: Present() for name, known in _IN_TREE.items() if known == encoded}


class PersistentVolumeSpec(InTreeSources, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.PersistentVolumeSpec: the volume of a CSI or in-tree driver, and the claim that the volume is bound to."""

    csi: CSIPersistentVolumeSource | None = None
    claim_ref: ObjectReference | None = None
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.PersistentVolume: the volume behind a claim."""

    metadata: ObjectMeta
    spec: PersistentVolumeSpec | None = None

    @property
    def longhorn_csi(self) -> CSIPersistentVolumeSource | None:
        """The volume's CSI source, None if the volume is not of Longhorn's driver."""
        csi = self.spec.csi if self.spec else None
        return csi if csi and csi.driver == LONGHORN_CSI_DRIVER else None


def claim_of(volume: PersistentVolume | None, handle: str) -> NamespacedName | None:
    """Return the claim of a PersistentVolume, None if that is not the PersistentVolume of this Longhorn volume."""
    csi = volume.longhorn_csi if volume else None
    claim = volume.spec.claim_ref if csi and csi.volume_handle == handle and volume and volume.spec else None
    return NamespacedName(claim.namespace or "", claim.name) if claim and claim.name else None
