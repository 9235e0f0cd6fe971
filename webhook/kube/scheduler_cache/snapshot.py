"""CachedSnapshot: the Snapshot of a live cluster, from the caches of its pods and nodes.

It also counts the pods that this replica has just answered for and that no watch has shown yet. Therefore this replica
gives away the last free resources of a node only once. What other replicas decide becomes known when a watch shows
their pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping
from enum import StrEnum
from typing import Final

from webhook.core.api import kubevirt
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.virtual_machine import VirtualMachineInstance
from webhook.core.decision import Pin
from webhook.core.placement.replica_share import REPLICA_LABELS
from webhook.core.scheduler.cache import NO_AMOUNTS, UNLISTED, NodeInfo, SchedulerCache
from webhook.core.scheduler.pod_info import PodNode, anti_affinity, pod_info
from webhook.core.view import Kind
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.records.objects import NodeIndex
from webhook.kube.scheduler_cache.assumed_pods import CREATE_HELD_SECONDS, PodIndex

_READ: Final = (Kind.VIRT_LAUNCHER_POD, Kind.NODE, Kind.CSI_NODE)


class CachedSnapshot:
    """The caches as they are at the moment of a call. Use it only while `problem` returns an empty text."""

    def __init__(self, caches: Mapping[StrEnum, ListWatch], *, in_pod: bool = False) -> None:
        """`in_pod`: this process runs in a pod of the cluster, so that the cache of pods must have that pod."""
        self._caches = caches
        self._in_pod = in_pod

    def problem(self, now: float) -> str:
        """Return why the caches are not the cluster as it is at the time `now`; empty if they are."""
        late = (cache for cache in map(self._caches.__getitem__, _READ) if not cache.fresh(now))
        problems = "; ".join(f"{cache.resource.title}: {cache.problem or 'not up to date'}" for cache in late)
        if not problems and self._in_pod and not self._pods.replicas:
            labels = ",".join(f"{key}={value}" for key, value in REPLICA_LABELS.items())
            return (
                f"no pod of this webhook is seen in its namespace (labels {labels}), so its replicas can't be counted"
            )
        return problems

    @property
    def scheduler_cache(self) -> SchedulerCache:
        """The pods on their nodes, with those that are assumed."""
        return self._pods.scheduler_cache

    @property
    def replicas(self) -> int:
        """The number of the webhook's pods, ready or not: a Service can still, or already, lead to each of them."""
        return max(1, len(self._pods.replicas))

    def node(self, name: str) -> Node:
        """Return the node of that name; UNLISTED for an unknown one."""
        node: Node = self._caches[Kind.NODE].objects.get(name, UNLISTED)
        return node

    def node_info(self, name: str) -> NodeInfo:
        """Return the node of that name with its pods."""
        index = self._caches[Kind.NODE].index
        has = index.allocatable.get(name, NO_AMOUNTS) if isinstance(index, NodeIndex) else NO_AMOUNTS
        drivers = self._caches[Kind.CSI_NODE].objects.get(name)
        return self.scheduler_cache.node_info(name, has, drivers, self.node(name))

    def forget(self, pod: Pod, namespace: str) -> None:
        """Stop counting the assumed pod of the same VM, because the API server asks about the VM's pod again."""
        owner = _owner(pod, namespace)
        if owner is not None:
            self._pods.forget(owner)

    def vmi_added(self, key: str, vmi: VirtualMachineInstance) -> None:
        """Count the unbound pod of a VirtualMachineInstance that is new; `key` is NAMESPACE/NAME."""
        self._pods.recount(key, vmi.metadata.uid)

    def vmi_gone(self, key: str, vmi: VirtualMachineInstance) -> None:
        """Stop counting the unbound pod, shown or assumed, of a VirtualMachineInstance that is gone."""
        self._pods.recount(key, vmi.metadata.uid)
        self._pods.forget((key.partition("/")[0], vmi.metadata.uid))

    def vmis_listed(self) -> None:
        """Count the unbound pods of the VirtualMachineInstances that exist, because all of these were listed."""
        self._pods.recount_all()

    def assume(self, pod: Pod, namespace: str, pin: Pin) -> None:
        """Count the pod on each node that `pin` names until a watch shows the pod, for CREATE_HELD_SECONDS at most.

        A pod with scheduling gates is not counted, because kube-scheduler ignores it until the gates are removed.
        """
        if pod.spec.scheduling_gates:
            return
        owner, labels = _owner(pod, namespace) or object(), pod.metadata.labels
        terms = anti_affinity(pod.spec.required_pod_anti_affinity, namespace)
        nodes = (
            PodNode(
                node=node,
                queued=True,
                pinned=bool(pin.required),
                shortlisted=bool(pin.shortlist) and index == 0,
            )
            for index, node in enumerate(pin.nodes)
        )
        pod_infos = (pod_info(namespace, pin.requests, terms, node, labels) for node in nodes)
        handles = self._pods.assume(owner, pod_infos)
        asyncio.get_running_loop().call_later(CREATE_HELD_SECONDS, self._pods.forget, owner, handles)

    @property
    def _pods(self) -> PodIndex:
        pods = self._caches[Kind.VIRT_LAUNCHER_POD].index
        assert isinstance(pods, PodIndex)  # noqa: S101 - for the type checker: kinds.py gives this index to this cache
        return pods


def _owner(pod: Pod, namespace: str) -> Hashable | None:
    """Return what identifies the VirtualMachineInstance: one pod starts it, however often that pod is recreated."""
    vmi = kubevirt.owner(pod)
    return (namespace, vmi.uid) if vmi and vmi.uid else None
