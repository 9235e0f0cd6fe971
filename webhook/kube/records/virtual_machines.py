"""VirtualMachines and VirtualMachineInstances: the record of one, and the index function over their claims."""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern

from msgspec import Struct, field

from webhook.core.api.meta import ObjectMeta, OwnerReference
from webhook.core.api.virtual_machine import (
    VM_KIND,
    StartFailure,
    VirtualMachine,
    VirtualMachineInstance,
    VirtualMachineSpec,
    VirtualMachineStatus,
    VMClaim,
    VMISpec,
    VMITemplateSpec,
)
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE
from webhook.kube.client.metadata import Annotations
from webhook.kube.informer.resource import namespaced_key
from webhook.kube.records.shared import share


class _OwnAnnotations(Annotations, gc=False):
    co_schedule: str | None = field(name=ANNOTATION_CO_SCHEDULE, default=None)


class _WireVMMeta(Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    annotations: _OwnAnnotations | None = None


class WireVirtualMachine(Struct, gc=False):
    """A VirtualMachine, as far as it is decoded."""

    metadata: _WireVMMeta
    spec: VirtualMachineSpec = field(default_factory=VirtualMachineSpec)
    status: VirtualMachineStatus | None = None


class _WireVMIMeta(Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str | None = None
    resource_version: str = ""
    annotations: Annotations | None = None
    owner_references: list[OwnerReference] | None = None


class WireVirtualMachineInstance(Struct, gc=False):
    """A VirtualMachineInstance, as far as it is decoded."""

    metadata: _WireVMIMeta
    spec: VMISpec = field(default_factory=VMISpec)


_Marks = tuple[tuple[bool, bool], ...]
"""Of each claim whether it is hotpluggable and a CD-ROM; empty if none is, as of nearly all VMs."""


class VirtualMachineRecord(Struct, frozen=True, gc=False):
    """48 bytes a VM, and 48 for one claim.

    `claims`: their cache keys, which are the strings of the claims' cache. `misplaced`: the VM's own annotation, which
    is copied to no pod; None if the template has one.
    """

    claims: tuple[str, ...]
    marks: _Marks
    start_failures: int
    misplaced: str | None


class VirtualMachineInstanceRecord(Struct, frozen=True, gc=False):
    """48 bytes a VMI, 48 for one claim, and its uid.

    `virtual_machine`: the name of the VM that owns the VMI. It is None without such an owner, and empty for the name
    that the VMI has, because KubeVirt gives it its VM's name.
    """

    claims: tuple[str, ...]
    marks: _Marks
    uid: str | None
    virtual_machine: str | None


def transform_vm(wire: WireVirtualMachine) -> VirtualMachineRecord:
    """Return the record of a VirtualMachine."""
    meta, template = wire.metadata, wire.spec.template.metadata
    vm = VirtualMachine(metadata=ObjectMeta(), spec=wire.spec, status=wire.status)
    keys, marks = _kept(meta.namespace, vm.claims)
    placed = template is not None and template.annotation(ANNOTATION_CO_SCHEDULE) is not None
    misplaced = meta.annotations.co_schedule if meta.annotations and not placed else None
    return VirtualMachineRecord(keys, marks, vm.start_failures, share(misplaced))


def transform_vmi(wire: WireVirtualMachineInstance) -> VirtualMachineInstanceRecord:
    """Return the record of a VMI."""
    meta = wire.metadata
    owner = next((owner.name for owner in meta.owner_references or () if owner.kind == VM_KIND), None)
    keys, marks = _kept(meta.namespace, wire.spec.claims)
    return VirtualMachineInstanceRecord(keys, marks, meta.uid, "" if owner == meta.name else owner)


def to_vm(key: str, record: VirtualMachineRecord) -> VirtualMachine:
    """Return the VirtualMachine of this cache key (NAMESPACE/NAME) and record."""
    namespace, _, name = key.partition("/")
    failure = StartFailure(consecutive_fail_count=record.start_failures)
    annotations = None if record.misplaced is None else {ANNOTATION_CO_SCHEDULE: record.misplaced}
    return VirtualMachine(
        metadata=ObjectMeta(namespace=namespace, name=name, annotations=annotations),
        spec=VirtualMachineSpec(template=VMITemplateSpec(spec=_StoredSpec(keys=record.claims, marks=record.marks))),
        status=VirtualMachineStatus(start_failure=failure) if record.start_failures else None,
    )


def to_vmi(key: str, record: VirtualMachineInstanceRecord) -> VirtualMachineInstance:
    """Return the VirtualMachineInstance of this cache key (NAMESPACE/NAME) and record."""
    namespace, _, name = key.partition("/")
    owner = None if record.virtual_machine is None else OwnerReference(kind=VM_KIND, name=vm_of(key, record))
    return VirtualMachineInstance(
        metadata=ObjectMeta(
            namespace=namespace, name=name, uid=record.uid, owner_references=None if owner is None else [owner]
        ),
        spec=_StoredSpec(keys=record.claims, marks=record.marks),
    )


def by_named_claim(_: str, record: VirtualMachineRecord | VirtualMachineInstanceRecord) -> tuple[str, ...]:
    """Index a VM by the cache keys of its claims."""
    return record.claims


def vm_of(key: str, record: VirtualMachineRecord | VirtualMachineInstanceRecord) -> str:
    """Return the name of the VM with this cache key (NAMESPACE/NAME) and record. Without a VM a VMI is one."""
    owner = record.virtual_machine if isinstance(record, VirtualMachineInstanceRecord) else None
    return owner or key.partition("/")[2]


def _kept(namespace: str, claims: Sequence[VMClaim]) -> tuple[tuple[str, ...], _Marks]:
    marks = tuple((claim.hotpluggable, claim.cdrom) for claim in claims)
    keys = tuple(intern(namespaced_key(namespace, claim.name)) for claim in claims)
    return keys, share(marks) if any(map(any, marks)) else ()


class _StoredSpec(VMISpec, frozen=True, kw_only=True):
    """A spec of which only the claims are stored: their cache keys and marks."""

    keys: tuple[str, ...]
    marks: _Marks

    @property
    def claims(self) -> tuple[VMClaim, ...]:
        """The claims that the record has."""
        names = (key.partition("/")[2] for key in self.keys)
        if not self.marks:
            return tuple(map(VMClaim, names))
        return tuple(VMClaim(name, *mark) for name, mark in zip(names, self.marks, strict=True))
