"""WatchedCrowd: the Crowd (webhook.core.crowd) of a live cluster, by the caches of its pods and nodes.

It also counts what no cache shows yet: pods that were pinned a moment ago. So that of many calls at once no two get the
last seat; another replica's pins are known once their pods are seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping
from typing import Final

from webhook.core import instances
from webhook.core.crowd import Attendant, Counted, Room
from webhook.core.neighbours import Neighbours, Presence
from webhook.core.node_labels import NodeLabels
from webhook.core.objects import Node, Pod
from webhook.core.requests import usage
from webhook.core.view import Kind
from webhook.kube.index import Nodes
from webhook.kube.pods import Pods
from webhook.kube.watch import ListWatch

_RESERVED_SECONDS: Final = 10.0  # a pod is seen within a moment of its admission, or was refused by somebody after us
_SETTLED_SECONDS: Final = 0.1  # watches of two replicas are not so far apart, unless ours is late itself: then longer
_READ: Final = (Kind.VIRT_LAUNCHER_POD, Kind.NODE, Kind.CSI_NODE)


class WatchedCrowd:
    """What the caches say at the moment of asking. To be asked only while there is no `problem`."""

    def __init__(self, caches: Mapping[Kind, ListWatch], headroom: Mapping[str, int]) -> None:
        self.headroom = headroom
        self._caches = caches

    def problem(self, now: float) -> str:
        """What keeps the caches from being taken for the cluster; empty for nothing."""
        late = (cache for cache in map(self._caches.__getitem__, _READ) if not cache.fresh(now))
        return "; ".join(f"{cache.resource.title}: {cache.problem or 'not up to date'}" for cache in late)

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Every node by its name."""
        return self._caches[Kind.NODE].objects

    @property
    def node_labels(self) -> NodeLabels:
        """Labels of these nodes."""
        nodes = self._caches[Kind.NODE].index
        assert isinstance(nodes, Nodes)  # noqa: S101 - for the type checker: that is what kinds gives this cache
        return nodes.labels

    @property
    def neighbours(self) -> Neighbours:
        """Every pod, as rules between pods see it."""
        return self._pods.gathering.neighbours

    def room(self, node: str) -> Room:
        """What is there on a node."""
        nodes = self._caches[Kind.NODE].index
        has = nodes.has.get(node, {}) if isinstance(nodes, Nodes) else {}
        limits = self._caches[Kind.CSI_NODE].objects.get(node, {})
        gathering = self._pods.gathering
        promises = self._pods.promises
        expected = gathering.expected(node) + promises.open(node)
        return Room(has, gathering.load(node), limits, expected, promises.contested(node))

    def leave(self) -> None:
        """This process is about to end: others are asked from now on, too."""
        self._pods.promises.leave()

    def refuse(self, pod: Pod) -> None:
        """A pod got no pin for want of room. While that goes on, it is no pod that starts alone."""
        self._pods.promises.ask(usage(pod.spec))

    def reserve(self, pod: Pod, namespace: str, node: str) -> None:
        """Count a pod where it was just pinned to, until it is seen, or for a short time."""
        apart = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
        instance = instances.owner(pod)
        owner = (namespace, instance.uid) if instance and instance.uid else object()
        pods, taken = self._pods, usage(pod.spec)
        attendant = Attendant(
            namespace=namespace,
            node=node,
            usage=taken,
            labels=pod.metadata.labels,
            repels=apart.required if apart else None,
            presence=Presence.EXPECTED,
        )
        pods.promises.ask(taken)
        _Reservation(pods, owner, pods.reserve(owner, attendant))

    @property
    def _pods(self) -> Pods:
        pods = self._caches[Kind.VIRT_LAUNCHER_POD].index
        assert isinstance(pods, Pods)  # noqa: S101 - for the type checker: that is what kinds gives this cache
        return pods


class _Reservation:
    """What becomes of a reservation as time goes by, for as long as it is its owner's last."""

    def __init__(self, pods: Pods, owner: Hashable, counted: Counted) -> None:
        self._pods, self._owner, self._counted = pods, owner, counted
        self._loop = asyncio.get_running_loop()
        self._loop.call_later(_RESERVED_SECONDS, pods.release, owner, counted)
        pods.promises.add(owner, counted.node, counted.usage)
        self._loop.call_later(_SETTLED_SECONDS, self._look, _SETTLED_SECONDS)

    def _look(self, seconds: float) -> None:
        """Whether its pod was seen. Then others' pods of the same time are soon, too: as soon as ours was, at most."""
        reserved = self._pods.reserved(self._owner)
        if reserved is self._counted:
            self._loop.call_later(2 * seconds, self._look, 2 * seconds)
        elif reserved is None:
            self._loop.call_later(seconds, self._settle)

    def _settle(self) -> None:
        if self._pods.reserved(self._owner) is None:
            self._pods.promises.settle(self._owner)
