"""Pods: the record of one, as kube-scheduler counts it on a node, and core's pod of a VM or of a share-manager."""

from __future__ import annotations

from sys import intern
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct, field

from webhook.core.api.kubevirt import HOTPLUG_DISK, LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.pod import Pod, PodStatus, WatchedPod, WatchedSpec
from webhook.core.placement.replica_share import REPLICA_LABELS
from webhook.core.pod_limits import NOT_COMPARED, TERMS_PATH, VOLUMES_PATH
from webhook.core.scheduler.pod_info import (
    NO_TERMS,
    PARTS_NOT_READ,
    TERMS_NOT_READ,
    AntiAffinity,
    PodInfo,
    anti_affinity,
    pod_info,
    pod_nodes,
)
from webhook.core.scheduler.pod_requests import Usage, usage
from webhook.kube.informer.store import namespaced_key
from webhook.kube.records.virt_launchers import claim_keys, decision_of, virt_launcher

_REPLICA: Final = REPLICA_LABELS.items()
_POD: Final = "Pod"
_T = TypeVar("_T")
_shared: WeakValueDictionary[bytes, Any] = WeakValueDictionary()
"""Each part for as long as a record has it. So the table needs no bound, and a part that is gone costs nothing."""


class WirePod(WatchedPod, kw_only=True):
    """v1.Pod with the paths of its fields that are too long to be read (webhook.core.pod_limits)."""

    spec: WatchedSpec = field(default_factory=WatchedSpec)
    not_compared: list[str] | None = field(name=NOT_COMPARED, default=None)


class ClaimUser(Struct, frozen=True, gc=False):
    """32 bytes for a pod of no VM that has claims, and 48 for one claim.

    `claims`: their cache keys, which are the strings of the claims' cache. `attached_to`: the cache key of the
    virt-launcher pod for which KubeVirt's attachment pod holds them; empty for any other pod.
    """

    claims: tuple[str, ...]
    attached_to: str


class PodRecord(Struct, frozen=True, gc=False):
    """48 bytes a pod, and 64 bytes as it counts on a node: nearly always on one, without a tuple.

    Attributes:
        counted: the pod as each node counts it; empty if no node does.
        virt_launcher: core's pod, if it is of a VM; None for any other pod.
        claim_user: what another pod has of claims, and any pod whose volumes are not read; None if none, as most pods.
        replica: whether the pod has the labels of the webhook's own pods.
    """

    counted: PodInfo | tuple[PodInfo, ...] = ()
    virt_launcher: Pod | None = None
    claim_user: ClaimUser | None = None
    replica: bool = False

    @property
    def pod_infos(self) -> tuple[PodInfo, ...]:
        """The pod as each node counts it."""
        return self.counted if isinstance(self.counted, tuple) else (self.counted,)

    @property
    def by_record(self) -> bool:
        """Whether only the webhook's record brings the pod to its nodes."""
        return bool(self.pod_infos) and self.pod_infos[0].on.by_record

    @property
    def claims(self) -> tuple[str, ...]:
        """The cache keys of the claims that the pod has."""
        if self.claim_user is not None:
            return self.claim_user.claims
        return claim_keys(self.virt_launcher) if self.virt_launcher is not None else ()


def share(part: _T) -> _T:
    """Return the one value that stands for all values equal to `part`. Callers must not change it.

    `part`: a Struct with weakref=True.
    """
    key = type(part).__name__.encode() + msgspec.json.encode(part)
    shared: _T | None = _shared.get(key)
    if shared is None:
        shared = _shared[key] = part
    return shared


def transform(wire: WirePod) -> PodRecord:
    """Return what the cache stores of a pod.

    A pod with fields that are too long counts on the node to which it is bound, and without one nowhere.
    """
    meta, spec, labels = wire.metadata, wire.spec, wire.metadata.labels or {}
    is_vm = labels.get(LABEL_APP) == VIRT_LAUNCHER
    decision = decision_of(meta)
    vm_pod = virt_launcher(wire) if is_vm else None
    namespace = intern(meta.namespace or "")
    if VOLUMES_PATH in (wire.not_compared or ()):
        claim_user: ClaimUser | None = ClaimUser((unread_claims(namespace),), "")
    else:
        claim_user = None if is_vm or not spec.volumes else _claim_user(wire)
    recorded = decision is not None and decision.wrote_terms
    terminating = bool(meta.deletion_timestamp)
    nodes = pod_nodes(spec, wire.status, terminating=terminating, is_vm=is_vm, recorded=recorded)
    if not nodes or (wire.not_compared and not spec.node_name):
        return PodRecord((), vm_pod, claim_user)
    taken, terms = _usage(spec, wire.status), _anti_affinity(wire)
    counted = tuple(pod_info(namespace, taken, terms, share(node), labels) for node in nodes)
    replica = labels.items() >= _REPLICA
    return PodRecord(counted[0] if len(counted) == 1 else counted, vm_pod, claim_user, replica)


_usages: dict[bytes, Usage] = {}
_USAGES_MAX: Final = 1024  # of pods that are alike
_ALIKE_BYTES_MAX: Final = 2048  # of what they have alike


def _usage(spec: WatchedSpec, status: PodStatus | None) -> Usage:
    """Return what the pod takes. The pods of one controller are alike: it is added up for the first of them."""
    of_status = status and (
        status.container_statuses,
        status.init_container_statuses,
        status.resources,
        status.allocated_resources,
        status.node_allocatable_resource_claim_statuses,
    )
    alike = msgspec.json.encode((spec.containers, spec.init_containers, spec.overhead, spec.resources, of_status))
    found = _usages.get(alike)
    if found is None:
        found = share(usage(spec, status))
        if len(alike) <= _ALIKE_BYTES_MAX:
            if len(_usages) >= _USAGES_MAX:
                _usages.clear()
            _usages[alike] = found
    return found


def unread_claims(namespace: str) -> str:
    """Return the cache key of a pod's claims that are not known: that of no claim, because a claim has a name."""
    return namespaced_key(namespace, "")


def _claim_user(wire: WirePod) -> ClaimUser | None:
    meta, claims = wire.metadata, claim_keys(wire)
    if not claims:
        return None
    owner = meta.owner(_POD) if meta.label(LABEL_APP) == HOTPLUG_DISK else None
    return ClaimUser(claims, namespaced_key(meta.namespace or "", owner.name) if owner and owner.name else "")


def _anti_affinity(wire: WirePod) -> AntiAffinity:
    if wire.not_compared:
        return TERMS_NOT_READ if TERMS_PATH in wire.not_compared else PARTS_NOT_READ
    terms = wire.spec.required_pod_anti_affinity
    return share(anti_affinity(terms, wire.metadata.namespace or "")) if terms else NO_TERMS
