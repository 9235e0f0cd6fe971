"""ListedSnapshot: the Snapshot of pods and nodes that were listed once, from files or from the API server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from webhook.core.api.kubevirt import HOSTNAME, LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.meta import NamespacedName
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.scheduler.state.cache import SchedulerCache
from webhook.core.scheduler.state.node_info import UNLISTED, CSIDrivers, NodeInfo, allocatable
from webhook.core.scheduler.state.pod_info import PodHandle, PodInfo, pod_nodes
from webhook.core.scheduler.state.pod_requests import usage

QUEUED_SECONDS: Final = 54.0
"""How long a pod that no scheduler has evaluated is queued, from when a replica of the webhook has seen the pod first.

After this time each replica knows of the pod, and this one knows of each pod that another replica pinned without it. A
cache that is not up to date for 10 s gives no hard pin. So another replica sees the pod 10 s later at most, or pins no
pod. The pod of its last answer exists after 34 s (an API server holds a CREATE no longer). This replica sees that pod
10 s later, or pins no pod.
"""


class ListedSnapshot:
    """The pods that are not over, on their nodes."""

    def __init__(
        self,
        pods: Iterable[Pod],
        nodes: Mapping[str, Node],
        csi_drivers: Mapping[str, CSIDrivers],
        replicas: int = 1,
    ) -> None:
        """Count every pod that is not over; `csi_drivers` are `csi_drivers_of` by node."""
        self._nodes = nodes
        self.hostnames = Counter(node.metadata.label(HOSTNAME) or "" for node in nodes.values())
        self.replicas = replicas
        self._csi_drivers = csi_drivers
        self._pods = tuple(pods)
        self._newest_at = max((at for pod in self._pods if (at := _created_at(pod)) is not None), default=0.0)
        self.leave_out(lambda _: False)

    def leave_out(self, is_gone: Callable[[Pod], bool]) -> None:
        """Count all pods except those for which `is_gone` returns True; an earlier call has no effect any more."""
        self.scheduler_cache = SchedulerCache()
        self._handles: dict[NamespacedName, list[PodHandle]] = {}
        for pod in self._pods:
            if not is_gone(pod):
                self._add(pod)

    def add(self, pod: Pod) -> None:
        """Count one pod more, beside the listed ones."""
        for pod_info in pod_infos(pod):
            self.scheduler_cache.add(pod_info)

    def _is_new(self, pod: Pod) -> bool:
        """Whether a pod may still be queued: no other listed pod was created much later."""
        at = _created_at(pod)
        return at is None or at + QUEUED_SECONDS > self._newest_at

    def _add(self, pod: Pod) -> None:
        self._handles[_key(pod)] = [self.scheduler_cache.add(each) for each in pod_infos(pod, is_new=self._is_new(pod))]

    @contextmanager
    def without(self, pods: Iterable[Pod]) -> Iterator[None]:
        """Do not count these of the listed pods until the block ends. This costs nothing for all other pods."""
        gone = [pod for pod in pods if _key(pod) in self._handles]
        for pod in gone:
            for handle in self._handles.pop(_key(pod)):
                self.scheduler_cache.remove(handle)
        try:
            yield
        finally:
            for pod in gone:
                self._add(pod)

    def node(self, name: str) -> Node:
        """Return the node of that name; UNLISTED for an unknown one."""
        return self._nodes.get(name, UNLISTED)

    def node_info(self, name: str) -> NodeInfo:
        """Return the node of that name with its pods."""
        node = self.node(name)
        has = allocatable(node.status.allocatable if node.status else None)
        return self.scheduler_cache.node_info(name, has, self._csi_drivers.get(name), node)


def _created_at(pod: Pod) -> float | None:
    """Return when a pod was created, in seconds since 1970; None if it does not say so."""
    try:
        return datetime.fromisoformat(pod.metadata.creation_timestamp or "").timestamp()
    except ValueError:
        return None


def _key(pod: Pod) -> NamespacedName:
    return NamespacedName(pod.metadata.namespace or "default", pod.metadata.name or "")


def pod_infos(pod: Pod, *, is_new: bool = True) -> Iterator[PodInfo]:
    """Return the pod on each node on which it counts; `is_new` as for `pod_nodes`."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    is_vm = meta.label(LABEL_APP) == VIRT_LAUNCHER
    nodes = pod_nodes(spec, status, terminating=bool(meta.deletion_timestamp), is_vm=is_vm, is_new=is_new)
    if nodes:
        terms, requested = spec.required_pod_anti_affinity, usage(spec, status)
        for node in nodes:
            yield PodInfo(meta.namespace or "default", requested, meta.labels, terms, node)
