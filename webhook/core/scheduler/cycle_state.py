"""CycleState: one pod under admission, and what is known of its cluster.

Upstream: CycleState in pkg/scheduler/framework/cycle_state.go. The incoming pod's rules are read once, and then node by
node is filtered.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from webhook.core.api.pod import Pod
from webhook.core.reasons import Why
from webhook.core.scheduler.plugins.inter_pod_affinity import Excluding, excluding
from webhook.core.scheduler.plugins.volumes import ClaimVolume
from webhook.core.scheduler.state.pod_requests import usage
from webhook.core.scheduler.state.snapshot import AnySnapshot, SnapshotUnavailable


class CycleState:
    """One pod under admission, and the snapshot of its cluster.

    Attributes:
        pod: the incoming pod, which has no node yet.
        namespace: the request's, because that of the object can be empty at CREATE.
        snapshot: the nodes and pods; or why there is no snapshot.
        volumes: the bound claims. All of them must be usable on the pod's node.
        usage: what the pod takes of a node.
    """

    def __init__(self, pod: Pod, namespace: str, snapshot: AnySnapshot, volumes: Sequence[ClaimVolume] = ()) -> None:
        self.pod = pod
        self.namespace = namespace
        self.snapshot = snapshot
        self.volumes = volumes
        self.usage = usage(pod.spec)

    @cached_property
    def excluding(self) -> Sequence[Excluding] | Why:
        """Where required anti-affinity of pods on nodes can exclude the pod; or why that is not compared."""
        if isinstance(self.snapshot, SnapshotUnavailable):
            return ()
        return excluding(self.namespace, self.pod.metadata.labels or {}, self.snapshot)
