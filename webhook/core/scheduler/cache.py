"""SchedulerCache and NodeInfo: every pod on the node where it counts, as kube-scheduler's cache and snapshot have them.

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

webhook.kube.scheduler_cache.assumed_pods decides when. Here `add` counts, and `remove` stops counting. Invariant:
`NodeInfo.requested` counts every pod that counts on the node (webhook.core.scheduler.pod_info.pod_nodes).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Protocol

from msgspec import Struct, field

from webhook.core.api.container import UNREADABLE, Quantities, amounts, units
from webhook.core.api.meta import ObjectMeta
from webhook.core.api.node import Node
from webhook.core.scheduler.label_selector import Term
from webhook.core.scheduler.pod_info import PodInfo
from webhook.core.scheduler.pod_requests import CPU, PODS, Usage, is_counted

CSIDrivers = Mapping[str, int | None]
"""The CSI drivers of a node, each with the most volumes that can be attached there; None for no limit."""
NO_AMOUNTS: Final[Mapping[str, int]] = MappingProxyType({})
MORE_THAN_ANY: Final = units(UNREADABLE)
"""An amount that no node has: it stands for a quantity that can't be read."""

UNLISTED: Final = Node(metadata=ObjectMeta())
"""Stands for a node that the snapshot does not have."""


class NodeRequests:
    """What pods request together: their number, and the amounts of resources.

    The caller takes a pod off with the values with which it added the pod.
    """

    __slots__ = ("amounts", "pods")

    def __init__(self) -> None:
        self.pods = 0
        self.amounts: dict[str, int] = {}

    def add(self, usage: Usage, count: int = 1) -> None:
        """Count `count` pods that request `usage` each; with a negative `count`, as many no longer."""
        self.pods += count
        amounts = self.amounts
        for resource, amount in usage.requests:
            amounts[resource] = amounts.get(resource, 0) + count * amount

    def of(self, resource: str) -> int:
        """Return what is requested of a resource, or the number of pods."""
        return self.pods if resource == PODS else self.amounts.get(resource, 0)


NO_REQUESTS: Final = NodeRequests()


class NodeInfo(Struct, frozen=True):
    """One node, at one moment.

    Attributes:
        node: the Node object.
        allocatable: what the node has for pods: milli-CPU or whole units by resource.
        requested: what its pods request, with those that will probably be bound to it.
        csi_drivers: the CSI drivers in its CSINode (`csi_drivers_of`); None if no CSINode is known.
        on_the_way: what the pods request that kube-scheduler has not tried yet; a part of `requested`.
        labelled: those of its pods whose labels are kept (`PodInfo.labels`), with each pinned VM that is not bound.
    """

    node: Node
    allocatable: Mapping[str, int] = NO_AMOUNTS
    requested: NodeRequests = NO_REQUESTS
    csi_drivers: CSIDrivers | None = None
    on_the_way: NodeRequests = NO_REQUESTS
    labelled: Sequence[PodInfo] = ()

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name or ""

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return self.node.metadata.labels or {}


def allocatable(quantities: Quantities | None) -> dict[str, int]:
    """Return what a node has for pods (`status.allocatable`): milli-CPU or whole units by resource.

    Only resources that kube-scheduler counts. A quantity that can't be read is left out, so that a pod that requests
    the resource does not fit. A quantity that int64 can't hold is left out too, because Go does not read it reliably.
    """
    found = {}
    for name, thousandths in amounts(quantities).items():
        amount = thousandths if name == CPU else units(thousandths)
        if 0 < amount < MORE_THAN_ANY and (name == PODS or is_counted(name)):
            found[name] = amount
    return found


_Key = tuple[str, str, str]  # namespace, key and value of a label
_ANY: Final = ""  # stands for any namespace, because no namespace has an empty name
_NO_LABEL: Final = ("", "")


class ExistingTerms:
    """The required anti-affinity of the pods that count on nodes: the number of pods on each node that have a term.

    Each different term is stored once for each namespace that it is about. Most terms ask for one value of a label.
    Such a term is found by that label: a lookup does not grow with the cluster's terms. Invariant: after any calls of
    `count` there are only the terms of the pods that are left.
    """

    def __init__(self) -> None:
        self._terms: dict[_Key, dict[Term, dict[str, int]]] = {}

    def count(self, terms: Iterable[Term], node: str, change: int) -> None:
        """Count pods on a node that have these terms: one more (`change` 1), or one less (-1)."""
        for key, term in _by_key(terms):
            found = self._terms.setdefault(key, {})
            nodes = found.setdefault(term, {})
            nodes[node] = nodes.get(node, 0) + change
            if not nodes[node]:
                del nodes[node]
            if not nodes:
                del found[term]
            if not found:
                del self._terms[key]

    def near(self, namespace: str, labels: Mapping[str, str]) -> Iterator[tuple[Term, Collection[str]]]:
        """Yield every term that is about such a pod with its nodes, and some that are not."""
        for name in (namespace, _ANY):
            for label in (_NO_LABEL, *labels.items()):
                yield from self._terms.get((name, *label), {}).items()


def _by_key(terms: Iterable[Term]) -> Iterator[tuple[_Key, Term]]:
    for term in terms:
        asked = (each for each in term.selector.requirements if each.wanted and len(each.values) == 1)
        label = next(((each.key, each.values[0]) for each in asked), _NO_LABEL)
        for namespace in term.namespaces or (_ANY,):
            yield (namespace, *label), term


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
        self.shortlisted: Counter[Usage] = Counter()  # by shape: unbound pods that may run on a short list only

    def node_info(
        self, name: str, allocatable: Mapping[str, int], csi_drivers: CSIDrivers | None, node: Node = UNLISTED
    ) -> NodeInfo:
        """Return the node of that name with its pods; valid until the next change."""
        pods = self._nodes.get(name)
        if pods is None:
            return NodeInfo(node, allocatable, csi_drivers=csi_drivers)
        return NodeInfo(node, allocatable, pods.requested, csi_drivers, pods.on_the_way, pods.labelled)

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
            _change(self.shortlisted, pod.usage, change)


def _change(counts: Counter[Any], key: object, change: int) -> None:
    counts[key] += change
    if not counts[key]:
        del counts[key]


class Snapshot(Protocol):
    """Every node, and every pod that is bound to a node or will probably be bound to one."""

    @property
    def scheduler_cache(self) -> SchedulerCache:
        """The pods on their nodes."""

    @property
    def replicas(self) -> int:
        """The number of replicas of the webhook that an API server may call, this one included; 1 at least."""

    def node(self, name: str) -> Node:
        """Return the node of that name; `UNLISTED` for an unknown one."""

    def node_info(self, name: str) -> NodeInfo:
        """Return the node of that name with its pods; `UNLISTED` is the Node of an unknown one."""


class SnapshotUnavailable(Struct, frozen=True):
    """There is no snapshot now. `problem` says why: a part of a sentence."""

    problem: str


AnySnapshot = Snapshot | SnapshotUnavailable
