"""Virt-launcher pods: the record of one.

Core finds by them the VMs that use a share-manager's volume, and steers the share-manager pod to their node.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern
from typing import Any

from msgspec import Raw, Struct, field

from webhook.core.api.affinity import (
    REQUIRED,
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinityTerm,
    named_nodes,
    pin,
)
from webhook.core.api.kubevirt import (
    ANNOTATION_MIGRATION,
    ANNOTATION_PROVISIONING,
    ANNOTATION_RECEIVER,
    LABEL_MIGRATION_JOB_UID,
    VMI_KIND,
    placing_node_selector,
)
from webhook.core.api.meta import ObjectMeta, OwnerReference
from webhook.core.api.pod import DEFAULT_SCHEDULER, PersistentVolumeClaimVolumeSource, Pod, PodSpec, Volume
from webhook.core.observe.past_decision import PastDecision, as_annotation, recorded_decision
from webhook.core.opt_in import kept_value
from webhook.core.reasons import ANNOTATION_APPLIED_PATCH, ANNOTATION_CO_SCHEDULE
from webhook.kube.informer.resource import namespaced_key
from webhook.kube.records.shared import kept_name, pod_status, refusal, scheduled_at, share


class _Annotations(Struct, gc=False):
    """The annotations of the webhook and of KubeVirt."""

    co_schedule: str | None = field(name=ANNOTATION_CO_SCHEDULE, default=None)
    written: str | None = field(name=ANNOTATION_APPLIED_PATCH, default=None)
    migration: str | None = field(name=ANNOTATION_MIGRATION, default=None)
    receiver: str | None = field(name=ANNOTATION_RECEIVER, default=None)
    provisioning: str | None = field(name=ANNOTATION_PROVISIONING, default=None)


class WirePodMeta(Struct, rename="camel", gc=False):
    """metav1.ObjectMeta of a pod, as far as it is decoded."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: _Annotations | None = None
    owner_references: list[OwnerReference] | None = None


class _RequiredTerms(Struct, gc=False):
    required: list[PodAffinityTerm] | None = field(name=REQUIRED, default=None)


