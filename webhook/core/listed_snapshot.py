"""ListedSnapshot: the Snapshot of pods and nodes that were listed once, from files or from the API server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from webhook.core.api import kubevirt
from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.meta import NamespacedName
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.scheduler.cache import UNLISTED, CSIDrivers, NodeInfo, SchedulerCache, allocatable
from webhook.core.scheduler.pod_info import PodInfo, anti_affinity, pod_info, pod_nodes
from webhook.core.scheduler.pod_requests import usage

NodesMax = Callable[[Pod], int]
"""Pod -> on how many nodes it may count by its record: 0 if it has none, or if its owner does not exist."""


class ListedSnapshot:
    """The pods that are not over, on their nodes."""

    def __init__(
        self,
        pods: Iterable[Pod],
        nodes: Mapping[str, Node],
        csi_drivers: Mapping[str, CSIDrivers],
        replicas: int = 1,
        nodes_max: NodesMax = lambda _: 0,
    ) -> None:
        """Count every pod that is not over; `csi_drivers` are `csi_drivers_of` by node."""
        self._nodes = nodes
        self.replicas = replicas
        self._csi_drivers = csi_drivers
        self._pods = tuple(pods)
        self._nodes_max = nodes_max
        self.leave_out(lambda _: False)

    def leave_out(self, is_gone: Callable[[Pod], bool]) -> None:
        """Count all pods except those for which `is_gone` returns True; an earlier call has no effect any more."""
        self.scheduler_cache = SchedulerCache()
        self._starts: dict[str, NamespacedName] = {}  # uid of a VirtualMachineInstance -> its unbound pod that counts
        for pod in self._pods:
            if not is_gone(pod):
                self._add(pod)

    def add(self, pod: Pod) -> None:
        """Count one pod more on its node, beside the listed ones."""
        for counted in pod_infos(pod, recorded=False):
            self.scheduler_cache.add(counted)

    def _add(self, pod: Pod) -> None:
        nodes_max = 0 if pod.spec.node_name else self._nodes_max(pod)
        counted = list(pod_infos(pod, recorded=nodes_max > 0))
        if counted and counted[0].on.by_record:
            owner = kubevirt.owner(pod)
            key = _key(pod)
            is_first = owner is None or self._starts.setdefault(owner.uid or "", key) == key
            counted = counted[:nodes_max] if is_first else []
        for each in counted:
            self.scheduler_cache.add(each)

    def node(self, name: str) -> Node:
        """Return the node of that name; UNLISTED for an unknown one."""
        return self._nodes.get(name, UNLISTED)

    def node_info(self, name: str) -> NodeInfo:
        """Return the node of that name with its pods."""
        node = self.node(name)
        has = allocatable(node.status.allocatable if node.status else None)
        return self.scheduler_cache.node_info(name, has, self._csi_drivers.get(name), node)


def _key(pod: Pod) -> NamespacedName:
    return NamespacedName(pod.metadata.namespace or "default", pod.metadata.name or "")


def pod_infos(pod: Pod, *, recorded: bool) -> Iterator[PodInfo]:
    """Return the pod on each node on which it counts; `recorded` as for `pod_nodes`."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    is_vm = meta.label(LABEL_APP) == VIRT_LAUNCHER
    nodes = pod_nodes(spec, status, terminating=bool(meta.deletion_timestamp), is_vm=is_vm, recorded=recorded)
    if nodes:
        namespace, requested = meta.namespace or "default", usage(spec, status)
        terms = anti_affinity(spec.required_pod_anti_affinity, namespace)
        for node in nodes:
            yield pod_info(namespace, requested, terms, node, meta.labels)
