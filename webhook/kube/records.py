"""What is decoded of each kind, and how little of it is remembered.

A cluster has 100,000 of some, so a cache holds records and not objects: what core reads of an object, less its name,
with equal parts shared. `build_*` makes core's object from it again. Invariant: what core reads of
build(key, keep(wire)) is what it would read of the object itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, field

from webhook.core.api.container import PodCondition
from webhook.core.api.longhorn import (
    LABEL_LONGHORN_COMPONENT,
    LONGHORN_CSI_DRIVER,
    SHARE_MANAGER_POD_PREFIX,
    LonghornNode,
    ShareManager,
    ShareManagerStatus,
    VolumeAttachment,
    VolumeAttachmentSpec,
)
from webhook.core.api.meta import ObjectMeta, ObjectReference
from webhook.core.api.node import CSINodeSpec, Node, NodeSpec, NodeStatus
from webhook.core.api.pod import POD_SCHEDULED, UNSCHEDULABLE, Pod, PodSpec, PodStatus
from webhook.core.api.storage import (
    CSIPersistentVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
)
from webhook.core.scheduler.plugins.node_volume_limits import limits
from webhook.core.scheduler.plugins.volume_zone import TOPOLOGY_LABELS

T = TypeVar("T")
_SHARED_MAX: Final = 20_000  # distinct parts; then it starts anew, so that odd clusters cost memory and no more
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


def share(part: T) -> T:
    """The one value that stands for all equal ones. Nobody may change it."""
    if len(_shared) > _SHARED_MAX:
        _shared.clear()
    shared: T = _shared.setdefault(type(part).__name__.encode() + msgspec.json.encode(part), part)
    return shared


def claim_key(namespace: str, name: str) -> str:
    """What a claim is kept under."""
    return f"{namespace}/{name}"


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
    claim = intern(claim_key(bound.namespace or "", bound.name)) if bound and bound.name else None
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


def keep_share_manager(wire: WireShareManager) -> ShareManagerStatus | None:
    """Record."""
    return share(wire.status)


def build_share_manager(name: str, status: ShareManagerStatus | None) -> ShareManager:
    """Object."""
    return ShareManager(metadata=ObjectMeta(name=name), status=status)


def _readiness(status: NodeStatus | None) -> NodeStatus:
    """Of the conditions Ready alone: a node has many, and only this one is read."""
    ready = [condition for condition in (status and status.conditions) or () if condition.type == _READY]
    return NodeStatus(conditions=ready[:1], allocatable=status.allocatable if status else None)


def keep_node(wire: WireNode) -> Node:
    """Record."""
    labels = {intern(key): intern(value) for key, value in (wire.metadata.labels or {}).items()}
    return Node(
        metadata=ObjectMeta(
            name=intern(wire.metadata.name), labels=labels, deletion_timestamp=wire.metadata.deletion_timestamp
        ),
        spec=share(wire.spec),
        status=share(_readiness(wire.status)),
    )


def keep_longhorn_node(wire: WireLonghornNode) -> NodeStatus:
    """Record."""
    return share(_readiness(wire.status))


def build_longhorn_node(name: str, status: NodeStatus | None) -> LonghornNode:
    """Object."""
    return LonghornNode(metadata=ObjectMeta(name=name), status=status)


class WireCSINode(Struct, gc=False):
    """A CSINode."""

    metadata: BareMeta
    spec: CSINodeSpec | None = None


def keep_csi_node(wire: WireCSINode) -> Mapping[str, int]:
    """Record: driver -> most volumes."""
    return share(limits(wire.spec))


def build_csi_node(_: str, most: Mapping[str, int]) -> Mapping[str, int]:
    """The record is what is asked for."""
    return most


class WireAttachment(Struct, gc=False):
    """A VolumeAttachment of Longhorn's. It is never kept: only what it says now counts."""

    metadata: BareMeta
    spec: VolumeAttachmentSpec | None = None


def keep_attachment(wire: WireAttachment) -> VolumeAttachmentSpec | None:
    """Record."""
    return wire.spec


def build_attachment(name: str, spec: VolumeAttachmentSpec | None) -> VolumeAttachment:
    """Object."""
    return VolumeAttachment(metadata=ObjectMeta(name=name), spec=spec)


def placed_at(status: PodStatus | None) -> str | None:
    """Since when a pod has its node, or waits for one."""
    condition = status.scheduled if status else None
    return condition.last_transition_time if condition else None


def refusal(status: PodStatus | None) -> str | None:
    """Why kube-scheduler finds no node for a pod, in its words; None where it does not say so."""
    condition = status.scheduled if status else None
    return (condition.message or "") if condition and condition.reason == UNSCHEDULABLE else None


def build_status(phase: str | None, placed_at: str | None, refusal: str | None = None) -> PodStatus:
    """Object, as far as it is kept."""
    if placed_at is None and refusal is None:
        return PodStatus(phase=phase)
    condition = PodCondition(
        type=POD_SCHEDULED,
        reason=None if refusal is None else UNSCHEDULABLE,
        message=refusal,
        last_transition_time=placed_at,
    )
    return PodStatus(phase=phase, conditions=[condition])


class _PodRest(Struct, frozen=True, gc=False):
    labels: dict[str, str] | None
    deletion_timestamp: str | None
    node_name: str | None
    phase: str | None


class _Pod(Struct, frozen=True, gc=False):
    placed_at: str | None
    rest: _PodRest


def keep_pod(wire: WirePod) -> _Pod:
    """Record."""
    meta, labels = wire.metadata, wire.metadata.labels or {}
    component = labels.get(LABEL_LONGHORN_COMPONENT)
    rest = _PodRest(
        None if component is None else {LABEL_LONGHORN_COMPONENT: component},
        meta.deletion_timestamp,
        wire.spec.node_name if wire.spec else None,
        wire.status.phase if wire.status else None,
    )
    return _Pod(placed_at(wire.status), share(rest))


def pod_key(name: str) -> str:
    """The volume of a pod that is called share-manager-VOLUME; /NAME, which is no volume's name, of any other pod."""
    volume = name.removeprefix(SHARE_MANAGER_POD_PREFIX)
    return f"/{name}" if volume == name else volume


def build_pod(key: str, pod: _Pod) -> Pod:
    """Object."""
    name, rest = key[1:] if key.startswith("/") else SHARE_MANAGER_POD_PREFIX + key, pod.rest
    return Pod(
        metadata=ObjectMeta(name=name, labels=rest.labels, deletion_timestamp=rest.deletion_timestamp),
        spec=PodSpec(node_name=rest.node_name),
        status=build_status(rest.phase, pod.placed_at),
    )
