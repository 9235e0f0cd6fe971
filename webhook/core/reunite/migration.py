"""VirtualMachineInstanceMigration: what `reunite` reads of one, and the one that it creates.

Upstream: kubevirt.io api/core/v1 types.go, and pkg/virt-controller/watch/migration/migration.go. KubeVirt refuses a
second migration of a VM while one is not final, and keeps the last five final ones of each VM.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from webhook.core.api.kubevirt import HOSTNAME

LABEL_REUNITE: Final = "kubevirt-scheduler/reunite"
"""On each migration that brings a VM to the node of its share-managers. The VM's annotation has the same key."""
ANNOTATION_MOVED_AWAY: Final = "kubevirt-scheduler/moved-away"
ANNOTATION_WORKLOAD_UPDATE: Final = "kubevirt.io/workloadUpdateMigration"
ANNOTATION_EVACUATION: Final = "kubevirt.io/evacuationMigration"  # its value is the node that the VM must leave
ANNOTATION_UNSCHEDULABLE_SECONDS: Final = "kubevirt.io/migrationUnschedulablePodTimeoutSeconds"
PLACING_SECONDS: Final = 60  # KubeVirt waits 300 s by itself; the node was found free, so a minute is enough
_SUCCEEDED: Final = "Succeeded"
_FAILED: Final = "Failed"
_SYSTEM_CRITICAL: Final = "system-critical"
_QUEUED: Final = ("", "Pending")
_NAME_CHARS: Final = 253
_DIGEST_CHARS: Final = 8


class Migration(Struct, frozen=True, kw_only=True):
    """One VirtualMachineInstanceMigration.

    Attributes:
        vmi: the name of the VirtualMachineInstance.
        created: when it was created (RFC 3339).
        ended: when it became final (RFC 3339), None before, or if KubeVirt has not noted the time.
        phase: KubeVirt's, empty before virt-controller has seen the migration.
        ours: whether it has the label LABEL_REUNITE.
        names_target: whether it has an addedNodeSelector, so that somebody chose the node.
        evacuates: the node that KubeVirt moves the VM away from, for a drain or an eviction; None for other causes.
        updates: whether KubeVirt updates the VM by it, for an upgrade of KubeVirt or a change of the VM.
        moved_away: how often others had moved the VM away before this migration; only on ours, None if it does not say.
        priority: KubeVirt's: system-critical for a drain or an upgrade, system-maintenance for the descheduler. Empty
            before KubeVirt 1.7, and before 1.9 without the feature gate MigrationPriorityQueue.
    """

    namespace: str
    name: str
    uid: str
    vmi: str
    created: str
    resource_version: str = ""
    deleted: bool = False
    phase: str = ""
    ended: str | None = None
    ours: bool = False
    names_target: bool = False
    evacuates: str | None = None
    source_node: str | None = None
    target_node: str | None = None
    updates: bool = False
    moved_away: int | None = None
    priority: str = ""

    @property
    def is_final(self) -> bool:
        """Whether KubeVirt is done with the migration."""
        return self.phase in (_SUCCEEDED, _FAILED)

    @property
    def succeeded(self) -> bool:
        """Whether the VM runs on the target node since this migration."""
        return self.phase == _SUCCEEDED

    @property
    def failed(self) -> bool:
        """Whether the VM has stayed on its source node."""
        return self.phase == _FAILED

    @property
    def is_for_upkeep(self) -> bool:
        """Whether KubeVirt says that it was a drain or an update, so that nobody wants the VM elsewhere for good."""
        return self.updates or self.priority == _SYSTEM_CRITICAL

    @property
    def has_no_reason(self) -> bool:
        """Whether KubeVirt does not say if a drain or a descheduler evicted the VM."""
        return self.evacuates is not None and not self.priority

    @property
    def is_queued(self) -> bool:
        """Whether there is no target pod yet: KubeVirt is busy, or a quota, a backup or a hotplug delays the pod."""
        return self.phase in _QUEUED

    @property
    def ended_or_created(self) -> str:
        """When the migration ended; if that is not known, when it was created (RFC 3339)."""
        return self.ended or self.created


def migration_object(
    namespace: str, vmi: str, hostname: str, *, name: str | None = None, moved_away: int | None = None
) -> dict[str, Any]:
    """Return the migration of a VM to the node with this label `kubernetes.io/hostname`, as JSON.

    KubeVirt adds `addedNodeSelector` to the node selector of the VM. If kube-scheduler finds no node for the target pod
    within PLACING_SECONDS, KubeVirt deletes the pod, and the migration fails. Without a `name` the API server chooses
    one.
    """
    identity = {"name": name} if name else {"generateName": f"{vmi}-together-"}
    annotations = {ANNOTATION_UNSCHEDULABLE_SECONDS: str(PLACING_SECONDS)}
    if moved_away is not None:
        annotations[ANNOTATION_MOVED_AWAY] = str(moved_away)
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {
            **identity,
            "namespace": namespace,
            "labels": {LABEL_REUNITE: "true"},
            "annotations": annotations,
        },
        "spec": {"vmiName": vmi, "addedNodeSelector": {HOSTNAME: hostname}},
    }


def next_name(vmi: str, migrations: Iterable[Migration]) -> str:
    """Return the name of the VM's next migration: VMI-reunite-N, one more than the highest N of `migrations`.

    The same migrations always give the same name. So the API server refuses the second of two programs that both
    create a migration, and a program that has not seen its own.
    """
    stem = f"{_short(vmi)}-reunite-"
    numbers = (migration.name.removeprefix(stem) for migration in migrations if migration.name.startswith(stem))
    return f"{stem}{max((int(number) for number in numbers if number.isdecimal()), default=0) + 1}"


def moved_away_of(annotation: str | None) -> int | None:
    """Return the value of the annotation ANNOTATION_MOVED_AWAY, None if there is none or if it is not a number."""
    return int(annotation) if annotation and annotation.isascii() and annotation.isdecimal() else None


def _short(vmi: str) -> str:
    """Return the VM's name, cut so that a suffix fits, and then with a digest: two long names stay different."""
    room = _NAME_CHARS - len("-reunite-") - _DIGEST_CHARS
    if len(vmi) <= room:
        return vmi
    digest = hashlib.sha256(vmi.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{vmi[: room - _DIGEST_CHARS - 1].rstrip('.-')}-{digest}"  # no part of a name begins with a hyphen
