"""Pods of any kind: the record of one, as kube-scheduler counts it on a node."""

from __future__ import annotations

from collections.abc import Iterable
from sys import intern
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from webhook.core.api.affinity import PREFERRED, NodeAffinity
from webhook.core.api.container import Workload
from webhook.core.api.kubevirt import HOTPLUG_DISK, LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.longhorn import LABEL_LONGHORN_NODE, near_nodes
from webhook.core.api.pod import PodSchedulingGate, PodStatus
from webhook.core.large_pod import NOT_COMPARED, TERMS_PATH, VOLUMES_PATH
from webhook.core.placement.replica_share import REPLICA_LABELS
from webhook.core.scheduler.state.pod_info import (
    NO_TERMS,
    PARTS_NOT_READ,
    TERMS_NOT_READ,
    AntiAffinity,
    PodInfo,
    anti_affinity,
    pod_info,
    pod_nodes,
)
from webhook.core.scheduler.state.pod_requests import usage
from webhook.kube.informer.resource import namespaced_key
from webhook.kube.records import virt_launchers
from webhook.kube.records.shared import share
from webhook.kube.records.virt_launchers import VirtLauncher, WireAffinity, WirePodMeta, WirePodVolume, decision_in

_REPLICA: Final = REPLICA_LABELS.items()
_POD: Final = "Pod"


class _WireSpec(Workload, rename="camel", frozen=True, kw_only=True, gc=False):
    node_name: str | None = None
    scheduler_name: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: WireAffinity | None = None
    scheduling_gates: list[PodSchedulingGate] | None = None
    volumes: list[WirePodVolume] | None = None

    @property
    def node_affinity(self) -> NodeAffinity | None:
        return self.affinity.node_affinity if self.affinity else None

    @property
    def near_nodes(self) -> Iterable[str]:
        raw = bytes(self.affinity.pod_affinity) if self.affinity else b""
        terms = (msgspec.json.decode(raw) or {}).get(PREFERRED) if LABEL_LONGHORN_NODE.encode() in raw else None
        return near_nodes(terms or ())


class WirePod(Struct, gc=False):
    """A pod, as far as it is decoded."""

    metadata: WirePodMeta
    spec: _WireSpec = field(default_factory=_WireSpec)
    status: PodStatus | None = None
    not_compared: list[str] | None = field(name=NOT_COMPARED, default=None)


class ClaimUser(Struct, frozen=True, gc=False):
    """32 bytes for a pod of no VM that has claims, and 48 for one claim.

    `claims`: their cache keys, which are the strings of the claims' cache. `attached_to`: the cache key of the
    virt-launcher pod for which KubeVirt's attachment pod holds them; empty for any other pod.
    """

    claims: tuple[str, ...]
    attached_to: str


class DecodedPod(Struct, frozen=True, gc=False):
    """A pod before the scheduler cache counts it.

    Attributes:
        pod_infos: the pod as each node counts it; empty if no node does.
        virt_launcher: the record of a virt-launcher pod; None for any other pod.
        claim_user: what another pod has of claims, and any pod whose volumes are not read; None if none, as most pods.
        digest: equal for two states of a pod that count alike.
        replica: whether the pod has the labels of the webhook's own pods.
    """

    pod_infos: tuple[PodInfo, ...]
    virt_launcher: VirtLauncher | None
    claim_user: ClaimUser | None
    namespace: str
    digest: int
    replica: bool

    @property
    def by_record(self) -> bool:
        """Whether only the webhook's record brings the pod to its nodes."""
        return bool(self.pod_infos) and self.pod_infos[0].on.by_record


class PodRecord(Struct, frozen=True, gc=False):
    """40 bytes a pod, a digest of 36 bytes, and 64 bytes as it counts on a node: nearly always on one, without a tuple.

    A virt-launcher pod that counts by its record has none of these here: the index has them by VirtualMachineInstance.
    """

    pod_infos: PodInfo | tuple[PodInfo, ...]
    virt_launcher: VirtLauncher | None
    digest: int


def transform(wire: WirePod) -> DecodedPod:
    """Return what the scheduler cache counts of a pod. Its index makes the PodRecord that the cache stores.

    A pod with fields that are too long counts on the node to which it is bound, and without one nowhere.
    """
    meta, spec, labels = wire.metadata, wire.spec, wire.metadata.labels or {}
    is_vm = labels.get(LABEL_APP) == VIRT_LAUNCHER
    virt_launcher = virt_launchers.transform(wire) if is_vm else None
    if VOLUMES_PATH in (wire.not_compared or ()):
        claim_user: ClaimUser | None = ClaimUser((unread_claims(meta.namespace),), "")
    else:
        claim_user = None if is_vm or not spec.volumes else _claim_user(wire)
    decision = virt_launcher.decision if virt_launcher else decision_in(meta)
    recorded = decision is not None and decision.wrote_terms
    terminating = bool(meta.deletion_timestamp)
    nodes = pod_nodes(spec, wire.status, terminating=terminating, is_vm=is_vm, recorded=recorded)
    if not nodes or (wire.not_compared and not spec.node_name):
        digest = hash(claim_user) if claim_user else 0
        return DecodedPod((), virt_launcher, claim_user, meta.namespace, digest, replica=False)
    taken = share(usage(spec, wire.status))
    namespace, terms = intern(meta.namespace), _anti_affinity(wire)
    pod_infos = tuple(pod_info(namespace, taken, terms, share(node), labels) for node in nodes)
    replica = labels.items() >= _REPLICA
    digest = hash((tuple(map(_digest, pod_infos)), claim_user, replica))
    return DecodedPod(pod_infos, virt_launcher, claim_user, meta.namespace, digest, replica=replica)


def unread_claims(namespace: str) -> str:
    """Return the cache key of a pod's claims that are not known: that of no claim, because a claim has a name."""
    return namespaced_key(namespace, "")


def _claim_user(wire: WirePod) -> ClaimUser | None:
    meta = wire.metadata
    claims = virt_launchers.claim_keys(wire)
    if not claims:
        return None
    attaches = (meta.labels or {}).get(LABEL_APP) == HOTPLUG_DISK
    owner = next((each.name for each in meta.owner_references or () if each.kind == _POD), None) if attaches else None
    return ClaimUser(claims, namespaced_key(meta.namespace, owner) if owner else "")


def _anti_affinity(wire: WirePod) -> AntiAffinity:
    if wire.not_compared:
        return TERMS_NOT_READ if TERMS_PATH in wire.not_compared else PARTS_NOT_READ
    affinity = wire.spec.affinity
    terms = affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else None
    return share(anti_affinity(terms, wire.metadata.namespace)) if terms else NO_TERMS


def _digest(pod: PodInfo) -> int:
    """Return a hash of what counts, in which the order of labels does not."""
    labels = None if pod.labels is None else frozenset(pod.labels.items())
    return hash((pod.namespace, pod.usage, pod.anti_affinity, pod.on, labels))


def to_object(key: str, record: PodRecord | DecodedPod) -> Any:
    """Return core's Pod of a virt-launcher pod; None for any other pod, because core reads no other pod by its key."""
    return None if record.virt_launcher is None else virt_launchers.to_object(key, record.virt_launcher)
