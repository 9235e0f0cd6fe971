"""KubeVirt's version and limits, from its own object."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.core.reunite.limits import KubeVirtLimits
from webhook.reunite.facts import kubevirt_limits


def kubevirt(version: object = "v1.8.0", **migrations: object) -> dict[str, Any]:
    """A list with one KubeVirt."""
    spec = {"configuration": {"migrations": migrations}} if migrations else {}
    return {"items": [{"spec": spec, "status": {"observedKubeVirtVersion": version}}]}


@pytest.mark.parametrize(
    ("found", "limits"),
    [
        pytest.param(kubevirt(), KubeVirtLimits(version=(1, 8)), id="with its defaults"),
        pytest.param(
            kubevirt(parallelMigrationsPerCluster=20, parallelOutboundMigrationsPerNode=10),
            KubeVirtLimits(version=(1, 8), parallel_per_cluster=20, parallel_outbound_per_node=10),
            id="with limits of its own",
        ),
        pytest.param(
            kubevirt(parallelMigrationsPerCluster=0),
            KubeVirtLimits(version=(1, 8), parallel_per_cluster=0),
            id="that allows no migration",
        ),
        pytest.param(kubevirt("1.10.0-rc.1"), KubeVirtLimits(version=(1, 10)), id="a version without v"),
        pytest.param(kubevirt("devel"), KubeVirtLimits(version=None), id="a version that is none"),
        pytest.param(kubevirt(None), KubeVirtLimits(version=None), id="no version"),
        pytest.param(kubevirt(parallelMigrationsPerCluster="5"), KubeVirtLimits(version=(1, 8)), id="a text"),
        pytest.param({"items": []}, KubeVirtLimits(version=None), id="no KubeVirt"),
        pytest.param({}, KubeVirtLimits(version=None), id="not readable"),
    ],
)
def test_what_is_read_of_kubevirt(found: dict[str, Any], limits: KubeVirtLimits) -> None:
    """What can't be read is the default, or not known."""
    assert kubevirt_limits(found) == limits
