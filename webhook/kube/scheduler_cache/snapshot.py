"""CachedSnapshot: the Snapshot (webhook.core.scheduler.state.cache) of a live cluster, by the caches of its pods and
nodes.

It also counts what no cache shows yet: pods that were drawn to nodes a moment ago. So of many calls at once no two get
the last place. What other replicas have decided is known once a watch shows their pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping
from typing import Final

from webhook.core.api import kubevirt
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.decision import Pin
from webhook.core.scheduler.state.cache import PodInfo
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.scheduler.state.pod_index import PodIndex, Presence
from webhook.core.scheduler.state.pod_requests import Usage
from webhook.core.scheduler.topology.node_labels import NodeLabels
from webhook.core.view import Kind
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.records.nodes import NodeIndex
from webhook.kube.records.pods import REPLICA_LABELS
from webhook.kube.scheduler_cache.assumed_pods import Pods

_ASSUMED_SECONDS: Final = 10.0  # the longest that an API server waits for webhooks: then the pod is there, or refused
_READ: Final = (Kind.VIRT_LAUNCHER_POD, Kind.NODE, Kind.CSI_NODE)


class CachedSnapshot:
    """What the caches say at the moment of asking. To be asked only while there is no `problem`."""

    def __init__(self, caches: Mapping[Kind, ListWatch], headroom: Mapping[str, int], *, in_pod: bool = False) -> None:
        """`in_pod`: this process runs in a pod of the cluster, which must be among those that are seen."""
        self.headroom = headroom
        self._caches = caches
        self._in_pod = in_pod

    def problem(self, now: float) -> str:
        """What keeps the caches from being taken for the cluster; empty for nothing."""
        late = (cache for cache in map(self._caches.__getitem__, _READ) if not cache.fresh(now))
        told = "; ".join(f"{cache.resource.title}: {cache.problem or 'not up to date'}" for cache in late)
        if not told and self._in_pod and not self._pods.replicas:
            labels = ",".join(f"{key}={value}" for key, value in REPLICA_LABELS.items())
            return (
                f"no pod of this webhook is seen in its namespace (labels {labels}), so its replicas can't be counted"
            )
        return told

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Every node by its name."""
        return self._caches[Kind.NODE].objects

    @property
    def node_labels(self) -> NodeLabels:
        """Labels of these nodes."""
        nodes = self._caches[Kind.NODE].index
        assert isinstance(nodes, NodeIndex)  # noqa: S101 - for the type checker: that is what kinds gives this cache
        return nodes.labels

    @property
    def pod_index(self) -> PodIndex:
        """Every pod, as rules between pods see it."""
        return self._pods.scheduler_cache.pod_index

    @property
    def replicas(self) -> int:
        """How many pods of ours are there, ready or not: a Service may still, or already, lead to each."""
        return max(1, len(self._pods.replicas))

    def room(self, node: str) -> NodeInfo:
        """What is there on a node."""
        nodes = self._caches[Kind.NODE].index
        has = nodes.allocatable.get(node, {}) if isinstance(nodes, NodeIndex) else {}
        limits = self._caches[Kind.CSI_NODE].objects.get(node, {})
        return self._pods.scheduler_cache.room(node, has, limits)

    def listed(self, *, in_flight: bool) -> Mapping[Usage, int]:
        """As Crowd has it."""
        return self._pods.scheduler_cache.listed(in_flight=in_flight)

    def forget(self, pod: Pod, namespace: str) -> None:
        """The pod is decided on anew."""
        owner = _owner(pod, namespace)
        if owner is not None:
            self._pods.forget(owner)

    def assume(self, pod: Pod, namespace: str, drawn: Pin) -> None:
        """Count a pod on each node that it was just drawn to, until it is seen, or for a short time.

        One that kube-scheduler does not look at before a gate is lifted counts nowhere.
        """
        if pod.spec.scheduling_gates:
            return
        apart = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
        owner = _owner(pod, namespace) or object()
        assumed = self._pods.assume(
            owner,
            (
                PodInfo(
                    namespace=namespace,
                    node=node,
                    usage=drawn.requests,
                    labels=pod.metadata.labels,
                    repels=apart.required if apart else None,
                    presence=Presence.EXPECTED,
                    on_way=True,
                    pinned=bool(drawn.required),
                    listed=bool(drawn.shortlist) and index == 0,
                    vm=True,
                    in_flight=True,
                )
                for index, node in enumerate(drawn.nodes)
            ),
        )
        asyncio.get_running_loop().call_later(_ASSUMED_SECONDS, self._pods.forget, owner, assumed)

    @property
    def _pods(self) -> Pods:
        pods = self._caches[Kind.VIRT_LAUNCHER_POD].index
        assert isinstance(pods, Pods)  # noqa: S101 - for the type checker: that is what kinds gives this cache
        return pods


def _owner(pod: Pod, namespace: str) -> Hashable | None:
    """The VirtualMachineInstance: it has one pod that starts it, however often that is created anew."""
    instance = kubevirt.owner(pod)
    return (namespace, instance.uid) if instance and instance.uid else None
