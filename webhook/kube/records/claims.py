"""PersistentVolumeClaims: what is kept of one."""

from __future__ import annotations

from sys import intern

from msgspec import Struct

from webhook.core.api.meta import ObjectMeta
from webhook.core.api.storage import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
)
from webhook.kube.client.metadata import BareMeta
from webhook.kube.records.shared import share


class WireClaim(Struct, gc=False):
    """A PersistentVolumeClaim."""

    metadata: BareMeta
    spec: PersistentVolumeClaimSpec | None = None
    status: PersistentVolumeClaimStatus | None = None


class _ClaimRest(Struct, frozen=True, gc=False):
    access_modes: list[str] | None
    volume_mode: str | None
    status: PersistentVolumeClaimStatus | None


class _Claim(Struct, frozen=True, gc=False):
    volume_name: str | None
    rest: _ClaimRest


def keep_claim(wire: WireClaim) -> _Claim:
    """Record."""
    spec = wire.spec or PersistentVolumeClaimSpec()
    name = spec.volume_name and intern(spec.volume_name)
    return _Claim(name, share(_ClaimRest(spec.access_modes, spec.volume_mode, wire.status)))


def build_claim(key: str, claim: _Claim) -> PersistentVolumeClaim:
    """Object."""
    namespace, _, name = key.partition("/")
    return PersistentVolumeClaim(
        metadata=ObjectMeta(namespace=namespace, name=name),
        spec=PersistentVolumeClaimSpec(
            access_modes=claim.rest.access_modes, volume_name=claim.volume_name, volume_mode=claim.rest.volume_mode
        ),
        status=claim.rest.status,
    )
