"""KubeVirt's own object (kubevirt.io/v1 KubeVirt): its version, whether it changes now, and what it allows."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct, field

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
