"""KubeVirt's objects for a live migration (kubevirt.io/v1): KubeVirt itself, and VirtualMachineInstanceMigration.

Upstream: kubevirt.io api/core/v1 types.go, and pkg/virt-controller/watch/migration/migration.go. KubeVirt refuses a
second migration of a VM while one is not final, and keeps the last five final ones of each VM.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct, field

from webhook.core.api.kubevirt import HOSTNAME, MigrationState
from webhook.core.api.meta import ObjectMeta

FIRST_VERSION: Final = (1, 6)
"""The first KubeVirt with addedNodeSelector: v1.5.3 has it neither in types.go nor in its CRD, v1.6.0 in both."""
_DEPLOYED: Final = "Deployed"
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)")


class MigrationConfiguration(Struct, rename="camel", frozen=True, kw_only=True):
    """MigrationConfiguration of KubeVirt, in part: what may lose or pause a VM that is migrated."""

    allow_post_copy: bool | None = None
    allow_workload_disruption: bool | None = None


class KubeVirtConfiguration(Struct, frozen=True, kw_only=True):
    """KubeVirtConfiguration, in part."""

    migrations: MigrationConfiguration | None = None


class KubeVirtSpec(Struct, frozen=True, kw_only=True):
    """KubeVirtSpec, in part."""

    configuration: KubeVirtConfiguration | None = None


class KubeVirtStatus(Struct, frozen=True, kw_only=True):
    """KubeVirtStatus, in part."""

    phase: str | None = None
    observed_version: str | None = field(default=None, name="observedKubeVirtVersion")
    observed_deployment: str | None = field(default=None, name="observedDeploymentID")
    target_deployment: str | None = field(default=None, name="targetDeploymentID")


class KubeVirt(Struct, frozen=True, kw_only=True):
    """The installation of KubeVirt."""

    metadata: ObjectMeta
    spec: KubeVirtSpec = KubeVirtSpec()
    status: KubeVirtStatus = KubeVirtStatus()

    @property
    def version(self) -> str:
        """The version that runs; empty if it is not known."""
        return self.status.observed_version or ""

    @property
    def disrupts(self) -> str:
        """The setting by which a migration may end a VM, or pause it for long; empty if there is none."""
        configuration = self.spec.configuration
        migrations = (configuration.migrations if configuration else None) or MigrationConfiguration()
        if migrations.allow_post_copy:
            return "allowPostCopy"
        return "allowWorkloadDisruption" if migrations.allow_workload_disruption else ""

    @property
    def changes(self) -> str:
        """Why KubeVirt is being installed, upgraded or removed now; empty if it is not.

        The workload updater waits for the same (pkg/virt-controller/watch/workload-updater).
        """
        status = self.status
        if status.phase != _DEPLOYED:
            return f"its phase is {status.phase or 'not known'}"
        if status.observed_deployment != status.target_deployment:
            return "its observed and its target deployment differ"
        return ""


def minor_version(version: str) -> tuple[int, int] | None:
    """Return major and minor of a version such as v1.9.0; None for another text.

    KubeVirt has the major versions 0 and 1. Another one is the version of a product around it.
    """
    found = _VERSION.match(version)
    numbers = (int(found[1]), int(found[2])) if found else None
    return numbers if numbers and numbers[0] <= 1 else None


LABEL_REUNITE: Final = "kubevirt-scheduler/reunite"
"""On each migration that `reunite` creates. The annotation of a VM has the same key."""
ANNOTATION_LISTED: Final = "kubevirt-scheduler/from-list"  # on each migration of a list: `reunite -o yaml`
ANNOTATION_WORKLOAD_UPDATE: Final = "kubevirt.io/workloadUpdateMigration"
ANNOTATION_EVACUATION: Final = "kubevirt.io/evacuationMigration"  # its value is the node that the VM must leave
FINAL_MIGRATIONS: Final = 5  # of a VM that KubeVirt keeps (migration.go, garbageCollectFinalizedMigrations)
ANNOTATION_UNSCHEDULABLE_SECONDS: Final = "kubevirt.io/migrationUnschedulablePodTimeoutSeconds"
PLACING_SECONDS: Final = 60  # KubeVirt waits 300 s by itself; the node was found free, so a minute is enough
_NAME_CHARS: Final = 63  # as of the label kubevirt.io/vmi-name, which KubeVirt makes of the VM's name
_DIGEST_CHARS: Final = 8
_SUCCEEDED: Final = "Succeeded"
_FAILED: Final = "Failed"
PAUSED: Final = "Paused"
CHANGES: Final = ("VolumesChange", "HotMemoryChange", "HotVCPUChange", "MigrationRequired")
"""Conditions of a change that KubeVirt makes by a migration of its own (workload-updater.go, doesRequireMigration)."""
SYSTEM_MAINTENANCE: Final = "system-maintenance"  # the priority, if a descheduler that names itself evicts


class MigrationSpec(Struct, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineInstanceMigrationSpec, in part. Only virt-controller may set `priority`."""

    vmi_name: str = ""
    priority: str | None = None


