"""VirtualMachines and VirtualMachineInstances: the record of one, and the index function over their claims."""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern
from typing import Final

from msgspec import Struct

from webhook.core.api.meta import ObjectMeta, OwnerReference
from webhook.core.api.virtual_machine import (
    VM_KIND,
    StartFailure,
    VirtualMachine,
    VirtualMachineInstance,
    VirtualMachineSpec,
    VirtualMachineStatus,
    VMClaim,
    VMINode,
    VMISpec,
    VMITemplateSpec,
)
from webhook.core.opt_in import kept_value
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE
from webhook.kube.informer.resource import namespaced_key
from webhook.kube.records.shared import kept_name

_MARKS: Final = {(False, False): "-", (True, False): "h", (False, True): "c", (True, True): "b"}
"""Whether a claim is hotpluggable, and a CD-ROM, as one character."""
_MARKED: Final = {mark: flags for flags, mark in _MARKS.items()}


_CLAIMS_MAX: Final = 256  # maxItems of `volumes` in KubeVirt's CRDs; without the CRD's schema nothing else bounds them


class VirtualMachineRecord(Struct, frozen=True, gc=False):
    """48 bytes a VM, and 48 for one claim.

    `claims`: their cache keys, which are the strings of the claims' cache. `marks`: one of `_MARKS` for each; empty
    if no claim is hotpluggable or a CD-ROM, as of nearly all VMs. `misplaced`: the VM's own annotation, which
    is copied to no pod; None if the template has one.
    """

    claims: tuple[str, ...]
    marks: str
    start_failures: int
    misplaced: str | None


class VirtualMachineInstanceRecord(Struct, frozen=True, gc=False):
    """56 bytes a VMI, 48 for one claim, and its uid. `node`: where the VM runs, or None.

    `virtual_machine`: the name of the VM that owns the VMI. It is None without such an owner, and empty for the name
    that the VMI has, because KubeVirt gives it its VM's name.
    """

    claims: tuple[str, ...]
    marks: str
    uid: str | None
    virtual_machine: str | None
    node: str | None


def transform_vm(wire: VirtualMachine) -> VirtualMachineRecord:
    """Return the record of a VirtualMachine."""
    template = wire.spec.template.metadata
    keys, marks = _kept(wire.metadata.namespace, wire.claims)
    placed = template is not None and template.annotation(ANNOTATION_CO_SCHEDULE) is not None
    misplaced = None if placed else kept_value(wire.metadata.annotation(ANNOTATION_CO_SCHEDULE))
    return VirtualMachineRecord(keys, marks, wire.start_failures, misplaced and intern(misplaced))


def transform_vmi(wire: VirtualMachineInstance) -> VirtualMachineInstanceRecord:
    """Return the record of a VMI."""
    meta, owner = wire.metadata, wire.virtual_machine
    keys, marks = _kept(meta.namespace, wire.claims)
    name = "" if owner == meta.name else owner and kept_name(owner)
    return VirtualMachineInstanceRecord(keys, marks, meta.uid, name, wire.node and intern(wire.node))


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
        status=None if record.node is None else VMINode(node_name=record.node),
    )


def by_named_claim(_: str, record: VirtualMachineRecord | VirtualMachineInstanceRecord) -> tuple[str, ...]:
    """Index a VM by the cache keys of its claims."""
    return record.claims


def vm_of(key: str, record: VirtualMachineRecord | VirtualMachineInstanceRecord) -> str:
    """Return the name of the VM with this cache key (NAMESPACE/NAME) and record. Without a VM a VMI is one."""
    owner = record.virtual_machine if isinstance(record, VirtualMachineInstanceRecord) else None
    return owner or key.partition("/")[2]


def _kept(namespace: str | None, claims: Sequence[VMClaim]) -> tuple[tuple[str, ...], str]:
    claims = claims[:_CLAIMS_MAX]
    marks = "".join(_MARKS[claim.hotpluggable, claim.cdrom] for claim in claims)
    keys = tuple(intern(namespaced_key(namespace or "", kept_name(claim.name))) for claim in claims)
    return keys, intern(marks) if marks.strip(_MARKS[False, False]) else ""


class _StoredSpec(VMISpec, frozen=True, kw_only=True):
    """A spec of which only the claims are stored: their cache keys and marks."""

    keys: tuple[str, ...]
    marks: str

    @property
    def claims(self) -> tuple[VMClaim, ...]:
        """The claims that the record has."""
        names = (key.partition("/")[2] for key in self.keys)
        if not self.marks:
            return tuple(map(VMClaim, names))
        return tuple(VMClaim(name, *_MARKED[mark]) for name, mark in zip(names, self.marks, strict=True))
