"""Crowd: what the pods of a cluster leave of its nodes. The questions of webhook.core.fit, and what counts the pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from webhook.core.affinity import only_node
from webhook.core.neighbours import Neighbour, Neighbours, Presence
from webhook.core.node_labels import NodeLabels
from webhook.core.objects import Node, Pod
from webhook.core.pod_rules import PodAffinityTerm
from webhook.core.requests import Usage, takes_room, usage
from webhook.core.room import NO_HEADROOM, NodeLoad, allocatable

_EMPTY: Final = NodeLoad()


class Room(Struct, frozen=True):
    """One node.

    Attributes:
        has: what it has (`room.allocatable`).
        load: what its pods take, expected ones among them.
        volume_limits: by CSI driver.
        expected: how many of its pods are not bound yet, those among them that others like us may have promised it to.
        contested: how much of each resource others like us may be giving away at this moment.
    """

    has: Mapping[str, int]
    load: NodeLoad
    volume_limits: Mapping[str, int]
    expected: int = 0
    contested: Mapping[str, int] = NO_HEADROOM


class Crowd(Protocol):
    """Every pod that is on a node, or expected there: pinned to it, or about to be made with a pin of ours."""

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Every node by its name."""
        ...

    @property
    def node_labels(self) -> NodeLabels:
        """Labels of these nodes."""
        ...

    @property
    def neighbours(self) -> Neighbours:
        """Every pod, as rules between pods see it."""
        ...

    @property
    def headroom(self) -> Mapping[str, int]:
        """How much of each resource is to stay free on a node: milli-CPU, bytes, or whole units."""
        ...

    def room(self, node: str) -> Room:
        """What is there on a node that exists."""
        ...


class Attendant(Struct, frozen=True, kw_only=True):
    """A pod where it counts. `repels`: its required anti-affinity."""

    namespace: str
    node: str
    usage: Usage
    labels: Mapping[str, str] | None = None
    repels: Sequence[PodAffinityTerm] | None = None
    presence: Presence = Presence.BOUND


class Counted(Struct, frozen=True, gc=False):
    """What `Gathering.add` returns, and `remove` takes."""

    node: str
    usage: Usage
    neighbour: Neighbour


class Gathering:
    """The pods on all nodes, counted as they come and go; each in a time that depends on none of the others.

    Invariant: `load` and `neighbours` are what the pods that were added and not removed add up to.
    """

    def __init__(self) -> None:
        self.neighbours = Neighbours()
        self._loads: dict[str, NodeLoad] = {}
        self._expected: Counter[str] = Counter()

    def load(self, node: str) -> NodeLoad:
        """What the pods of a node take; not to be changed, and good until the next pod."""
        return self._loads.get(node, _EMPTY)

    def expected(self, node: str) -> int:
        """How many of the pods of a node are not bound yet."""
        return self._expected[node]

    def add(self, pod: Attendant) -> Counted:
        """Count a pod."""
        neighbour = self.neighbours.add(pod.namespace, pod.node, pod.labels, pod.repels, pod.presence)
        load = self._loads.get(neighbour.node)
        if load is None:
            load = self._loads[neighbour.node] = NodeLoad()
        load.add(pod.usage)
        self._expected[neighbour.node] += pod.presence is Presence.EXPECTED
        return Counted(neighbour.node, pod.usage, neighbour)

    def remove(self, counted: Counted) -> None:
        """Count it no more."""
        self._loads[counted.node].remove(counted.usage)
        self._expected[counted.node] -= counted.neighbour.labelled.home.presence is Presence.EXPECTED
        self.neighbours.remove(counted.neighbour)


class CountedCrowd:
    """The Crowd of pods and nodes that are all there to be counted, once: of files, or of lists."""

    def __init__(
        self,
        pods: Iterable[Pod],
        nodes: Mapping[str, Node],
        limits_of: Mapping[str, Mapping[str, int]],
        headroom: Mapping[str, int] = NO_HEADROOM,
    ) -> None:
        """Count every pod that is not over; `limits_of` are `volume_limits.limits` by node."""
        self.nodes = nodes
        self.node_labels = NodeLabels(charges=False)
        self.headroom = headroom
        self._limits = limits_of
        self._pods = tuple(pods)
        self._gathering = Gathering()
        self.leave_out(lambda _: False)

    def leave_out(self, is_gone: Callable[[Pod], bool]) -> None:
        """Count all pods but these; none but these is left out from now on."""
        self._gathering = Gathering()
        for pod in self._pods:
            there = None if is_gone(pod) else _attendant(pod)
            if there is not None:
                self._gathering.add(there)

    @property
    def neighbours(self) -> Neighbours:
        """Every pod, as rules between pods see it."""
        return self._gathering.neighbours

    def room(self, node: str) -> Room:
        """What is there on a node."""
        status = self.nodes[node].status if node in self.nodes else None
        has = allocatable(status.allocatable if status else None)
        gathering = self._gathering
        return Room(has, gathering.load(node), self._limits.get(node, {}), gathering.expected(node))


def _attendant(pod: Pod) -> Attendant | None:
    """A pod where it counts: on its node, or on the only one that it may run on; None where that is nowhere."""
    meta, spec, phase = pod.metadata, pod.spec, pod.status.phase if pod.status else None
    node = spec.node_name or only_node(spec.required_node_affinity)
    if not node or not takes_room(node, phase):
        return None
    bound = Presence.TERMINATING if meta.deletion_timestamp else Presence.BOUND
    repels = spec.affinity.pod_anti_affinity if spec.affinity else None
    return Attendant(
        namespace=meta.namespace or "default",
        node=node,
        usage=usage(spec, pod.status),
        labels=meta.labels,
        repels=repels.required if repels else None,
        presence=bound if spec.node_name else Presence.EXPECTED,
    )
