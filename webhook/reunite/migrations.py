"""KubeVirt's VirtualMachineInstanceMigrations: the record of one is core's Migration. Only `reunite` watches them."""

from __future__ import annotations

from sys import intern
from typing import Final

from msgspec import Struct, field

from webhook.core.reunite.migration import (
    ANNOTATION_EVACUATION,
    ANNOTATION_MOVED_AWAY,
    ANNOTATION_WORKLOAD_UPDATE,
    LABEL_REUNITE,
    Migration,
    moved_away_of,
)
from webhook.kube.client.metadata import Annotations

_FINAL: Final = ("Succeeded", "Failed")


class _MigrationAnnotations(Annotations, gc=False):
    evacuates: str | None = field(name=ANNOTATION_EVACUATION, default=None)
    updates: str | None = field(name=ANNOTATION_WORKLOAD_UPDATE, default=None)
    moved_away: str | None = field(name=ANNOTATION_MOVED_AWAY, default=None)


class _MigrationMeta(Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: _MigrationAnnotations | None = None


class _Spec(Struct, rename="camel", gc=False):
    vmi_name: str = ""
    priority: str | None = None
    added_node_selector: dict[str, str] | None = None


class _PhaseTime(Struct, rename="camel", gc=False):
    phase: str = ""
    phase_transition_timestamp: str | None = None


class _State(Struct, rename="camel", gc=False):
    source_node: str = ""
    target_node: str = ""


class _MigrationStatus(Struct, rename="camel", gc=False):
    phase: str = ""
    phase_transition_timestamps: list[_PhaseTime] | None = None
    migration_state: _State | None = None


class WireMigration(Struct, gc=False):
    """A VirtualMachineInstanceMigration, as far as it is decoded."""

    metadata: _MigrationMeta
    spec: _Spec = field(default_factory=_Spec)
    status: _MigrationStatus | None = None


def transform(wire: WireMigration) -> Migration:
    """Return the migration. `ended` is the time of the phase Succeeded or Failed."""
    meta, status = wire.metadata, wire.status or _MigrationStatus()
    annotations, state = meta.annotations or _MigrationAnnotations(), status.migration_state or _State()
    times = (
        each.phase_transition_timestamp for each in status.phase_transition_timestamps or () if each.phase in _FINAL
    )
    return Migration(
        namespace=intern(meta.namespace),
        name=meta.name,
        uid=meta.uid,
        vmi=intern(wire.spec.vmi_name),
        created=meta.creation_timestamp,
        resource_version=meta.resource_version,
        deleted=meta.deletion_timestamp is not None,
        phase=intern(status.phase),
        ended=next(times, None),
        ours=LABEL_REUNITE in (meta.labels or ()),
        names_target=bool(wire.spec.added_node_selector),
        evacuates=annotations.evacuates,
        source_node=intern(state.source_node) if state.source_node else None,
        target_node=intern(state.target_node) if state.target_node else None,
        priority=intern(wire.spec.priority or ""),
        updates=annotations.updates is not None,
        moved_away=moved_away_of(annotations.moved_away),
    )


def to_object(_: str, record: Migration) -> Migration:
    """Return the migration, which is its own record."""
    return record
