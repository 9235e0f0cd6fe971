"""v1.PersistentVolumeClaim and v1.PersistentVolume with the fields that a rule reads."""

from __future__ import annotations

from typing import Final

from webhook.core.api.affinity import NodeSelector
from webhook.core.api.longhorn import LONGHORN_CSI_DRIVER
from webhook.core.api.meta import ApiType, NamespacedName, ObjectMeta, ObjectReference, Present

_GO_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})  # strconv.ParseBool


class PersistentVolumeClaimSpec(ApiType):
    """v1.PersistentVolumeClaimSpec; `volume_name` is the bound PersistentVolume."""

    access_modes: list[str] | None = None
    volume_name: str | None = None
    volume_mode: str | None = None


class PersistentVolumeClaimStatus(ApiType):
    """v1.PersistentVolumeClaimStatus; the phase is Pending, Bound or Lost."""

    phase: str | None = None


class PersistentVolumeClaim(ApiType):
    """v1.PersistentVolumeClaim: the claim of a pod on storage."""

    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec | None = None
    status: PersistentVolumeClaimStatus | None = None


class CSIPersistentVolumeSource(ApiType):
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


class VolumeNodeAffinity(ApiType):
    """v1.VolumeNodeAffinity: the nodes from which a volume can be reached."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(ApiType):
    """v1.PersistentVolumeSpec: the claim that the volume is bound to, and its source.

    The source is that of a CSI driver, or an in-tree source that kube-scheduler translates to CSI
    (k8s.io/csi-translation-lib, translate.go).
    """

    csi: CSIPersistentVolumeSource | None = None
    claim_ref: ObjectReference | None = None
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    aws_elastic_block_store: Present | None = None
    azure_disk: Present | None = None
    azure_file: Present | None = None
    cinder: Present | None = None
    gce_persistent_disk: Present | None = None
    portworx_volume: Present | None = None
    vsphere_volume: Present | None = None

    def in_tree(self) -> str | None:
        """Return the name of the in-tree source that is set, as in Kubernetes; None with another source."""
        fields = zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True)
        return next((encoded for name, encoded in fields if isinstance(getattr(self, name), Present)), None)


class PersistentVolume(ApiType):
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
