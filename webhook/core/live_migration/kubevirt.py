"""KubeVirt's own object (kubevirt.io/v1 KubeVirt): which version runs, whether it changes now, and its limits."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct, field

from webhook.core.api.meta import ObjectMeta

_DEPLOYED: Final = "Deployed"
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)")


class MigrationConfiguration(Struct, rename="camel", frozen=True, kw_only=True):
    """MigrationConfiguration of KubeVirt, in part, with KubeVirt's defaults."""

    parallel_migrations_per_cluster: int | None = None
    parallel_outbound_migrations_per_node: int | None = None

    @property
    def per_cluster(self) -> int:
        """How many migrations KubeVirt runs at once."""
        given = self.parallel_migrations_per_cluster
        return 5 if given is None else given

    @property
    def outbound_per_node(self) -> int:
        """How many of them may leave one node."""
        given = self.parallel_outbound_migrations_per_node
        return 2 if given is None else given


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
    def limits(self) -> MigrationConfiguration:
        """How many migrations KubeVirt runs at once."""
        configuration = self.spec.configuration
        return (configuration.migrations if configuration else None) or MigrationConfiguration()

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
