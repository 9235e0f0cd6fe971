"""SchedulerCache: every pod on the node where it counts, as kube-scheduler's cache has them.

The states of a pod, as pkg/scheduler/backend/cache/interface.go has them; here the pod under admission is assumed::

                          confirm
    admitted -> assumed ----------> counted as a watch shows the pod --+-> removed
                   |    forget      (EXPECTED, BOUND, TERMINATING)     |
                   +----------> not counted        ^                   |
                   |    expire                     +------ add --------+
                   +----------> not counted

- assume: the webhook has just answered for the pod. The pod counts on each node that the answer names.
- confirm: a watch has shown the pod. From now on the pod counts as the watch shows it.
- forget: the API server asks again about the same VM's pod, so that the first answer is void.
- expire: no watch has shown the pod in time. Another webhook or the API server may have rejected it.

webhook.kube.scheduler_cache.assumed_pods decides when. Here `add` counts, `confirm` and `remove` stop counting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from webhook.core.api.node import Node
from webhook.core.scheduler.state.node_info import (
    NO_REQUESTS,
    UNLISTED,
    CSIDrivers,
    NodeInfo,
    NodeRequests,
    fits_empty_node,
)
from webhook.core.scheduler.state.pod_index import IndexedPod, PodIndex
from webhook.core.scheduler.state.pod_info import PodInfo, Presence
from webhook.core.scheduler.state.pod_requests import Usage

_SEVERAL: Final = 2  # VMs that are queued for one node: a single VM may still be pinned


class PodHandle(Struct, frozen=True, gc=False):
    """What `SchedulerCache.add` returns; `confirm` and `remove` take it.

    `shown`: a watch has shown this VM's pod, and the pod is queued. `answer`: the number of an assumed pod, else 0.
    """

    node: str
    usage: Usage
    indexed_pod: IndexedPod
    queued: bool = False
    pinned: bool = False
    shortlisted: bool = False
    shown: bool = False
    answer: int = 0


class _NodePods:
    """The pods of one node: those that are bound, and those that are expected."""

    __slots__ = ("bound", "expected", "pinned", "queued", "shown", "since", "starting_together")

    def __init__(self) -> None:
        self.bound = NodeRequests()
        self.expected: dict[Usage, int] = {}
        self.queued: dict[Usage, int] = {}  # a part of `expected`
        self.pinned: dict[Usage, int] = {}  # a part of `expected`
        self.shown = 0  # queued VMs that a watch has shown
        self.starting_together = False
        self.since = 0  # the last answer before a watch showed that VMs start together, or that none is queued any more

    def show(self, change: int, answers: int, last_shown: int) -> None:
        """Note that a watch shows one queued VM more (`change` 1) or less (-1)."""
        if not self.shown and last_shown > self.since:  # no VM is queued any more, and every replica knows
            self.starting_together = False
        self.shown += change
        is_first, is_last = change > 0 and self.shown == 1, self.shown == 0
        if (self.shown >= _SEVERAL and not self.starting_together) or (
            self.starting_together and (is_first or is_last)
        ):
            self.starting_together, self.since = True, answers

    def is_empty(self) -> bool:
        return not self.bound.pods and not self.expected

    def node_info(
        self, node: Node, allocatable: Mapping[str, int], csi_drivers: CSIDrivers | None, last_shown: int
    ) -> NodeInfo:
        """Leave out a pod that is larger than the whole node: it is never bound there, so that it takes nothing."""
        requested, queued, waited_for = self.bound, NO_REQUESTS, False
        if self.expected:
            requested, queued = requested.copy(), NodeRequests()
            for usage, count in self.expected.items():
                if fits_empty_node(usage, allocatable):
                    requested.add(usage, count)
                    queued.add(usage, self.queued.get(usage, 0))
                    waited_for |= usage in self.pinned
        known = last_shown > self.since
        together = self.starting_together and (self.shown > 0 or not known)
        return NodeInfo(
            node,
            allocatable,
            requested,
            csi_drivers,
            queued.pods,
            waited_for,
            together,
            together and known,
            queued,
        )


class SchedulerCache:
    """All pods, each on the node where it counts. Each change takes a time that does not depend on the other pods.

    VMs *start together* on a node once a watch shows that several of them are queued for it. From then on no replica
    pins a VM there, until the watch shows none of them any more. Each replica sees this at its own time. A replica
    knows that all replicas have seen it once a watch shows a pod for which this replica answered later. A watch has
    then also shown every pod that any replica answered for without that knowledge.

    This holds under these conditions (tests/modelcheck visits every state of a small cluster with them):

    - Every watch shows a pod before the pod is bound.
    - An answer becomes a pod, or is void, before any pod is bound that the answer did not know of, and before an answer
      that was given with more knowledge. It does so before it expires, and before a replica that ended is ready again.
    - No pod is bound to the node that neither requires nor prefers the node. Each such pod can cost one VM its place.

    Invariant: what the cache answers is the sum of the pods that were added and not removed. It keeps nothing of a node
    that has none of them.
    """

    def __init__(self) -> None:
        self.pod_index = PodIndex()
        self._nodes: dict[str, _NodePods] = {}
        self._shortlisted: dict[bool, dict[Usage, int]] = {False: {}, True: {}}
        self._answers = 0  # the number of pods that were assumed
        self._last_shown = 0  # the number of the latest of them that a watch has shown

    def node_info(
        self, name: str, allocatable: Mapping[str, int], csi_drivers: CSIDrivers | None, node: Node = UNLISTED
    ) -> NodeInfo:
        """Return the node of that name with its pods; valid until the next change."""
        pods = self._nodes.get(name)
        if pods is None:
            return NodeInfo(node, allocatable, NO_REQUESTS, csi_drivers)
        return pods.node_info(node, allocatable, csi_drivers, self._last_shown)

    def shortlisted(self, *, assumed: bool) -> Mapping[Usage, int]:
        """Return the number of pods of each shape that may run on a short list of nodes only, and are not bound.

        Either the pods that a watch has shown, or the assumed ones.
        """
        return self._shortlisted[assumed]

    def add(self, pod: PodInfo) -> PodHandle:
        """Count a pod on one node."""
        on, usage = pod.on, pod.usage
        indexed = self.pod_index.add(pod.namespace, on.node, pod.labels, pod.anti_affinity, on.presence)
        pods = self._nodes.get(indexed.node)
        if pods is None:
            pods = self._nodes[indexed.node] = _NodePods()
        if on.presence is not Presence.EXPECTED:
            pods.bound.add(usage)
            return PodHandle(indexed.node, usage, indexed)
        _more(pods.expected, usage)
        if on.queued:
            _more(pods.queued, usage)
        if on.pinned:
            _more(pods.pinned, usage)
        if on.shortlisted:
            _more(self._shortlisted[on.assumed], usage)
        answer, shown = 0, on.is_vm and on.queued and not on.assumed
        if on.assumed:
            answer = self._answers = self._answers + 1
        if shown:
            pods.show(1, self._answers, self._last_shown)
        return PodHandle(indexed.node, usage, indexed, on.queued, on.pinned, on.shortlisted, shown, answer)

    def confirm(self, handle: PodHandle) -> None:
        """Stop counting an assumed pod, because a watch has shown it."""
        self._last_shown = max(self._last_shown, handle.answer)
        self.remove(handle)

    def remove(self, handle: PodHandle) -> None:
        """Stop counting a pod on one node."""
        pods, usage = self._nodes[handle.node], handle.usage
        if handle.indexed_pod.labelled.home.presence is not Presence.EXPECTED:
            pods.bound.remove(usage)
        else:
            _less(pods.expected, usage)
            if handle.queued:
                _less(pods.queued, usage)
            if handle.pinned:
                _less(pods.pinned, usage)
            if handle.shortlisted:
                _less(self._shortlisted[handle.answer > 0], usage)
            if handle.shown:
                pods.show(-1, self._answers, self._last_shown)
        if pods.is_empty():
            del self._nodes[handle.node]
        self.pod_index.remove(handle.indexed_pod)


def _more(counts: dict[Usage, int], usage: Usage) -> None:
    counts[usage] = counts.get(usage, 0) + 1


def _less(counts: dict[Usage, int], usage: Usage) -> None:
    counts[usage] -= 1
    if not counts[usage]:
        del counts[usage]
