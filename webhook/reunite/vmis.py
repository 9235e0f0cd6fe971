"""VirtualMachineInstances as `reunite` watches them: the record that an admission reads, and more."""

from __future__ import annotations

from sys import intern

from msgspec import Struct, field

from webhook.core.api import virtual_machine
from webhook.core.api.meta import OwnerReference
from webhook.core.api.quantity import milli_value, units
from webhook.core.reunite.migration import LABEL_REUNITE
from webhook.kube.client.metadata import Annotations
from webhook.kube.records import virtual_machines
from webhook.kube.records.shared import share
from webhook.kube.records.virtual_machines import VirtualMachineInstanceRecord

_LIVE_MIGRATABLE = "LiveMigratable"


class _VMIAnnotations(Annotations, gc=False):
    reunite: str | None = field(name=LABEL_REUNITE, default=None)


class _VMIMeta(Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    annotations: _VMIAnnotations | None = None
    owner_references: list[OwnerReference] | None = None


class _Condition(Struct, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _GuestMemory(Struct, rename="camel", gc=False):
    guest: str | int | None = None  # of the spec
    guest_current: str | int | None = None  # of the status


class _Domain(virtual_machine.Domain, rename="camel", frozen=True, kw_only=True):
    memory: _GuestMemory | None = None


class _VMISpec(virtual_machine.VMISpec, rename="camel", frozen=True, kw_only=True):
    domain: _Domain | None = None


class _VMIStatus(Struct, rename="camel", gc=False):
    phase: str = ""
    node_name: str = ""
    evacuation_node_name: str = ""
    conditions: list[_Condition] | None = None
    memory: _GuestMemory | None = None


class WireVMI(Struct, gc=False):
    """A VirtualMachineInstance, as far as it is decoded."""

    metadata: _VMIMeta
    spec: _VMISpec = field(default_factory=_VMISpec)
    status: _VMIStatus | None = None


class VMIRecord(VirtualMachineInstanceRecord, frozen=True, kw_only=True, gc=False):
    """What `reunite` knows of a VMI: also its node, and the fields of core's VM with the same names.

    `memory_bytes`: of its guest, 0 if the VMI does not say.
    """

    node: str
    started: str
    phase: str
    reunite: str | None
    unmigratable: str
    evacuates: str | None
    memory_bytes: int = 0


def transform(wire: WireVMI) -> VMIRecord:
    """Return the record of a VMI. KubeVirt refuses a migration only if its condition LiveMigratable is False.

    Upstream: pkg/virt-api/webhooks/validating-webhook/admitters/migration-create-admitter.go, isMigratable.
    """
    meta, status = wire.metadata, wire.status or _VMIStatus()
    migratable = next((each for each in status.conditions or () if each.type == _LIVE_MIGRATABLE), None)
    unmigratable = ""
    if migratable and migratable.status == "False":
        unmigratable = f"{migratable.reason}: {migratable.message}"
    read = virtual_machines.transform_vmi(wire)
    return VMIRecord(
        read.claims,
        read.marks,
        meta.uid,
        read.virtual_machine,
        node=intern(status.node_name),
        started=meta.creation_timestamp,
        phase=share(status.phase),
        reunite=meta.annotations.reunite if meta.annotations else None,
        unmigratable=share(unmigratable),
        evacuates=status.evacuation_node_name or None,
        memory_bytes=_memory_bytes(wire),
    )


def _memory_bytes(wire: WireVMI) -> int:
    """Return the memory of the guest: what it has now, else what its spec asks for."""
    now = wire.status.memory if wire.status else None
    asked = wire.spec.domain.memory if wire.spec.domain else None
    written = (now and now.guest_current) or (asked and asked.guest)
    return units(milli_value(str(written)) or 0)
