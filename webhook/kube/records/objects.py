"""What a cache stores of each kind: core's object with only the fields that core reads, and the indexes over some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from sys import intern
from typing import Any, Final

from msgspec.structs import replace

from webhook.core.api.longhorn import (
    LONGHORN_CSI_DRIVER,
    VOLUME_ATTRIBUTES,
    LonghornNode,
    LonghornNodeStatus,
    Need,
    ShareManager,
    ShareManagerStatus,
)
from webhook.core.api.meta import NAME_MAX_CHARS, Condition, ConfigMap, Namespace, ObjectMeta, OwnerReference, Present
from webhook.core.api.node import CSINode, Node, NodeStatus, csi_drivers_of
from webhook.core.api.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus
from webhook.core.api.virtual_machine import (
    LIVE_MIGRATABLE,
    VM_KIND,
    ClaimSource,
    Devices,
    Disk,
    Domain,
    VirtualMachine,
    VirtualMachineInstance,
    VirtualMachineSpec,
    VMINode,
    VMISpec,
    VMITemplateSpec,
    Volume,
)
from webhook.core.opt_in import kept_value
from webhook.core.reasons import LABEL_CO_SCHEDULE, SENTENCE_MAX_CHARS
from webhook.core.scheduler.cache import CSIDrivers, allocatable
from webhook.core.scheduler.cycle_state import TOPOLOGY_LABELS
from webhook.kube.informer.store import namespaced_key

_ACCESS_MODES: Final = 4  # that Kubernetes knows; the API server takes any number of the same
_CLAIMS_MAX: Final = 256  # maxItems of `volumes` in KubeVirt's CRDs; without the CRD's schema nothing else bounds them
_READY: Final = "Ready"


def kept_name(name: str) -> str:
    """Return what a cache keeps of a name or uid. No object has one that is longer than NAME_MAX_CHARS.

    Of a longer one a beginning stays that is longer, too. Therefore no object is found by it, as by the whole.
    """
    return name if len(name) <= NAME_MAX_CHARS else name[: NAME_MAX_CHARS + 1]


def _named(meta: ObjectMeta, **kept: Any) -> ObjectMeta:
    """Return the metadata with name and namespace, and what else is kept. A name alone is the cache key, too."""
    name = meta.name if meta.namespace else intern(meta.name or "")
    return ObjectMeta(name=name, namespace=word(meta.namespace), **kept)


def word(text: str | None) -> str | None:
    """Return the one string for a text that many objects have."""
    return text and intern(text)


def claim(wire: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """Return a claim with its volume, access modes, volume mode and status, and whether it is being deleted."""
    spec = wire.spec
    if spec:
        modes = list(map(intern, dict.fromkeys(spec.access_modes or ())))[:_ACCESS_MODES]
        spec = replace(spec, access_modes=modes, volume_name=word(spec.volume_name and kept_name(spec.volume_name)))
    status = wire.status and PersistentVolumeClaimStatus(phase=word(wire.status.phase))
    meta = _named(wire.metadata, deletion_timestamp=wire.metadata.deletion_timestamp)
    return PersistentVolumeClaim(metadata=meta, spec=spec, status=status)


def volume(wire: PersistentVolume) -> PersistentVolume:
    """Return a PersistentVolume with its topology labels, its node affinity, and the attributes that a rule reads.

    The claim of a volume of another driver than Longhorn's is left out: core never asks for it.
    """
    labels = {key: value for key, value in (wire.metadata.labels or {}).items() if key in TOPOLOGY_LABELS}
    spec, csi = wire.spec, wire.spec.csi if wire.spec else None
    if spec:
        attributes = (csi and csi.volume_attributes) or {}
        read = {key: intern(attributes[key]) for key in VOLUME_ATTRIBUTES if key in attributes}
        is_longhorn = csi is not None and csi.driver == LONGHORN_CSI_DRIVER
        spec = replace(
            spec,
            csi=csi and replace(csi, driver=word(csi.driver), volume_attributes=read or None),
            claim_ref=spec.claim_ref if is_longhorn else None,
        )
    return PersistentVolume(metadata=_named(wire.metadata, labels=labels or None), spec=spec)


def by_handle(key: str, stored: PersistentVolume) -> tuple[str, ...]:
    """Index a volume of Longhorn's driver by its CSI volume handle.

    Most volumes have their handle as name: the cache key already leads to those, so the index leaves them out.
    """
    csi = stored.longhorn_csi
    return (csi.volume_handle,) if csi and csi.volume_handle and csi.volume_handle != key else ()


def share_manager(wire: ShareManager) -> ShareManager:
    """Return a ShareManager with its uid, by which its pod names it, and its status."""
    status = wire.status and ShareManagerStatus(owner_id=word(wire.status.owner_id), state=word(wire.status.state))
    return ShareManager(metadata=_named(wire.metadata, uid=wire.metadata.uid), status=status)


def longhorn_node(wire: LonghornNode) -> LonghornNode:
    """Return a Longhorn node with conditions of a closed set of words."""
    return LonghornNode(metadata=_named(wire.metadata), status=(wire.status or LonghornNodeStatus()).known())


def by_lack(_: str, stored: LonghornNode) -> Iterator[Need]:
    """Index a Longhorn node by what it certainly lacks."""
    return (lack.need for lack in stored.lacks if lack.certain)


def csi_drivers(wire: CSINode) -> CSIDrivers:
    """Return the drivers of a CSINode with their limits: core reads nothing else of it."""
    return csi_drivers_of(wire.spec)


def namespace(wire: Namespace) -> Namespace:
    """Return a Namespace with its label LABEL_CO_SCHEDULE."""
    asked = kept_value(wire.metadata.label(LABEL_CO_SCHEDULE))
    return Namespace(metadata=_named(wire.metadata, labels=None if asked is None else {LABEL_CO_SCHEDULE: asked}))


def config_map(wire: ConfigMap) -> ConfigMap:
    """Return a ConfigMap, of which only the name counts: cluster-autoscaler rewrites its status every 10 s."""
    return ConfigMap(metadata=_named(wire.metadata))


def virtual_machine(wire: VirtualMachine) -> VirtualMachine:
    """Return a VirtualMachine with its claims, its failures to start, and what owns it."""
    owners = (each for each in wire.metadata.owner_references or () if each.kind)
    kept = [OwnerReference(kind=kept_name(each.kind or ""), name=kept_name(each.name or "")) for each in owners][:1]
    return VirtualMachine(
        metadata=_named(wire.metadata, owner_references=kept or None),
        spec=VirtualMachineSpec(template=VMITemplateSpec(spec=_with_claims(wire.spec.template.spec))),
        status=wire.status,
    )


def virtual_machine_instance(wire: VirtualMachineInstance) -> VirtualMachineInstance:
    """Return a VirtualMachineInstance with its uid, its VM, its claims, its node, and why KubeVirt can't migrate it."""
    owner, held = wire.virtual_machine, _unmigratable(wire.status)
    owners = None if owner is None else [OwnerReference(kind=VM_KIND, name=kept_name(owner))]
    return VirtualMachineInstance(
        metadata=_named(wire.metadata, uid=wire.metadata.uid, owner_references=owners),
        spec=_with_claims(wire.spec),
        status=VMINode(node_name=word(wire.node), conditions=held) if wire.node or held else None,
    )


