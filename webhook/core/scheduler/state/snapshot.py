"""ListedSnapshot: the Snapshot (webhook.core.scheduler.state.cache) of pods and nodes that are counted once: of
files, or of lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.scheduler.state.cache import PodInfo, SchedulerCache
from webhook.core.scheduler.state.node_info import NO_HEADROOM, NodeInfo, allocatable
from webhook.core.scheduler.state.pod_index import PodIndex
from webhook.core.scheduler.state.pod_nodes import places
from webhook.core.scheduler.state.pod_requests import Usage, usage
from webhook.core.scheduler.topology.node_labels import NodeLabels


class ListedSnapshot:
    """The Crowd of pods and nodes that are all there to be counted, once: of files, or of lists."""

    def __init__(
        self,
        pods: Iterable[Pod],
        nodes: Mapping[str, Node],
        limits_of: Mapping[str, Mapping[str, int]],
        headroom: Mapping[str, int] = NO_HEADROOM,
        replicas: int = 1,
    ) -> None:
        """Count every pod that is not over; `limits_of` are `volume_limits.limits` by node."""
        self.nodes = nodes
        self.node_labels = NodeLabels(charges=False)
        self.headroom = headroom
        self.replicas = replicas
        self._limits = limits_of
        self._pods = tuple(pods)
        self._gathering = SchedulerCache()
        self.leave_out(lambda _: False)

    def leave_out(self, is_gone: Callable[[Pod], bool]) -> None:
        """Count all pods but these; none but these is left out from now on."""
        self._gathering = SchedulerCache()
        for pod in self._pods:
            if not is_gone(pod):
                for there in pod_infos(pod):
                    self._gathering.add(there)

    @property
    def pod_index(self) -> PodIndex:
        """Every pod, as rules between pods see it."""
        return self._gathering.pod_index

    def room(self, node: str) -> NodeInfo:
        """What is there on a node."""
        status = self.nodes[node].status if node in self.nodes else None
        has = allocatable(status.allocatable if status else None)
        return self._gathering.room(node, has, self._limits.get(node, {}))

    def listed(self, *, in_flight: bool) -> Mapping[Usage, int]:
        """Of those that are there."""
        return self._gathering.listed(in_flight=in_flight)


def pod_infos(pod: Pod) -> Iterator[PodInfo]:
    """A pod where it counts: on its node, or on each that it is drawn to."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    drawn = places(spec, status, leaves=bool(meta.deletion_timestamp), is_vm=meta.label(LABEL_APP) == VIRT_LAUNCHER)
    repels = spec.affinity.pod_anti_affinity if spec.affinity else None
    if drawn:
        taken = usage(spec, status)
        for place in drawn:
            yield PodInfo(
                namespace=meta.namespace or "default",
                usage=taken,
                labels=meta.labels,
                repels=repels.required if repels else None,
                node=place.node,
                presence=place.presence,
                on_way=place.on_way,
                pinned=place.pinned,
                listed=place.listed,
                vm=place.vm,
            )


class Snapshot(Protocol):
    """Every pod that is on a node, or drawn to one: by a required term that names it, or by a preferred one."""

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Every node by its name."""
        ...

    @property
    def node_labels(self) -> NodeLabels:
        """Labels of these nodes."""
        ...

    @property
    def pod_index(self) -> PodIndex:
        """Every pod, as rules between pods see it."""
        ...

    @property
    def headroom(self) -> Mapping[str, int]:
        """How much of each resource is to stay free on a node: milli-CPU, bytes, or whole units."""
        ...

    @property
    def replicas(self) -> int:
        """How many replicas of the webhook may be asked at this moment, this one among them; 1 at least."""
        ...

    def room(self, node: str) -> NodeInfo:
        """What is there on a node that exists."""
        ...

    def listed(self, *, in_flight: bool) -> Mapping[Usage, int]:
        """How many pods of each shape may run on a short list of nodes only, and are on none yet.

        Those that a watch has shown, or those that this replica has just listed (`in_flight`).
        """
        ...
