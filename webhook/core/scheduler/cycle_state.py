"""CycleState: one pod under admission, what is known of its cluster, and what the plugins have found for it.

Upstream: CycleState in pkg/scheduler/framework/cycle_state.go. A plugin reads the incoming pod's rules once, and then
filters node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

from msgspec import Struct

from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume
from webhook.core.scheduler.state.pod_requests import usage
from webhook.core.scheduler.state.snapshot import AnySnapshot

StateT = TypeVar("StateT")


class ClaimVolume(Struct, frozen=True):
    """A bound claim of the pod, or of a pod that must be on the same node, with its PersistentVolume.

    `served_from`: the node of the share-manager that serves the volume, empty if the share-manager is on none. None for
    a volume that is attached to the pod's own node. `of_one_pod`: whether only one pod at a time may use the claim.
    """

    claim: str
    volume: PersistentVolume
    served_from: str | None = None
    of_one_pod: bool = False


class CycleState:
    """One pod under admission, the snapshot of its cluster, and what plugins have found.

    Attributes:
        pod: the incoming pod, which has no node yet.
        namespace: the request's, because that of the object can be empty at CREATE.
        snapshot: the nodes and pods; or why there is no snapshot.
        volumes: the bound claims. All of them must be usable on the pod's node.
        usage: what the pod takes of a node.
    """

    __slots__ = ("_found", "namespace", "pod", "snapshot", "usage", "volumes")

    def __init__(self, pod: Pod, namespace: str, snapshot: AnySnapshot, volumes: Sequence[ClaimVolume] = ()) -> None:
        self.pod = pod
        self.namespace = namespace
        self.snapshot = snapshot
        self.volumes = volumes
        self.usage = usage(pod.spec)
        self._found: dict[Callable[..., Any], Any] = {}

    def state(self, read: Callable[[Self], StateT]) -> StateT:
        """Return what `read` makes of the incoming pod; it is called once."""
        state: StateT | None = self._found.get(read)
        if state is None:
            state = self._found[read] = read(self)
        return state