def _unmigratable(status: VMINode | None) -> list[Condition] | None:
    """Return the condition by which KubeVirt can't migrate the VM; None if it has none."""
    found = status.condition(LIVE_MIGRATABLE) if status else None
    if found is None or found.status != "False":
        return None
    reason, message = kept_name(found.reason or ""), (found.message or "")[:SENTENCE_MAX_CHARS]
    return [Condition(type=LIVE_MIGRATABLE, status=found.status, reason=reason, message=message)]


def _with_claims(spec: VMISpec) -> VMISpec:
    """Return a spec that has the claims of this one, and a disk for each CD-ROM."""
    volumes, disks = [], []
    for each in spec.claims[:_CLAIMS_MAX]:
        name = kept_name(each.name)
        source = ClaimSource(claim_name=name, hotpluggable=each.hotpluggable or None)
        volumes.append(Volume(name=name if each.cdrom else None, persistent_volume_claim=source))
        if each.cdrom:
            disks.append(Disk(name=name, cdrom=Present()))
    return VMISpec(domain=Domain(devices=Devices(disks=disks)) if disks else None, volumes=volumes or None)


def by_named_claim(_: str, stored: VirtualMachine | VirtualMachineInstance) -> tuple[str, ...]:
    """Index a VM by the cache keys of its claims."""
    namespace_ = stored.metadata.namespace or ""
    return tuple(namespaced_key(namespace_, each.name) for each in stored.claims)


def vm_of(stored: VirtualMachine | VirtualMachineInstance) -> str:
    """Return the name of the VM. A VirtualMachineInstance without a VirtualMachine is one."""
    owner = stored.virtual_machine if isinstance(stored, VirtualMachineInstance) else None
    return owner or stored.metadata.name or ""


def node(wire: Node) -> Node:
    """Return a node with all of its labels, its spec, what it has for pods, and its condition Ready without a time."""
    meta, status = wire.metadata, wire.status or NodeStatus()
    labels = {intern(key): intern(value) for key, value in (meta.labels or {}).items()}
    ready = status.ready_condition
    return Node(
        metadata=_named(meta, labels=labels, deletion_timestamp=meta.deletion_timestamp),
        spec=wire.spec,
        status=NodeStatus(
            conditions=[Condition(type=_READY, status=ready.status)] if ready else [], allocatable=status.allocatable
        ),
    )


class NodeIndex:
    """The index over the nodes.

    Attributes:
        keys: the names of the nodes as a sequence, so that any position can be read in one step.
        allocatable: node name -> what the node has for pods, by resource.
        usable: how many nodes are Ready and not cordoned.
        from_karpenter: how many nodes Karpenter made.
    """

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.allocatable: dict[str, Mapping[str, int]] = {}
        self.usable = 0
        self.from_karpenter = 0
        self._positions: dict[str, int] = {}

    def put(self, key: str, old: Node | None, new: Node) -> Node:
        """Take in the node `new`, which was `old`. Return the node to store. A known key stays at its position."""
        if old is None or old.status != new.status:
            self.allocatable[key] = allocatable(new.status.allocatable if new.status else None)
        self.usable += new.usable - (old is not None and old.usable)
        self.from_karpenter += new.from_karpenter - (old is not None and old.from_karpenter)
        if key not in self._positions:
            self._positions[key] = len(self.keys)
            self.keys.append(key)
        return old if old is not None and old == new else new

    def drop(self, key: str, old: Node) -> None:
        """Remove the node, which was `old`. The last key takes its position."""
        del self.allocatable[key]
        self.usable -= old.usable
        self.from_karpenter -= old.from_karpenter
        position, last = self._positions.pop(key), self.keys.pop()
        if last != key:
            self.keys[position] = last
            self._positions[last] = position
