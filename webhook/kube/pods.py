"""Every pod of the cluster, as little of each as is asked for: what it takes of its node, whom it repels, whose it is.

An index (webhook.kube.index) that also makes what the cache keeps: a record holds what it takes to count its pod no
more. Invariant: `gathering` is what the records and the assumed pods add up to.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from webhook.core.api.affinity import NodeAffinity
from webhook.core.api.container import Workload
from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.pod import PodSchedulingGate, PodStatus, Volume
from webhook.core.scheduler.state.cache import Attendant, Counted, Gathering
from webhook.core.scheduler.state.pod_nodes import places
from webhook.core.scheduler.state.pod_requests import usage
from webhook.kube import launchers
from webhook.kube.index import ByClaim
from webhook.kube.launchers import Launcher
from webhook.kube.records import share

REPLICA_LABELS: Final = {"app.kubernetes.io/name": "kubevirt-coschedule", "app.kubernetes.io/component": "webhook"}
"""Of our own pods: what the Service of manifests/base selects, and so whom an API server may ask."""

_REPLICA: Final = REPLICA_LABELS.items()


class _WireSpec(Workload, rename="camel", frozen=True, kw_only=True, gc=False):
    node_name: str | None = None
    affinity: launchers.WireAffinity | None = None
    scheduling_gates: list[PodSchedulingGate] | None = None
    volumes: list[Volume] | None = None

    @property
    def node_affinity(self) -> NodeAffinity | None:
        return self.affinity.node_affinity if self.affinity else None


class WirePod(Struct, gc=False):
    """Any pod."""

    metadata: launchers.WireMeta
    spec: _WireSpec = field(default_factory=_WireSpec)
    status: PodStatus | None = None


class Seen(Struct, frozen=True, gc=False):
    """A pod as it was just read: where it counts, if anywhere, and the VM in it. `digest` tells it from what it was.

    `replica`: it has the labels of our own pods.
    """

    counts: tuple[Attendant, ...]
    launcher: Launcher | None
    namespace: str
    digest: int
    replica: bool


class Record(Struct, frozen=True, gc=False):
    """A pod as it is counted: once for almost all, so that these need no tuple."""

    counted: Counted | tuple[Counted, ...]
    launcher: Launcher | None
    digest: int


def keep(wire: WirePod) -> Seen:
    """A pod from its JSON."""
    meta, spec, labels, affinity = wire.metadata, wire.spec, wire.metadata.labels or {}, wire.spec.affinity
    launcher = launchers.keep(wire) if labels.get(LABEL_APP) == VIRT_LAUNCHER else None
    where = places(spec, wire.status, leaves=bool(meta.deletion_timestamp), is_vm=launcher is not None)
    if not where:
        return Seen((), launcher, meta.namespace, 0, replica=False)
    taken = share(usage(spec, wire.status))
    repels = affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else None
    digest = hash((*where, taken, frozenset(labels.items()), msgspec.json.encode(repels) if repels else b""))
    counts = tuple(
        Attendant(
            namespace=meta.namespace,
            usage=taken,
            labels=labels,
            repels=repels,
            node=place.node,
            presence=place.presence,
            on_way=place.on_way,
            pinned=place.pinned,
            listed=place.listed,
            vm=place.vm,
        )
        for place in where
    )
    return Seen(counts, launcher, meta.namespace, digest, replica=labels.items() >= _REPLICA)


def build(key: str, record: Record | Seen) -> Any:
    """Core's object, for a virt-launcher pod; None for any other: nobody asks for those one by one."""
    return None if record.launcher is None else launchers.build(key, record.launcher)


class Pods:
    """An Index, and what kube-scheduler calls its cache: every pod that takes a place, seen or assumed.

    A pod that was just admitted is assumed to be where it was drawn to, until a watch shows it, until it is decided on
    anew, or until it expires, for somebody after us may have refused it (pkg/scheduler/backend/cache/interface.go)::

        admitted -> assumed --+--> confirmed: a watch shows the VM's pod
                              +--> forgotten: the same VM's pod is asked about again
                              +--> expired

    Attributes:
        gathering: where the pods are.
        launchers: the virt-launcher pods by cache key; `by_claim`: their keys by the claims they use.
        replicas: the cache keys of our own pods.
    """

    def __init__(self, namespace: str = "") -> None:
        """Our own pods are in `namespace`."""
        self.gathering = Gathering()
        self.launchers: dict[str, Launcher] = {}
        self.by_claim = ByClaim()
        self.replicas: set[str] = set()
        self._namespace = namespace
        self._assumed: dict[Hashable, tuple[Counted, ...]] = {}

    def same(self, old: Record, new: Seen) -> bool:
        """Whether the pod is as it was."""
        return old.digest == new.digest and old.launcher == new.launcher

    def put(self, key: str, old: Record | None, new: Seen) -> Record:
        """Count a pod as it is now, and no more as it was."""
        if old is not None:
            if self.same(old, new):
                return old
            self.drop(key, old)
        if new.launcher is not None:
            self.by_claim.put(key, None, new.launcher)
            self.launchers[key] = new.launcher
            for assumed in self._assumed.pop((new.namespace, new.launcher.uid), ()):
                self.gathering.confirm(assumed)
        if new.replica and new.namespace == self._namespace:
            self.replicas.add(key)
        counted = tuple(map(self.gathering.add, new.counts))
        return Record(counted[0] if len(counted) == 1 else counted, new.launcher, new.digest)

    def drop(self, key: str, old: Record) -> None:
        """Count a pod no more."""
        self.replicas.discard(key)
        if old.launcher is not None:
            self.by_claim.drop(key, old.launcher)
            del self.launchers[key]
        for counted in old.counted if isinstance(old.counted, tuple) else (old.counted,):
            self.gathering.remove(counted)

    def assume(self, owner: Hashable, pods: Iterable[Attendant]) -> tuple[Counted, ...]:
        """Count a pod that is being created, on each node that it is drawn to. An owner has one: the last."""
        self.forget(owner)
        assumed = self._assumed[owner] = tuple(map(self.gathering.add, pods))
        return assumed

    def forget(self, owner: Hashable, only: tuple[Counted, ...] | None = None) -> None:
        """Count the owner's assumed pod no more, if there is one; where `only` is told, if it is that one."""
        assumed = self._assumed.get(owner)
        if assumed is not None and (only is None or only is assumed):
            del self._assumed[owner]
            for counted in assumed:
                self.gathering.remove(counted)
