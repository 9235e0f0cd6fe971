"""What is decoded of each kind, and how little of it is remembered.

A cluster has 100,000 of some, so a cache holds records and not objects: what core reads of an object, less its name,
with equal parts shared. `build_*` makes core's object from it again. Invariant: what core reads of
build(key, keep(wire)) is what it would read of the object itself.
"""

from __future__ import annotations

from sys import intern
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, field

from webhook.core.feasibility import TOPOLOGY_LABELS
from webhook.core.objects import (
    LABEL_LONGHORN_COMPONENT,
    SHARE_MANAGER_POD_PREFIX,
    CSIPersistentVolumeSource,
    LonghornNode,
    Node,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    Pod,
    PodSpec,
    PodStatus,
    ShareManager,
    ShareManagerStatus,
    VolumeNodeAffinity,
)

T = TypeVar("T")
_SHARED_MAX: Final = 20_000  # distinct parts; then it starts anew, so that odd clusters cost memory and no more
_MIGRATABLE: Final = "migratable"
_READY: Final = "Ready"


class Annotations(Struct, gc=False):
    """The one annotation that a list by watch ends with."""

    initial_events_end: str | None = field(name="k8s.io/initial-events-end", default=None)


class WireMeta(Struct, rename="camel", gc=False):
    """metav1.ObjectMeta as it is on the wire, as far as it is read."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: Annotations | None = None


class BareMeta(Struct, rename="camel", gc=False):
    """WireMeta of kinds whose labels nobody reads."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    annotations: Annotations | None = None


class WireClaim(Struct, gc=False):
    """A PersistentVolumeClaim."""

    metadata: BareMeta
    spec: PersistentVolumeClaimSpec | None = None
    status: PersistentVolumeClaimStatus | None = None


class _Attributes(Struct, gc=False):
    migratable: str | None = None


class _WireCSI(Struct, rename="camel", gc=False):
    driver: str | None = None
    volume_handle: str | None = None
    volume_attributes: _Attributes | None = None


class _WireVolumeSpec(Struct, rename="camel", gc=False):
    csi: _WireCSI | None = None
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None


class WireVolume(Struct, gc=False):
    """A PersistentVolume."""

    metadata: WireMeta
    spec: _WireVolumeSpec | None = None


class WireShareManager(Struct, gc=False):
    """A ShareManager."""

    metadata: BareMeta
    status: ShareManagerStatus | None = None


class WireNode(Struct, gc=False):
    """A core Node."""

    metadata: WireMeta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class WireLonghornNode(Struct, gc=False):
    """A nodes.longhorn.io."""

    metadata: BareMeta
    status: NodeStatus | None = None


class _WirePodSpec(Struct, rename="camel", gc=False):
    node_name: str | None = None


class WirePod(Struct, gc=False):
    """A share-manager pod."""

    metadata: WireMeta
    spec: _WirePodSpec | None = None
    status: PodStatus | None = None


_shared: dict[bytes, Any] = {}


def _share(part: T) -> T:
    """The one value that stands for all equal ones. Nobody may change it."""
    if len(_shared) > _SHARED_MAX:
        _shared.clear()
    shared: T = _shared.setdefault(type(part).__name__.encode() + msgspec.json.encode(part), part)
    return shared


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
    return _Claim(name, _share(_ClaimRest(spec.access_modes, spec.volume_mode, wire.status)))


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


class _VolumeRest(Struct, frozen=True, gc=False):
    """A PersistentVolume less its names; `driver` is None for one that is not CSI's."""

    labels: dict[str, str] | None
    driver: str | None
    attributes: dict[str, str] | None
    volume_mode: str | None
    node_affinity: VolumeNodeAffinity | None


class _Volume(Struct, frozen=True, gc=False):
    handle: str | None
    rest: _VolumeRest


def keep_volume(wire: WireVolume) -> _Volume:
    """Record."""
    spec = wire.spec or _WireVolumeSpec()
    csi = spec.csi or _WireCSI()
    migratable = csi.volume_attributes.migratable if csi.volume_attributes else None
    rest = _VolumeRest(
        {key: value for key, value in (wire.metadata.labels or {}).items() if key in TOPOLOGY_LABELS} or None,
        None if spec.csi is None else csi.driver or "",
        None if migratable is None else {_MIGRATABLE: migratable},
        spec.volume_mode,
        spec.node_affinity,
    )
    return _Volume(csi.volume_handle and intern(csi.volume_handle), _share(rest))


def build_volume(name: str, volume: _Volume) -> PersistentVolume:
    """Object."""
    rest = volume.rest
    csi = CSIPersistentVolumeSource(driver=rest.driver, volume_handle=volume.handle, volume_attributes=rest.attributes)
    return PersistentVolume(
        metadata=ObjectMeta(name=name, labels=rest.labels),
        spec=PersistentVolumeSpec(
            csi=None if rest.driver is None else csi, volume_mode=rest.volume_mode, node_affinity=rest.node_affinity
        ),
    )


def keep_share_manager(wire: WireShareManager) -> ShareManagerStatus | None:
    """Record."""
    return _share(wire.status)


def build_share_manager(name: str, status: ShareManagerStatus | None) -> ShareManager:
    """Object."""
    return ShareManager(metadata=ObjectMeta(name=name), status=status)


def _readiness(status: NodeStatus | None) -> NodeStatus:
    """The condition Ready alone: a node has many, and only this one is read."""
    ready = [condition for condition in (status and status.conditions) or () if condition.type == _READY]
    return NodeStatus(conditions=ready[:1])


def keep_node(wire: WireNode) -> Node:
    """Record."""
    labels = {intern(key): intern(value) for key, value in (wire.metadata.labels or {}).items()}
    return Node(
        metadata=ObjectMeta(
            name=intern(wire.metadata.name), labels=labels, deletion_timestamp=wire.metadata.deletion_timestamp
        ),
        spec=_share(wire.spec),
        status=_share(_readiness(wire.status)),
    )


def keep_longhorn_node(wire: WireLonghornNode) -> NodeStatus:
    """Record."""
    return _share(_readiness(wire.status))


def build_longhorn_node(name: str, status: NodeStatus | None) -> LonghornNode:
    """Object."""
    return LonghornNode(metadata=ObjectMeta(name=name), status=status)


class _Pod(Struct, frozen=True, gc=False):
    labels: dict[str, str] | None
    deletion_timestamp: str | None
    node_name: str | None
    status: PodStatus | None


def keep_pod(wire: WirePod) -> _Pod:
    """Record."""
    meta, labels = wire.metadata, wire.metadata.labels or {}
    component = labels.get(LABEL_LONGHORN_COMPONENT)
    return _share(
        _Pod(
            None if component is None else {LABEL_LONGHORN_COMPONENT: component},
            meta.deletion_timestamp,
            wire.spec.node_name if wire.spec else None,
            wire.status,
        )
    )


def pod_key(name: str) -> str:
    """The volume of a pod that is called share-manager-VOLUME; /NAME, which is no volume's name, of any other pod."""
    volume = name.removeprefix(SHARE_MANAGER_POD_PREFIX)
    return f"/{name}" if volume == name else volume


def build_pod(key: str, pod: _Pod) -> Pod:
    """Object."""
    name = key[1:] if key.startswith("/") else SHARE_MANAGER_POD_PREFIX + key
    return Pod(
        metadata=ObjectMeta(name=name, labels=pod.labels, deletion_timestamp=pod.deletion_timestamp),
        spec=PodSpec(node_name=pod.node_name),
        status=pod.status,
    )
