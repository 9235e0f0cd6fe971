"""KubeVirt's VirtualMachineInstances: the record of one. Only `reunite` watches them."""

from __future__ import annotations

from sys import intern

from msgspec import Struct, field

from webhook.core.api.quantity import milli_value, units
from webhook.core.reunite.migration import LABEL_REUNITE
from webhook.kube.client.metadata import Annotations
from webhook.kube.records.shared import share

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


class _Condition(Struct, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _GuestMemory(Struct, rename="camel", gc=False):
    guest: str | int | None = None  # of the spec
    guest_current: str | int | None = None  # of the status


class _Domain(Struct, gc=False):
    memory: _GuestMemory | None = None


class _VMISpec(Struct, gc=False):
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
    spec: _VMISpec | None = None
    status: _VMIStatus | None = None


class VMIRecord(Struct, frozen=True, gc=False):
    """What `reunite` knows of a VMI: its uid, its node, and the fields of core's VM with the same names.

    `memory_bytes`: of its guest, 0 if the VMI does not say.
    """

    uid: str
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
    return VMIRecord(
        uid=meta.uid,
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
    asked = wire.spec.domain.memory if wire.spec and wire.spec.domain else None
    written = (now and now.guest_current) or (asked and asked.guest)
    return units(milli_value(str(written)) or 0)


def to_object(_: str, record: VMIRecord) -> VMIRecord:
    """Return the record, which is all that is known."""
    return record
