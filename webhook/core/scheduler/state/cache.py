"""SchedulerCache: every pod on the node where it counts, as kube-scheduler's cache has them.

The states of a pod, as pkg/scheduler/backend/cache/interface.go has them; here the pod under admission is assumed::

                          confirm
    admitted -> assumed ----------> counted as a watch shows the pod --+-> removed
                   |    forget      (on the way, then bound)           |
                   +----------> not counted        ^                   |
                   |    expire                     +------ add --------+
                   +----------> not counted

- assume: the webhook has just answered for the pod. The pod counts on each node that the answer names.
- confirm: a watch has shown the pod. From now on the pod counts as the watch shows it.
- forget: the API server asks again about the same VM's pod, so that the first answer is void.
- expire: no watch has shown the pod in time. Another webhook or the API server may have rejected it.

webhook.kube.scheduler_cache.assumed_pods decides when. Here `add` counts, and `remove` stops counting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct, field

from webhook.core.api.node import Node
from webhook.core.scheduler.state.existing_terms import ExistingTerms
from webhook.core.scheduler.state.node_info import UNLISTED, CSIDrivers, NodeInfo, NodeRequests
from webhook.core.scheduler.state.pod_info import PodInfo
from webhook.core.scheduler.state.pod_requests import Usage

KeyT = TypeVar("KeyT")


class _NodePods(Struct, eq=False):
    """The sums of one node: what an admission asks does not depend on the number of its pods."""

    requested: NodeRequests = field(default_factory=NodeRequests)
    on_the_way: NodeRequests = field(default_factory=NodeRequests)  # a part of `requested`
    labelled: list[PodInfo] = []


class SchedulerCache:
    """All pods, each on the node where it counts. Each change takes a time that does not depend on other pods.

    Invariant: what the cache answers is the sum of the pods that were added and not removed. It keeps nothing of a node
    that has none of them.
    """

    def __init__(self) -> None:
        self.existing_terms = ExistingTerms()
        self.on_the_way: Counter[str] = Counter()  # by node: those that are queued
        self._nodes: dict[str, _NodePods] = {}
        self._shortlisted: tuple[Counter[Usage], Counter[Usage]] = (Counter(), Counter())  # shown, assumed

    def node_info(
        self, name: str, allocatable: Mapping[str, int], csi_drivers: CSIDrivers | None, node: Node = UNLISTED
    ) -> NodeInfo:
        """Return the node of that name with its pods; valid until the next change."""
        pods = self._nodes.get(name)
        if pods is None:
            return NodeInfo(node, allocatable, csi_drivers=csi_drivers)
        return NodeInfo(node, allocatable, pods.requested, csi_drivers, pods.on_the_way, pods.labelled)

    def shortlisted(self, *, assumed: bool) -> Mapping[Usage, int]:
        """Return the number of unbound pods of each shape that may run on a short list of nodes only.

        `assumed`: those that no watch has shown yet, or else those that one has shown.
        """
        return self._shortlisted[assumed]

    def add(self, pod: PodInfo) -> None:
        """Count a pod on one node."""
        pods = self._nodes.get(pod.on.node)
        if pods is None:
            pods = self._nodes[pod.on.node] = _NodePods()
        if pod.labels is not None:
            pods.labelled.append(pod)
        self._count(pod, pods, 1)

    def remove(self, pod: PodInfo) -> None:
        """Stop counting a pod on one node."""
        pods = self._nodes[pod.on.node]
        if pod.labels is not None:
            pods.labelled.remove(pod)
        self._count(pod, pods, -1)
        if not pods.requested.pods:
            del self._nodes[pod.on.node]

    def _count(self, pod: PodInfo, pods: _NodePods, change: int) -> None:
        pods.requested.add(pod.usage, change)
        self.existing_terms.count(pod.anti_affinity.terms, pod.on.node, change)
        if pod.on.queued:
            pods.on_the_way.add(pod.usage, change)
            _change(self.on_the_way, pod.on.node, change)
        if pod.on.shortlisted:
            _change(self._shortlisted[pod.on.assumed], pod.usage, change)


def _change(counts: Counter[KeyT], key: KeyT, change: int) -> None:
    counts[key] += change
    if not counts[key]:
        del counts[key]
