"""One replica of the webhook: the caches and the decision are the real ones; this module only calls them.

Invariant: two replicas with one picture always answer alike from then on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextvars import Context
from typing import Any, Final, NamedTuple, cast

from modelcheck import pods as model_pods
from modelcheck.pods import (
    NAMESPACE,
    Ask,
    Cluster,
    Expire,
    Happening,
    Shape,
    Show,
    ShowGone,
    ShowOther,
    Terms,
    pod_key,
    vmi_key,
)
from msgspec import Struct
from support.fakes.views import ViewWithGaps

from webhook.core.api.kubevirt import owner
from webhook.core.api.meta import OwnerReference
from webhook.core.decision import Leave, Pin
from webhook.core.opt_in import Policy
from webhook.core.placement.virt_launcher import place_virt_launcher
from webhook.core.scheduler.cache import NodeRequests, SchedulerCache, _NodePods
from webhook.core.view import Kind
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.records.objects import NodeIndex
from webhook.kube.records.pods import PodRecord
from webhook.kube.scheduler_cache.assumed_pods import ANY_NUMBER, PodIndex
from webhook.kube.scheduler_cache.snapshot import CachedSnapshot


class Parts(NamedTuple):
    """What a replica is made of. A test puts in a part with a fault."""

    pods: Callable[..., PodIndex] = PodIndex
    snapshot: Callable[..., CachedSnapshot] = CachedSnapshot


REAL: Final = Parts()


class Timers(asyncio.SelectorEventLoop):
    """An event loop that calls nothing later: it keeps what it was to call, for the model to choose the time."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[Callable[..., object], tuple[Any, ...]]] = []

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Keep the call."""
        self.kept.append((callback, args))
        return asyncio.TimerHandle(delay, callback, args, self, context)


class _Cached(Struct):
    """What CachedSnapshot reads of the cache of one kind."""

    index: Any
    objects: Any


class _View(ViewWithGaps):
    """The facts of the model, and the snapshot of one replica."""

    def __init__(self, cluster: Cluster, snapshot: CachedSnapshot) -> None:
        super().__init__(model_pods.facts(cluster.names, cluster.full_nodes), {})
        self._snapshot = snapshot

    def snapshot(self) -> CachedSnapshot:
        """Return the snapshot of the replica."""
        return self._snapshot


_POLICY: Final = Policy()
assert set(_NodePods.__slots__) == {"requested", "on_the_way", "labelled"}, "promises() must have every field"
assert set(vars(SchedulerCache())) == {"existing_terms", "on_the_way", "_nodes", "shortlisted"}, (
    "promises() must have every field"
)


class Picture(NamedTuple):
    """All on which the later answers of a replica can depend. The parts in the middle name VMs."""

    promises: Hashable
    assumed: tuple[tuple[int, Hashable], ...]
    shown: tuple[tuple[int, Terms, str], ...]
    others: Hashable
    timers: tuple[int, ...]

    def renumbered(self, to: Sequence[int]) -> Picture:
        """Return the picture if VM 0 had the number to[0], and so on."""
        return self._replace(
            assumed=tuple(sorted((to[vm], rest) for vm, rest in self.assumed)),
            shown=tuple(sorted((to[vm], *rest) for vm, *rest in self.shown)),
            timers=tuple(to[vm] for vm in self.timers),
        )


class Replica:
    """A replica that has just started, and has listed the nodes and the webhook's own pods."""

    def __init__(self, cluster: Cluster, parts: Parts) -> None:
        self.pods = parts.pods(NAMESPACE, nodes_max=self._nodes_max)
        self._vmis: dict[str, str | None] = {}
        self._records: dict[str, Any] = {}
        self._shown: dict[int, tuple[Terms, str]] = {}
        self._others: dict[str, str] = {}
        self._vms: dict[Hashable, int] = {}
        self._timers: list[tuple[int, Callable[..., object], tuple[Any, ...]]] = []
        nodes = _nodes(cluster)
        caches = {
            Kind.VIRT_LAUNCHER_POD: _Cached(self.pods, self._records),
            Kind.NODE: nodes,
            Kind.CSI_NODE: _Cached(None, {}),
        }
        self._snapshot = parts.snapshot(cast("Mapping[Kind, ListWatch]", caches))
        self._view = _View(cluster, self._snapshot)
        for index in range(cluster.replicas):
            self._put(f"replica-{index}", model_pods.replica_pod(index))

    def happens(self, happening: Happening) -> Pin | Leave | None:
        """Take in what happens, and return the decision if the replica was asked."""
        match happening:
            case Ask(vm, shape):
                return self._ask(vm, shape)
            case Show(vm, shape, terms, phase):
                self._put(pod_key(vm), model_pods.shown(vm, shape, terms, phase))
                self._show_vmi(vm, shape)
                self._shown[vm] = terms, phase
            case ShowOther(name, node):
                self._put(name, model_pods.other_pod(name, node))
                self._others[name] = node
            case ShowGone(vm):
                if self._shown.pop(vm, None):
                    self.pods.recount(vmi_key(vm), self._vmis.pop(vmi_key(vm)))  # its watch is ahead
                    self.pods.drop(pod_key(vm), self._records.pop(pod_key(vm)))
            case Expire(vm):
                number = next(number for number, each in enumerate(self._timers) if each[0] == vm)
                _, callback, arguments = self._timers.pop(number)
                callback(*arguments)
        return None

    def _ask(self, vm: int, shape: Shape) -> Pin | Leave:
        """As webhook.app.handler does: forget, decide, assume."""
        pod = model_pods.asked(vm, shape)
        self._snapshot.forget(pod, NAMESPACE)
        decision = place_virt_launcher(pod, NAMESPACE, self._view, _POLICY)
        if isinstance(decision, Pin):
            self._snapshot.assume(pod, NAMESPACE, decision)
            vmi = owner(pod)
            self._vms[NAMESPACE, vmi and vmi.uid] = vm
            loop = asyncio.get_running_loop()
            assert isinstance(loop, Timers)
            self._timers += [(vm, *each) for each in loop.kept]
            loop.kept.clear()
        return decision

    def _nodes_max(self, vmi: str, uid: str | None) -> int:
        """As webhook.kube.cache.caches does; the node of each share-manager is one."""
        return ANY_NUMBER if uid is not None and self._vmis.get(vmi) == uid else 0

    def _show_vmi(self, vm: int, shape: Shape) -> None:
        """A watch shows the VirtualMachineInstance, here after the pod: only then does the pod count."""
        vmi = owner(model_pods.asked(vm, shape)) or OwnerReference()
        self._vmis[vmi_key(vm)] = vmi.uid
        self.pods.recount(vmi_key(vm), vmi.uid)

    def _put(self, key: str, pod: PodRecord) -> None:
        self._records[key] = self.pods.put(key, self._records.get(key), pod)

    def timers(self) -> tuple[int, ...]:
        """Return the VM of each answer that still counts, and whose time is not over."""
        assumed = [id(handles) for handles in self.pods._assumed.values()]
        return tuple(vm for vm, _, arguments in self._timers if vm not in self._shown and id(arguments[1]) in assumed)

    def promises(self) -> Hashable:
        """Return what the replica counts on each node, and what it has assumed. No pod of the model has rules.

        `on_the_way` of the cache follows from that of the nodes.
        """
        cache = self.pods.scheduler_cache
        nodes = tuple(
            (name, _sums(each.requested), _sums(each.on_the_way), len(each.labelled))
            for name, each in sorted(cache._nodes.items())
        )
        return nodes, _counts(cache.shortlisted), len(self.pods._assumed)

    def picture(self) -> Picture:
        """Return all on which a later answer can depend."""
        assumed = [(self._vms[owner], counted) for owner, counted in self.pods._assumed.items()]
        return Picture(
            self.promises(),
            tuple(sorted((vm, tuple((each.on.node, each.on.pinned) for each in counted)) for vm, counted in assumed)),
            tuple(sorted((vm, *label) for vm, label in self._shown.items())),
            tuple(sorted(self._others.items())),
            self.timers(),
        )


_node_caches: dict[Cluster, _Cached] = {}


def _nodes(cluster: Cluster) -> _Cached:
    if cluster not in _node_caches:
        index, objects = NodeIndex(), {}
        full = [(f"full-{number}", 0) for number in range(cluster.full_nodes)]
        for name, places in (*cluster.places, *full):
            objects[name] = index.put(name, None, model_pods.node(name, places))
        _node_caches[cluster] = _Cached(index, objects)
    return _node_caches[cluster]


def _sums(requests: NodeRequests) -> Hashable:
    return requests.pods, tuple(sorted(each for each in requests.amounts.items() if each[1]))


def _counts(counts: Mapping[Any, int]) -> Hashable:
    return tuple(sorted((str(usage), count) for usage, count in counts.items()))
