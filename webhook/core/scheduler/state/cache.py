"""SchedulerCache: every pod on the node where it counts, as kube-scheduler's cache has them.

The states of a pod, as pkg/scheduler/backend/cache/interface.go has them; here the pod under admission is assumed::

                          confirm
    admitted -> assumed ----------> counted as a watch shows the pod --+-> removed
                   |    forget      (expected, then bound)             |
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

from collections import Counter
from collections.abc import Mapping
from sys import intern
from typing import Final
from weakref import WeakValueDictionary

from msgspec import Struct, field

from webhook.core.api.kubevirt import HOSTNAME
from webhook.core.api.node import Node
from webhook.core.scheduler.matching.label_selector import Term, parse_terms
from webhook.core.scheduler.matching.pod_matcher import PodGroup
from webhook.core.scheduler.state.existing_terms import ExistingTerms
from webhook.core.scheduler.state.node_info import NO_AMOUNTS, UNLISTED, CSIDrivers, NodeInfo, NodeRequests
from webhook.core.scheduler.state.pod_info import NO_TERMS, TERMS_NOT_COMPARED, AntiAffinity, PodHandle, PodInfo
from webhook.core.scheduler.state.pod_requests import Usage

_SEVERAL: Final = 2  # VMs that are queued for one node: a single VM may still be pinned


class _NodePods(Struct, eq=False):
    """The pods of one node, with their sums: what an admission asks does not depend on the number of pods.

    The sums leave out a pod that is larger than the whole node and not bound: it is never bound there, so that it takes
    nothing. Therefore they hold for one `allocatable` of the node.
    """

    pods: list[PodHandle] = []
    with_anti_affinity: list[PodHandle] = []  # a part of `pods`
    allocatable: Mapping[str, int] = NO_AMOUNTS
    requested: NodeRequests = field(default_factory=NodeRequests)
    queued: NodeRequests = field(default_factory=NodeRequests)  # a part of `requested`
    waiting: int = 0  # pinned pods that are not bound
    shown: int = 0  # queued VMs that a watch has shown
    starting_together: bool = False
    since: int = 0  # the number of answers when a watch last showed that VMs begin, or end, to start together

    def sum_up(self, pod: PodHandle, change: int) -> None:
        """Add a pod to the sums (`change` 1), or take it off (-1)."""
        expected = pod.expected
        if expected and not pod.usage.fits(self.allocatable):
            return
        self.requested.add(pod.usage, change)
        if expected:
            self.waiting += change * expected.pinned
            if expected.queued:
                self.queued.add(pod.usage, change)

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

    def node_info(
        self, node: Node, allocatable: Mapping[str, int], csi_drivers: CSIDrivers | None, last_shown: int
    ) -> NodeInfo:
        """Return the node with its pods. Only after a change of `allocatable` this looks at each pod."""
        if allocatable is not self.allocatable:
            is_other, self.allocatable = allocatable != self.allocatable, allocatable
            if is_other:
                self.requested, self.queued, self.waiting = NodeRequests(), NodeRequests(), 0
                for pod in self.pods:
                    self.sum_up(pod, 1)
        known = last_shown > self.since
        together = self.starting_together and (self.shown > 0 or not known)
        return NodeInfo(
            node,
            allocatable,
            self.requested,
            csi_drivers,
            self.queued.pods,
            self.waiting > 0,
            together,
            together and known,
            self.queued,
            self.pods,
            self.with_anti_affinity,
        )


class SchedulerCache:
    """All pods, each on the node where it counts. Each change takes a time that does not depend on other nodes.

    VMs *start together* on a node once a watch shows that several of them are queued for it. From then on no replica
    pins a VM there, until the watch shows none of them any more. The replicas see this at different times. A replica
    goes on to answer after it has seen it. When a watch shows the pod of such a later answer, this replica knows two
    things: all replicas have seen it, and the watch has shown each pod that was decided before that. This holds under
    the assumptions of docs/concepts/full-nodes.md; tests/modelcheck visits every state of a small cluster with them.

    Invariant: what the cache answers is the sum of the pods that were added and not removed. It keeps nothing of a node
    that has none of them.
    """

    def __init__(self) -> None:
        self.existing_terms = ExistingTerms()
        self.not_compared = 0  # pods whose terms were too long to be read
        self._groups: WeakValueDictionary[tuple[str, tuple[str, ...]], PodGroup] = WeakValueDictionary()
        self._anti_affinity: WeakValueDictionary[tuple[Term, ...], AntiAffinity] = WeakValueDictionary()
        self._nodes: dict[str, _NodePods] = {}
        self._shortlisted: tuple[Counter[Usage], Counter[Usage]] = (Counter(), Counter())  # shown, assumed
        self._answers = 0  # the number of pods that were assumed
        self._last_shown = 0  # the number of the latest of them that a watch has shown

    def node_info(
        self, name: str, allocatable: Mapping[str, int], csi_drivers: CSIDrivers | None, node: Node = UNLISTED
    ) -> NodeInfo:
        """Return the node of that name with its pods; valid until the next change."""
        pods = self._nodes.get(name)
        if pods is None:
            return NodeInfo(node, allocatable, csi_drivers=csi_drivers)
        return pods.node_info(node, allocatable, csi_drivers, self._last_shown)

    def shortlisted(self, *, assumed: bool) -> Mapping[Usage, int]:
        """Return the number of unbound pods of each shape that may run on a short list of nodes only.

        `assumed`: those that no watch has shown yet, or else those that one has shown.
        """
        return self._shortlisted[assumed]

    def add(self, pod: PodInfo) -> PodHandle:
        """Count a pod on one node."""
        node, labels = pod.on.node, sorted((pod.labels or {}).items())
        self._answers += pod.on.assumed
        handle = PodHandle(
            on=pod.on,
            usage=pod.usage,
            group=self._group(intern(pod.namespace), tuple(intern(key) for key, _ in labels)),
            values=tuple(intern(value) for _, value in labels),
            anti_affinity=self._terms(pod) if pod.anti_affinity else NO_TERMS,
            answer=self._answers if pod.on.assumed else 0,
        )
        pods = self._nodes.get(node)
        if pods is None:
            pods = self._nodes[node] = _NodePods()
        pods.pods.append(handle)
        self.not_compared += handle.anti_affinity is TERMS_NOT_COMPARED
        if handle.anti_affinity is not NO_TERMS:
            pods.with_anti_affinity.append(handle)
            self.existing_terms.add(handle.anti_affinity.wide, (node, pod.on.bound))
        self._sum_up(handle, pods, 1)
        return handle

    def confirm(self, handle: PodHandle) -> None:
        """Stop counting an assumed pod, because a watch has shown it."""
        self._last_shown = max(self._last_shown, handle.answer)
        self.remove(handle)

    def remove(self, handle: PodHandle) -> None:
        """Stop counting a pod on one node."""
        pods = self._nodes[handle.on.node]
        pods.pods.remove(handle)
        self.not_compared -= handle.anti_affinity is TERMS_NOT_COMPARED
        if handle.anti_affinity is not NO_TERMS:
            pods.with_anti_affinity.remove(handle)
            self.existing_terms.remove(handle.anti_affinity.wide, (handle.on.node, handle.on.bound))
        self._sum_up(handle, pods, -1)
        if not pods.pods:
            del self._nodes[handle.on.node]

    def _sum_up(self, handle: PodHandle, pods: _NodePods, change: int) -> None:
        pods.sum_up(handle, change)
        expected = handle.expected
        if expected and expected.shortlisted:
            counts = self._shortlisted[expected.assumed]
            counts[handle.usage] += change
            if not counts[handle.usage]:
                del counts[handle.usage]
        if expected and expected.shown:
            pods.show(change, self._answers, self._last_shown)

    def _group(self, namespace: str, keys: tuple[str, ...]) -> PodGroup:
        group = self._groups.get((namespace, keys))
        if group is None:
            group = self._groups[namespace, keys] = PodGroup(namespace, keys)
        return group

    def _terms(self, pod: PodInfo) -> AntiAffinity:
        if isinstance(pod.anti_affinity, AntiAffinity):
            return pod.anti_affinity
        terms = tuple(parse_terms(pod.anti_affinity or (), pod.namespace) or ())
        shared = self._anti_affinity.get(terms)
        if shared is None:
            wide = tuple(term for term in terms if term.topology_key != HOSTNAME)
            shared = self._anti_affinity[terms] = AntiAffinity(terms, wide)
        return shared
