"""Pods of any kind: what is kept of one."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct, field

from webhook.core.api.affinity import NodeAffinity
from webhook.core.api.container import Workload
from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.pod import PodSchedulingGate, PodStatus, Volume
from webhook.core.scheduler.state.cache import PodHandle, PodInfo
from webhook.core.scheduler.state.pod_nodes import places
from webhook.core.scheduler.state.pod_requests import usage
from webhook.kube.records import virt_launchers
from webhook.kube.records.shared import share
from webhook.kube.records.virt_launchers import Launcher

REPLICA_LABELS: Final = {"app.kubernetes.io/name": "kubevirt-coschedule", "app.kubernetes.io/component": "webhook"}
"""Of our own pods: what the Service of manifests/base selects, and so whom an API server may ask."""
_REPLICA: Final = REPLICA_LABELS.items()


class _WireSpec(Workload, rename="camel", frozen=True, kw_only=True, gc=False):
    node_name: str | None = None
    affinity: virt_launchers.WireAffinity | None = None
    scheduling_gates: list[PodSchedulingGate] | None = None
    volumes: list[Volume] | None = None

    @property
    def node_affinity(self) -> NodeAffinity | None:
        return self.affinity.node_affinity if self.affinity else None


class WirePod(Struct, gc=False):
    """Any pod."""

    metadata: virt_launchers.WireMeta
    spec: _WireSpec = field(default_factory=_WireSpec)
    status: PodStatus | None = None


class Seen(Struct, frozen=True, gc=False):
    """A pod as it was just read: where it counts, if anywhere, and the VM in it. `digest` tells it from what it was.

    `replica`: it has the labels of our own pods.
    """

    counts: tuple[PodInfo, ...]
    launcher: Launcher | None
    namespace: str
    digest: int
    replica: bool


class Record(Struct, frozen=True, gc=False):
    """A pod as it is counted: once for almost all, so that these need no tuple."""

    counted: PodHandle | tuple[PodHandle, ...]
    launcher: Launcher | None
    digest: int


def keep(wire: WirePod) -> Seen:
    """A pod from its JSON."""
    meta, spec, labels, affinity = wire.metadata, wire.spec, wire.metadata.labels or {}, wire.spec.affinity
    launcher = virt_launchers.keep(wire) if labels.get(LABEL_APP) == VIRT_LAUNCHER else None
    where = places(spec, wire.status, leaves=bool(meta.deletion_timestamp), is_vm=launcher is not None)
    if not where:
        return Seen((), launcher, meta.namespace, 0, replica=False)
    taken = share(usage(spec, wire.status))
    repels = affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else None
    digest = hash((*where, taken, frozenset(labels.items()), msgspec.json.encode(repels) if repels else b""))
    counts = tuple(
        PodInfo(
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
    return None if record.launcher is None else virt_launchers.build(key, record.launcher)