class PhaseTransition(Struct, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineInstanceMigrationPhaseTransitionTimestamp: a phase, and when it began (RFC 3339)."""

    phase: str = ""
    phase_transition_timestamp: str | None = None


class MigrationStatus(Struct, rename="camel", frozen=True, kw_only=True):
    """VirtualMachineInstanceMigrationStatus, in part."""

    phase: str | None = None
    phase_transition_timestamps: list[PhaseTransition] | None = None
    migration_state: MigrationState | None = None


class Migration(Struct, frozen=True, kw_only=True):
    """VirtualMachineInstanceMigration, in part."""

    metadata: ObjectMeta
    spec: MigrationSpec = MigrationSpec()
    status: MigrationStatus | None = None

    @property
    def vm(self) -> tuple[str, str]:
        """Namespace and name of the VirtualMachineInstance."""
        return self.metadata.namespace or "default", self.spec.vmi_name

    @property
    def name(self) -> str:
        """The name of the migration."""
        return self.metadata.name or ""

    @property
    def created(self) -> str:
        """When it was created (RFC 3339)."""
        return self.metadata.creation_timestamp or ""

    @property
    def ours(self) -> bool:
        """Whether `reunite` created it."""
        return self.metadata.label(LABEL_REUNITE) is not None

    @property
    def phase(self) -> str:
        """KubeVirt's phase; empty before virt-controller has seen the migration."""
        return (self.status.phase if self.status else None) or ""

    @property
    def state(self) -> MigrationState:
        """The state that KubeVirt wrote."""
        return (self.status.migration_state if self.status else None) or MigrationState()

    @property
    def failed(self) -> bool:
        """Whether the VM has stayed on its source node."""
        return self.phase == _FAILED

    @property
    def is_final(self) -> bool:
        """Whether KubeVirt is done with the migration."""
        return self.phase in (_SUCCEEDED, _FAILED)

    @property
    def ended(self) -> str:
        """When it became final; when it was created, if KubeVirt has noted no such time (RFC 3339)."""
        times = (self.status.phase_transition_timestamps if self.status else None) or ()
        ended = (each.phase_transition_timestamp for each in times if each.phase in (_SUCCEEDED, _FAILED))
        return next(filter(None, ended), self.created)

    @property
    def evacuates(self) -> str | None:
        """The node that KubeVirt moves the VM away from, for a drain or an eviction; None for other causes."""
        return self.metadata.annotation(ANNOTATION_EVACUATION)


def migration_object(namespace: str, vmi: str, hostname: str, *, name: str | None = None) -> dict[str, Any]:
    """Return the migration of a VM to the node with this label `kubernetes.io/hostname`, as JSON.

    KubeVirt adds `addedNodeSelector` to the node selector of the VM. If kube-scheduler finds no node for the target pod
    within PLACING_SECONDS, KubeVirt deletes the pod, and the migration fails. With a `name` it is one of `reunite`.
    Without one it is from a list: the API server chooses a name, and the migration is its user's.
    """
    identity: dict[str, Any] = {"generateName": f"{_short(vmi)}-together-"}
    annotations = {ANNOTATION_UNSCHEDULABLE_SECONDS: str(PLACING_SECONDS), ANNOTATION_LISTED: "true"}
    if name:
        identity = {"name": name, "labels": {LABEL_REUNITE: "true"}}
        del annotations[ANNOTATION_LISTED]
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {**identity, "namespace": namespace, "annotations": annotations},
        "spec": {"vmiName": vmi, "addedNodeSelector": {HOSTNAME: hostname}},
    }


def next_name(vmi: str, names: Iterable[str]) -> str:
    """Return the name of the VM's next migration: VMI-reunite-N, one more than the highest N of these names.

    The same names always give the same name. So the API server refuses the second of two programs that both create a
    migration, and a program that has not seen its own.
    """
    return f"{_stem(vmi)}{highest_number(vmi, names) + 1}"


def highest_number(vmi: str, names: Iterable[str]) -> int:
    """Return the highest N of these names that are VMI-reunite-N; 0 if none is."""
    stem = _stem(vmi)
    numbers = (name.removeprefix(stem) for name in names if name.startswith(stem))
    return max((int(number) for number in numbers if number.isdecimal()), default=0)


def _stem(vmi: str) -> str:
    return f"{_short(vmi)}-reunite-"


def _short(vmi: str) -> str:
    """Return the VM's name, cut so that a suffix fits, and then with a digest: two long names stay different."""
    room = _NAME_CHARS - len("-reunite-") - _DIGEST_CHARS
    if len(vmi) <= room:
        return vmi
    digest = hashlib.sha256(vmi.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{vmi[: room - _DIGEST_CHARS - 1].rstrip('.-')}-{digest}"  # no part of a name begins with a hyphen
