"""A ResourceQuota that admits no pod with a pod affinity to another namespace admits a steered share-manager pod.

kube-apiserver rejects a pod beyond a quota. Longhorn then has no share-manager pod, and the VM waits for its volume.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import Installed
from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Object
from support.control_plane.vm_starts import NODES, Start, Starting, decision
from support.objects import builders

VM: Final = Start("db01")
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NONE: Final = {"pods": "0"}
_SCOPE: Final = {"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}
QUOTA: Final = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "no-cross-namespace", "namespace": builders.LONGHORN_NAMESPACE},
    "spec": {"hard": _NONE, "scopeSelector": {"matchExpressions": [_SCOPE]}},
    "status": {"hard": _NONE, "used": _NONE},  # as kube-controller-manager writes it, which does not run here
}


@pytest.fixture
def starting(installed: Installed) -> Iterator[Starting]:
    """A VM on one of several nodes, each of which has a taint that kube-scheduler avoids, and the quota."""
    api = installed.plane.api
    tainted = [builders.node(name, taints=["old=:PreferNoSchedule"]) for name in NODES]
    installed.enable()
    with installed.serving(), ClusterState(api) as cluster, Starting(api) as starting:
        cluster.become([*tainted, *map(builders.longhorn_node, NODES), *VM.shelf, QUOTA])
        installed.until_called()
        yield starting
    installed.disable()


def near(pod: Object) -> list[Any]:
    """The preferred terms of the pod affinity."""
    terms: list[Any] = pod["spec"]["affinity"]["podAffinity"][_PREFERRED]
    return terms


def test_a_steered_share_manager_pod_is_within_the_quota(starting: Starting) -> None:
    """The same pod with a namespace in its term is beyond the quota."""
    node, pod = starting.start(VM)
    assert decision(pod).startswith(f"preferred on {node}: ")
    [term] = near(pod)
    assert term["podAffinityTerm"]["labelSelector"]["matchLabels"]["longhorn.io/node"] == node
    other = builders.share_manager_pod("pvc-other", phase=None)
    named = {**term, "podAffinityTerm": {**term["podAffinityTerm"], "namespaces": [builders.NAMESPACE]}}
    other["spec"]["affinity"] = {"podAffinity": {_PREFERRED: [named]}}
    with pytest.raises(ApiError, match="exceeded quota: no-cross-namespace"):
        starting.api.create(other)