class WireAffinity(Struct, rename="camel", gc=False):
    """v1.Affinity of a pod, as far as it is decoded."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: Raw = Raw()
    pod_anti_affinity: _RequiredTerms | None = None


class WirePodVolume(Struct, rename="camel", gc=False):
    """v1.Volume of a pod, as far as it is decoded."""

    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None


class _VirtLauncherCommon(Struct, frozen=True, weakref=True):
    """The part that many pods have in common.

    Attributes:
        named: the names of the nodes that a pod without a node may run on; empty if it has a node or names none.
        migrated: whether the pod is the target of a live migration.
        starts: whether a VM starts in the pod. None starts in the target of a migration, in a pod that receives a VM of
            another cluster, and in a pod that only provisions a disk.
        placing: the part of the node selector that a user chose (`placing_node_selector`); nearly always empty.
        scheduler: spec.schedulerName of a pod without a node; None for the default scheduler.
        waiting: why a container of the pod waits (`PodStatus.waiting`).
    """

    co_schedule: str | None
    node: str | None
    named: tuple[str, ...]
    phase: str | None
    migrated: bool
    starts: bool
    placing: tuple[tuple[str, str], ...]
    scheduler: str | None
    waiting: str | None


class VirtLauncher(Struct, frozen=True, gc=False):
    """88 bytes a pod, its times, and the name and uid of its VirtualMachineInstance (`vmi`, `uid`).

    `claims`: the cache keys of the claims that the pod uses. `scheduled_at`, `refusal`: as in `pod_status`. `decision`:
    what the annotations record of it, or None; many pods have the same one.
    """

    claims: tuple[str, ...]
    vmi: str | None
    uid: str | None
    created: str | None
    deleted: str | None
    scheduled_at: str | None
    refusal: str | None
    decision: PastDecision | None
    common: _VirtLauncherCommon


def vm_key(key: str, record: VirtLauncher) -> str:
    """Return NAMESPACE/NAME of the VM of the pod with this cache key (NAMESPACE/NAME) and record."""
    namespace, _, name = key.partition("/")
    return f"{namespace}/{record.vmi or name}"


def transform(wire: Any) -> VirtLauncher:
    """Return the record of a virt-launcher pod, from a webhook.kube.records.pods.WirePod."""
    meta, spec = wire.metadata, wire.spec
    node_affinity = spec.affinity.node_affinity if spec.affinity else None
    named = named_nodes(node_affinity.required) if node_affinity and not spec.node_name else ()
    owner = next((owner for owner in meta.owner_references or () if owner.kind == VMI_KIND), OwnerReference())
    co_schedule = kept_value(meta.annotations.co_schedule) if meta.annotations else None
    migrated = LABEL_MIGRATION_JOB_UID in (meta.labels or ())
    phase = wire.status.phase if wire.status else None
    waiting = wire.status.waiting if wire.status else None
    starts = not migrated and not (meta.annotations and _starts_no_vm(meta.annotations))
    migration = meta.annotations.migration if meta.annotations else None
    placing = tuple(sorted(placing_node_selector(spec.node_selector, migration).items()))
    other_scheduler = None if spec.node_name or spec.scheduler_name == DEFAULT_SCHEDULER else spec.scheduler_name
    scheduler = kept_name(other_scheduler) if other_scheduler else None
    common = _VirtLauncherCommon(
        co_schedule,
        spec.node_name,
        tuple(sorted(named)),
        phase,
        migrated,
        starts,
        placing,
        scheduler,
        waiting and kept_name(waiting),
    )
    return VirtLauncher(
        claim_keys(wire),
        owner.name and kept_name(owner.name),
        owner.uid and kept_name(owner.uid),
        meta.creation_timestamp,
        meta.deletion_timestamp,
        scheduled_at(wire.status),
        refusal(wire.status),
        decision_in(meta, migrated=migrated),
        share(common),
    )


def claim_keys(wire: Any) -> tuple[str, ...]:
    """Return the cache key of each claim that the pod has, once: the strings of the claims' cache."""
    sources = (volume.persistent_volume_claim for volume in wire.spec.volumes or ())
    names = dict.fromkeys(source.claim_name for source in sources if source and source.claim_name)
    return tuple(intern(namespaced_key(wire.metadata.namespace, kept_name(name))) for name in names)


def to_object(key: str, record: VirtLauncher) -> Pod:
    """Return the pod of this cache key (NAMESPACE/NAME) and record."""
    namespace, _, name = key.partition("/")
    common, vmi = record.common, record.vmi
    return Pod(
        metadata=ObjectMeta(
            namespace=namespace,
            name=name,
            labels={LABEL_MIGRATION_JOB_UID: ""} if common.migrated else None,
            annotations=_annotations(record),
            owner_references=None if vmi is None else [OwnerReference(kind=VMI_KIND, name=vmi, uid=record.uid)],
            creation_timestamp=record.created,
            deletion_timestamp=record.deleted,
        ),
        spec=PodSpec(
            node_name=common.node,
            scheduler_name=common.scheduler,
            node_selector=dict(common.placing) or None,
            affinity=_required(common.named) if common.named else None,
            volumes=[_volume(claim) for claim in record.claims],
        ),
        status=pod_status(common.phase, record.scheduled_at, record.refusal, common.waiting),
    )


def _starts_no_vm(annotations: _Annotations) -> bool:
    return "true" in (annotations.receiver, annotations.provisioning)


def decision_in(meta: WirePodMeta, *, migrated: bool = False) -> PastDecision | None:
    """Return what the pod records of its decision; None if it records none."""
    if meta.annotations is None or migrated:
        return None
    decision = recorded_decision(meta.annotations.written, meta.owner_references)
    return decision and share(decision)


def _annotations(record: VirtLauncher) -> dict[str, str]:
    asked = record.common.co_schedule
    recorded = as_annotation(record.decision, record.uid if record.vmi else None) if record.decision else {}
    return recorded if asked is None else {**recorded, ANNOTATION_CO_SCHEDULE: asked}


def _required(nodes: Sequence[str]) -> Affinity:
    terms = [NodeSelectorTerm(match_fields=[pin(node)]) for node in nodes]
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=terms)))


def _volume(claim: str) -> Volume:
    source = PersistentVolumeClaimVolumeSource(claim_name=claim.partition("/")[2])
    return Volume(persistent_volume_claim=source)
