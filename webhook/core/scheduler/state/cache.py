"""Crowd: what the pods of a cluster leave of its nodes. The questions of webhook.core.placement.fit, and what counts
the pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.scheduler.plugins.node_resources_fit import refusal
from webhook.core.scheduler.state.node_info import _EMPTY, NodeInfo, NodeLoad
from webhook.core.scheduler.state.pod_index import IndexedPod, PodIndex, Presence
from webhook.core.scheduler.state.pod_requests import Usage

_CROWD: Final = 2  # VMs that are on their way to one node at once: one alone may still be pinned


class PodInfo(Struct, frozen=True, kw_only=True):
    """A pod where it counts.

    Attributes:
        repels: its required anti-affinity.
        presence: EXPECTED where it is drawn to the node and not bound yet.
        on_way: kube-scheduler has not looked at it yet.
        pinned: it is a VM's, and may run on no other node, or on few that it is drawn to alike.
        listed: it may run on a short list of nodes only. Told for one of the nodes that it is drawn to.
        vm: it is a VM's.
        in_flight: no watch has shown it yet; it is a VM's.
    """

    namespace: str
    node: str
    usage: Usage
    labels: Mapping[str, str] | None = None
    repels: Sequence[PodAffinityTerm] | None = None
    presence: Presence = Presence.BOUND
    on_way: bool = False
    pinned: bool = False
    listed: bool = False
    vm: bool = False
    in_flight: bool = False


class PodHandle(Struct, frozen=True, gc=False):
    """What `SchedulerCache.add` returns, and `remove` takes.

    `shown`: a watch has shown this VM's pod, which is on its way. `answer`: the number of a pod in flight, else 0.
    """

    node: str
    usage: Usage
    neighbour: IndexedPod
    on_way: bool = False
    pinned: bool = False
    listed: bool = False
    shown: bool = False
    answer: int = 0


class _NodePods:
    """The pods of one node: those that are bound, and those that are drawn to it and bound nowhere."""

    __slots__ = ("coming", "crowded", "drawn", "in_flight", "load", "pinned", "shown", "since")

    def __init__(self) -> None:
        self.load = NodeLoad()
        self.drawn: dict[Usage, int] = {}
        self.coming: dict[Usage, int] = {}  # of those that are drawn, the pods on their way
        self.pinned: dict[Usage, int] = {}
        self.in_flight = NodeLoad()
        self.shown = 0  # VMs on their way that a watch has shown
        self.crowded = False
        self.since = 0  # the last answer before a watch showed the crowd, or the end of it

    def show(self, change: int, answers: int, heard: int) -> None:
        """A VM more is on its way, or one less."""
        if not self.shown and heard > self.since:  # the crowd has gone, and all know
            self.crowded = False
        self.shown += change
        is_first, is_last = change > 0 and self.shown == 1, self.shown == 0
        if (self.shown >= _CROWD and not self.crowded) or (self.crowded and (is_first or is_last)):
            self.crowded, self.since = True, answers

    def is_empty(self) -> bool:
        return not self.load.pods and not self.drawn

    def room(self, has: Mapping[str, int], volume_limits: Mapping[str, int], heard: int) -> NodeInfo:
        """A pod that is larger than the whole node will never be bound there, so that it takes nothing of it."""
        load, on_way, pinned = self.load, 0, False
        if self.drawn:
            load = load.copy()
            for usage, count in self.drawn.items():
                if refusal(usage, has, _EMPTY) is None:
                    load.add(usage, count)
                    on_way += self.coming.get(usage, 0)
                    pinned |= usage in self.pinned
        known = heard > self.since
        crowded = self.crowded and (self.shown > 0 or not known)
        return NodeInfo(has, load, volume_limits, on_way, pinned, crowded, crowded and known, self.in_flight)


class SchedulerCache:
    """The pods on all nodes, counted as they come and go; each in a time that depends on none of the others.

    A *crowd* comes to a node once a watch shows that several VMs are on their way there at once: from then on no
    replica pins there. It has gone when none is shown any more. Each replica sees the same at its own time. It knows
    that all know once a watch shows a pod that it answered for after it has seen that itself; then every answer that
    was given without that knowledge has been shown, too.

    The bound: this holds as long as every watch shows a pod before the pod is bound, and an answer becomes a pod before
    any pod is bound that it did not know of, and before any answer does that was given with more knowledge.

    Invariant: what it tells is what the pods that were added and not removed add up to; of a node without any of them
    nothing is kept.
    """

    def __init__(self) -> None:
        self.pod_index = PodIndex()
        self._nodes: dict[str, _NodePods] = {}
        self._listed: dict[bool, dict[Usage, int]] = {False: {}, True: {}}
        self._answers = self._heard = 0  # how many pods were in flight, and the latest of them that a watch has shown

    def room(self, node: str, has: Mapping[str, int], volume_limits: Mapping[str, int]) -> NodeInfo:
        """What is there on a node that has so much; good until the next pod."""
        pods = self._nodes.get(node)
        return pods.room(has, volume_limits, self._heard) if pods else NodeInfo(has, _EMPTY, volume_limits)

    def listed(self, *, in_flight: bool) -> Mapping[Usage, int]:
        """As Crowd has it."""
        return self._listed[in_flight]

    def add(self, pod: PodInfo) -> PodHandle:
        """Count a pod."""
        neighbour = self.pod_index.add(pod.namespace, pod.node, pod.labels, pod.repels, pod.presence)
        pods = self._nodes.get(neighbour.node)
        if pods is None:
            pods = self._nodes[neighbour.node] = _NodePods()
        if pod.presence is not Presence.EXPECTED:
            pods.load.add(pod.usage)
            return PodHandle(neighbour.node, pod.usage, neighbour)
        _more(pods.drawn, pod.usage)
        if pod.on_way:
            _more(pods.coming, pod.usage)
        if pod.pinned:
            _more(pods.pinned, pod.usage)
        if pod.listed:
            _more(self._listed[pod.in_flight], pod.usage)
        answer, shown = 0, pod.vm and pod.on_way and not pod.in_flight
        if pod.in_flight:
            pods.in_flight.add(pod.usage)
            answer = self._answers = self._answers + 1
        if shown:
            pods.show(1, self._answers, self._heard)
        return PodHandle(neighbour.node, pod.usage, neighbour, pod.on_way, pod.pinned, pod.listed, shown, answer)

    def confirm(self, counted: PodHandle) -> None:
        """A watch has shown a pod that was in flight: it is counted as it is now."""
        self._heard = max(self._heard, counted.answer)
        self.remove(counted)

    def remove(self, counted: PodHandle) -> None:
        """Count it no more."""
        pods, usage = self._nodes[counted.node], counted.usage
        if counted.neighbour.labelled.home.presence is not Presence.EXPECTED:
            pods.load.remove(usage)
        else:
            _less(pods.drawn, usage)
            if counted.on_way:
                _less(pods.coming, usage)
            if counted.pinned:
                _less(pods.pinned, usage)
            if counted.listed:
                _less(self._listed[counted.answer > 0], usage)
            if counted.answer:
                pods.in_flight.remove(usage)
            if counted.shown:
                pods.show(-1, self._answers, self._heard)
        if pods.is_empty():
            del self._nodes[counted.node]
        self.pod_index.remove(counted.neighbour)


def _more(counts: dict[Usage, int], usage: Usage) -> None:
    counts[usage] = counts.get(usage, 0) + 1


def _less(counts: dict[Usage, int], usage: Usage) -> None:
    counts[usage] -= 1
    if not counts[usage]:
        del counts[usage]
