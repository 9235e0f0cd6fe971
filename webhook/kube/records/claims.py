"""PersistentVolumeClaims: the record of one."""

from __future__ import annotations

from sys import intern
from typing import Final

from msgspec import Struct

from webhook.core.api.meta import ObjectMeta
from webhook.core.api.storage import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
)
from webhook.kube.records.shared import kept_name, share

_ACCESS_MODES: Final = 4  # that Kubernetes knows; the API server takes any number of the same


class _ClaimCommon(Struct, frozen=True, weakref=True):
    access_modes: list[str] | None
    volume_mode: str | None
    status: PersistentVolumeClaimStatus | None


class ClaimRecord(Struct, frozen=True, gc=False):
    """32 bytes a claim, and the name of its volume. Nearly all claims share a few `common` parts."""

    volume_name: str | None
    common: _ClaimCommon


def transform(wire: PersistentVolumeClaim) -> ClaimRecord:
    """Return the record of a claim: its volume, access modes, volume mode and status."""
    spec = wire.spec or PersistentVolumeClaimSpec()
    name = spec.volume_name and intern(kept_name(spec.volume_name))
    modes = spec.access_modes
    if modes and len(modes) > _ACCESS_MODES:
        modes = list(dict.fromkeys(modes))[:_ACCESS_MODES]
    return ClaimRecord(name, share(_ClaimCommon(modes, spec.volume_mode, wire.status)))


def to_object(key: str, record: ClaimRecord) -> PersistentVolumeClaim:
    """Return the claim of this cache key (NAMESPACE/NAME) and record."""
    namespace, _, name = key.partition("/")
    common = record.common
    return PersistentVolumeClaim(
        metadata=ObjectMeta(namespace=namespace, name=name),
        spec=PersistentVolumeClaimSpec(
            access_modes=common.access_modes, volume_name=record.volume_name, volume_mode=common.volume_mode
        ),
        status=common.status,
    )
