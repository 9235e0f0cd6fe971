"""The pods of VMs and of share-managers: what a cache stores of core's pod.

Core finds by the pods of VMs those that use a share-manager's volume, and steers the share-manager pod to their node.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from sys import intern
from typing import Final

from webhook.core.api import kubevirt
from webhook.core.api.affinity import Affinity, NodeAffinity, NodeSelector, NodeSelectorTerm, named_nodes, pin
from webhook.core.api.container import ContainerState, ContainerStateWaiting, ContainerStatus
from webhook.core.api.kubevirt import (
    ANNOTATION_PROVISIONING,
    ANNOTATION_RECEIVER,
    LABEL_APP,
    LABEL_MIGRATION_JOB_UID,
    VIRT_LAUNCHER,
    VMI_KIND,
)
from webhook.core.api.longhorn import LABEL_LONGHORN_COMPONENT
from webhook.core.api.meta import Condition, ObjectMeta, OwnerReference
from webhook.core.api.pod import (
    DEFAULT_SCHEDULER,
    POD_SCHEDULED,
    UNSCHEDULABLE,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodSpec,
    PodStatus,
    Volume,
    WatchedPod,
    claims_of,
)
from webhook.core.observe.past_decision import PastDecision, as_annotation, recorded_decision
from webhook.core.opt_in import kept_value
from webhook.core.reasons import ANNOTATION_APPLIED_PATCH, ANNOTATION_CO_SCHEDULE, SENTENCE_MAX_CHARS
from webhook.kube.informer.store import namespaced_key
from webhook.kube.records.objects import kept_name, word

_LABELS: Final = {LABEL_APP: VIRT_LAUNCHER}
_LABELS_OF_TARGET: Final = {**_LABELS, LABEL_MIGRATION_JOB_UID: ""}


def claim_keys(pod: WatchedPod) -> tuple[str, ...]:
    """Return the cache key of each claim that the pod has, once: the strings of the claims' cache."""
    namespace = pod.metadata.namespace or ""
    return tuple(intern(namespaced_key(namespace, kept_name(name))) for name in dict.fromkeys(claims_of(pod)))


def vm_key(pod: Pod) -> str:
    """Return NAMESPACE/NAME of the VM of a virt-launcher pod."""
    return namespaced_key(pod.metadata.namespace or "", kubevirt.vm_name(pod))


def vmi_uid(pod: WatchedPod) -> str | None:
    """Return the uid of the VirtualMachineInstance of a virt-launcher pod; None if it has none."""
    owner = kubevirt.owner(pod)
    return owner.uid if owner else None


def virt_launcher(wire: WatchedPod) -> Pod:
    """Return a pod of a VM with what core reads of it: node, claims, decision, and whether the VM starts in it.

    Of its node selector the part is kept that a user chose, of its affinity the nodes that it names while it has none.
    """
    meta, spec, owner = wire.metadata, wire.spec, kubevirt.owner(wire)
    decision = decision_of(meta)
    kept = {key: "true" for key in (ANNOTATION_RECEIVER, ANNOTATION_PROVISIONING) if meta.annotation(key) == "true"}
    asked = kept_value(meta.annotation(ANNOTATION_CO_SCHEDULE))
    if asked is not None:
        kept[ANNOTATION_CO_SCHEDULE] = asked
    if decision is not None:
        kept |= as_annotation(decision, vmi_uid(wire))
    node_affinity = None if spec.node_name else spec.node_affinity
    named = sorted(named_nodes(node_affinity.required)) if node_affinity else []
    placing = kubevirt.placing_node_selector(spec.node_selector, meta.annotation(kubevirt.ANNOTATION_MIGRATION))
    scheduler = None if spec.node_name or spec.scheduler_name == DEFAULT_SCHEDULER else spec.scheduler_name
    return Pod(
        metadata=ObjectMeta(
            namespace=word(meta.namespace),
            name=meta.name,
            labels=_LABELS if meta.label(LABEL_MIGRATION_JOB_UID) is None else _LABELS_OF_TARGET,
            annotations=kept or None,
            owner_references=None if owner is None else [_kept_owner(owner)],
            creation_timestamp=meta.creation_timestamp,
            deletion_timestamp=meta.deletion_timestamp,
        ),
        spec=PodSpec(
            node_name=word(spec.node_name),
            scheduler_name=scheduler and kept_name(scheduler),
            node_selector=placing or None,
            affinity=_required(named) if named else None,
            volumes=[
                Volume(persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=kept_name(name)))
                for name in dict.fromkeys(claims_of(wire))
            ],
        ),
        status=_status(wire.status),
    )


def share_manager_pod(wire: WatchedPod) -> Pod:
    """Return a share-manager pod with its node, phase, deletion and decision, and since when it has its node."""
    meta, decision = wire.metadata, decision_of(wire.metadata)
    return Pod(
        metadata=ObjectMeta(
            name=intern(meta.name or ""),
            labels=_component(meta.label(LABEL_LONGHORN_COMPONENT)),
            annotations=None if decision is None else _recorded(decision),
            deletion_timestamp=meta.deletion_timestamp,
        ),
        spec=_on_node(wire.spec.node_name),
        status=_status(wire.status),
    )


def decision_of(meta: ObjectMeta) -> PastDecision | None:
    """Return what the pod records of its decision; None if it records none."""
    written = meta.annotation(ANNOTATION_APPLIED_PATCH)
    if written is None or meta.label(LABEL_MIGRATION_JOB_UID) is not None:
        return None
    return recorded_decision(written, meta.owner_references)


# Many share-manager pods have one of these parts: a cache keeps it once.


@lru_cache(maxsize=8)
def _component(label: str | None) -> dict[str, str] | None:
    return None if label is None else {LABEL_LONGHORN_COMPONENT: label}


@lru_cache(maxsize=8192)
def _recorded(decision: PastDecision) -> dict[str, str]:
    return as_annotation(decision, owner=None)


@lru_cache(maxsize=8192)  # as many as the largest clusters have nodes
def _on_node(node: str | None) -> PodSpec:
    return PodSpec(node_name=node)


def _kept_owner(owner: OwnerReference) -> OwnerReference:
    name, uid = owner.name and kept_name(owner.name), owner.uid and kept_name(owner.uid)
    return OwnerReference(kind=VMI_KIND, name=name, uid=uid)


def _required(nodes: Iterable[str]) -> Affinity:
    terms = [NodeSelectorTerm(match_fields=[pin(node)]) for node in nodes]
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=terms)))


def _status(status: PodStatus | None) -> PodStatus:
    """Return phase and condition PodScheduled, with kube-scheduler's refusal, and why a container waits."""
    status = status or PodStatus()
    scheduled, waiting = status.scheduled, status.waiting
    refused = scheduled is not None and scheduled.reason == UNSCHEDULABLE
    condition = scheduled and Condition(
        type=POD_SCHEDULED,
        reason=UNSCHEDULABLE if refused else None,
        message=(scheduled.message or "")[:SENTENCE_MAX_CHARS] if refused else None,
        last_transition_time=scheduled.last_transition_time,
    )
    state = waiting and ContainerState(ContainerStateWaiting(kept_name(waiting)))
    return PodStatus(
        phase=word(status.phase),
        conditions=[condition] if condition else None,
        container_statuses=[ContainerStatus(state=state)] if state else None,
    )
