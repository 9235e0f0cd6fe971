"""Every pod of the cluster, as little of each as is asked for: what it takes of its node, whom it repels, whose it is.

An index (webhook.kube.index) that also makes what the cache keeps: a record holds what it takes to count its pod no
more. A pod that is on no node yet counts where it can only go: on the one node that it is pinned to; or, until it is
seen at all, where it was pinned to a moment ago.
Invariant: `gathering` is what the records and the reservations add up to.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from webhook.core.affinity import only_node
from webhook.core.crowd import Attendant, Counted, Gathering
from webhook.core.neighbours import Presence
from webhook.core.objects import LABEL_APP, VIRT_LAUNCHER, PodStatus, Volume
from webhook.core.pod_rules import InterPodTerms
from webhook.core.requests import takes_room, usage
from webhook.core.workload import Workload
from webhook.kube import launchers
from webhook.kube.index import ByClaim
from webhook.kube.launchers import Launcher
from webhook.kube.promises import Promises
from webhook.kube.records import share

_REQUIRED: Final = "required"  # placement.Mode, as our annotation begins


class _WireAffinity(launchers.WireAffinity, rename="camel", gc=False):
    pod_anti_affinity: InterPodTerms | None = None


class _WireSpec(Workload, rename="camel", frozen=True, kw_only=True, gc=False):
    node_name: str | None = None
    affinity: _WireAffinity | None = None
    volumes: list[Volume] | None = None


class WirePod(Struct, gc=False):
    """Any pod."""

    metadata: launchers.WireMeta
    spec: _WireSpec = field(default_factory=_WireSpec)
    status: PodStatus | None = None


class Seen(Struct, frozen=True, gc=False):
    """A pod as it was just read: where it counts, if anywhere, and the VM in it. `digest` tells it from what it was."""

    counts: Attendant | None
    launcher: Launcher | None
    namespace: str
    digest: int


class Record(Struct, frozen=True, gc=False):
    """A pod as it is counted."""

    counted: Counted | None
    launcher: Launcher | None
    digest: int


def keep(wire: WirePod) -> Seen:
    """A pod from its JSON."""
    meta, spec, labels = wire.metadata, wire.spec, wire.metadata.labels or {}
    launcher = launchers.keep(wire) if labels.get(LABEL_APP) == VIRT_LAUNCHER else None
    node, presence = _place(wire)
    if not node:
        return Seen(None, launcher, meta.namespace, 0)
    taken = share(usage(spec, wire.status))
    repels = spec.affinity.pod_anti_affinity.required if spec.affinity and spec.affinity.pod_anti_affinity else None
    digest = hash((node, presence, taken, frozenset(labels.items()), msgspec.json.encode(repels) if repels else b""))
    counts = Attendant(
        namespace=meta.namespace, node=node, usage=taken, labels=labels, repels=repels, presence=presence
    )
    return Seen(counts, launcher, meta.namespace, digest)


def _place(wire: WirePod) -> tuple[str, Presence]:
    """Where a pod counts: on its node, or on the only one that it may run on. Empty for nowhere."""
    spec, phase = wire.spec, wire.status.phase if wire.status else None
    if spec.node_name:
        presence = Presence.TERMINATING if wire.metadata.deletion_timestamp else Presence.BOUND
        return (spec.node_name if takes_room(spec.node_name, phase) else ""), presence
    node_affinity = spec.affinity.node_affinity if spec.affinity else None
    return (only_node(node_affinity.required) if node_affinity else None) or "", Presence.EXPECTED


def build(key: str, record: Record | Seen) -> Any:
    """Core's object, for a virt-launcher pod; None for any other: nobody asks for those one by one."""
    return None if record.launcher is None else launchers.build(key, record.launcher)


class Pods:
    """An Index. `launchers`: the virt-launcher pods by cache key; `by_claim`: their keys by the claims they use."""

    def __init__(self) -> None:
        self.gathering = Gathering()
        self.launchers: dict[str, Launcher] = {}
        self.by_claim = ByClaim()
        self.promises = Promises()
        self._reserved: dict[Hashable, Counted] = {}

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
            self._seen(new, new.launcher, first=old is None)
        return Record(self.gathering.add(new.counts) if new.counts else None, new.launcher, new.digest)

    def _seen(self, new: Seen, launcher: Launcher, *, first: bool) -> None:
        """Its reservation has served; a pinned pod that had none was pinned by another replica."""
        owner = new.namespace, launcher.uid
        ours = owner in self._reserved
        if new.counts and (ours or (first and launcher.state.decided == _REQUIRED)):
            self.promises.seen(new.counts.node, ours=ours)
        self.release(owner)

    def drop(self, key: str, old: Record) -> None:
        """Count a pod no more."""
        if old.launcher is not None:
            self.by_claim.drop(key, old.launcher)
            del self.launchers[key]
        if old.counted is not None:
            self.gathering.remove(old.counted)

    def reserve(self, owner: Hashable, pod: Attendant) -> Counted:
        """Count a pod that is being created, until it is seen or released. An owner has one: the last."""
        self.release(owner)
        counted = self._reserved[owner] = self.gathering.add(pod)
        return counted

    def reserved(self, owner: Hashable) -> Counted | None:
        """The reservation, None where the pod was seen or nobody waits for it."""
        return self._reserved.get(owner)

    def release(self, owner: Hashable, only: Counted | None = None) -> None:
        """Forget the reservation, if there is one; where `only` is told, if it is that one."""
        reserved = self._reserved.get(owner)
        if reserved is not None and (only is None or only is reserved):
            del self._reserved[owner]
            self.gathering.remove(reserved)
