"""v1.Pod with the fields that core reads, decoded straight from JSON.

The decoder skips all other fields and nothing rebuilds the object, so that no object can lose a field here. Invariant:
every field can be absent or null, as in Go's JSON. The structs are trees, and Python's cycle collector does not track
them (gc=False): the objects of a large cluster cost it no time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Raw

from webhook.core.api.affinity import Affinity, NodeAffinity, NodeSelector, PodAffinityTerm, TopologySpreadConstraint
from webhook.core.api.container import (
    Actuated,
    Container,
    ContainerStateWaiting,
    ContainerStatus,
    Quantities,
    Workload,
)
from webhook.core.api.longhorn import near_nodes
from webhook.core.api.meta import (
    LABEL_KEY_MAX_CHARS,
    LABEL_VALUE_MAX_CHARS,
    NAME_MAX_CHARS,
    NAMESPACE_MAX_CHARS,
    UID_MAX_CHARS,
    ApiType,
    Condition,
    ObjectMeta,
    OwnerReference,
    Present,
    condition_of,
    time_or_none,
)

DEFAULT_SCHEDULER: Final = "default-scheduler"  # k8s.io/api/core/v1 DefaultSchedulerName
POD_SCHEDULED: Final = "PodScheduled"
UNSCHEDULABLE: Final = "Unschedulable"
BoundedName: TypeAlias = Annotated[str, Meta(max_length=NAME_MAX_CHARS)]
BoundedUid: TypeAlias = Annotated[str, Meta(max_length=UID_MAX_CHARS)]
_BoundedNamespace: TypeAlias = Annotated[str, Meta(max_length=NAMESPACE_MAX_CHARS)]
_LabelKey: TypeAlias = Annotated[str, Meta(max_length=LABEL_KEY_MAX_CHARS)]
_LabelValue: TypeAlias = Annotated[str, Meta(max_length=LABEL_VALUE_MAX_CHARS)]


class Toleration(ApiType):
    """v1.Toleration; an absent key, effect or operator is the empty string."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class PersistentVolumeClaimVolumeSource(ApiType):
    """v1.PersistentVolumeClaimVolumeSource: the claim in the pod's namespace."""

    claim_name: str | None = None


class Volume(ApiType):
    """v1.Volume: the fields that lead to a claim, and inline volumes that kube-scheduler keeps apart."""

    name: str | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: Present | None = None
    gce_persistent_disk: Present | None = None
    aws_elastic_block_store: Present | None = None
    iscsi: Present | None = None
    rbd: Present | None = None

    @property
    def is_restricted(self) -> bool:
        """Whether two pods with this inline volume may not share a node (VolumeRestrictions, isVolumeConflict)."""
        return bool(self.gce_persistent_disk or self.aws_elastic_block_store or self.iscsi or self.rbd)


class PodSchedulingGate(ApiType):
    """v1.PodSchedulingGate: kube-scheduler ignores a pod that has one."""

    name: str | None = None


class WatchedSpec(Workload):
    """The part of v1.PodSpec that is read of every pod of the cluster."""

    node_name: str | None = None
    scheduler_name: str | None = None
    scheduling_gates: list[PodSchedulingGate] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    volumes: list[Volume] | None = None

    @property
    def node_affinity(self) -> NodeAffinity | None:
        """The pod's own node affinity, None if it has none."""
        return self.affinity.node_affinity if self.affinity else None

    @property
    def required_pod_affinity(self) -> Sequence[PodAffinityTerm]:
        """The pod's own required terms about pods to be near to."""
        terms = self.affinity.pod_affinity if self.affinity else None
        return (terms.required if terms else None) or ()

    @property
    def required_pod_anti_affinity(self) -> Sequence[PodAffinityTerm]:
        """The pod's own required terms about pods to be apart from."""
        terms = self.affinity.pod_anti_affinity if self.affinity else None
        return (terms.required if terms else None) or ()

    @property
    def near_nodes(self) -> Iterator[str]:
        """The nodes that the pod prefers by a pod affinity to Longhorn's instance-manager pods."""
        pod_affinity = self.affinity.pod_affinity if self.affinity else None
        return near_nodes((pod_affinity.preferred or ()) if pod_affinity else ())

    @property
    def required_node_affinity(self) -> NodeSelector | None:
        """The pod's own required node affinity, None if it has none."""
        return self.node_affinity.required if self.node_affinity else None


class PodSpec(WatchedSpec):
    """v1.PodSpec: what decides on which nodes the pod can run, and its volumes."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    host_network: bool | None = None
    host_users: bool | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    scheduling_group: Present | None = None
    resource_claims: list[Present] | None = None


class PodStatus(ApiType):
    """v1.PodStatus: phase, conditions, and what changes which resources the pod takes of its node."""

    phase: str | None = None
    nominated_node_name: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resources: Actuated | None = None
    allocated_resources: Quantities | None = None
    node_allocatable_resource_claim_statuses: list[Present] | None = None

    @property
    def scheduled(self) -> Condition | None:
        """The condition PodScheduled, None before kube-scheduler has written it."""
        return condition_of(self.conditions, POD_SCHEDULED)

    @property
    def scheduled_at(self) -> str | None:
        """When that condition changed last; None if it does not say."""
        return time_or_none(self.scheduled.last_transition_time) if self.scheduled else None

    @property
    def waiting(self) -> str | None:
        """Why the first container that waits does so; None if the kubelet reports none."""
        for status in (*(self.init_container_statuses or ()), *(self.container_statuses or ())):
            waiting: ContainerStateWaiting | None = status.state.waiting if status.state else None
            if waiting and waiting.reason:
                return waiting.reason
        return None


class WatchedPod(ApiType):
    """v1.Pod, as far as it is read of every pod of the cluster."""

    metadata: ObjectMeta
    spec: WatchedSpec
    status: PodStatus | None = None


class Pod(WatchedPod):
    """v1.Pod: the pod under admission, or a share-manager pod."""

    spec: PodSpec


def claims_of(pod: WatchedPod) -> Iterator[str]:
    """Return the names of the claims that the pod has, in the order of its volumes."""
    sources = (volume.persistent_volume_claim for volume in pod.spec.volumes or ())
    return (source.claim_name for source in sources if source and source.claim_name)


def uses(pod: Pod, claim: str) -> bool:
    """Whether the pod has a volume with the claim of this name."""
    return claim in claims_of(pod)


class _Owner(OwnerReference):
    kind: BoundedName | None = None
    name: BoundedName | None = None
    uid: BoundedUid | None = None


class _PodMeta(ObjectMeta):
    name: BoundedName | None = None
    generate_name: BoundedName | None = None
    namespace: _BoundedNamespace | None = None
    labels: dict[_LabelKey, _LabelValue] | None = None
    owner_references: list[_Owner] | None = None  # type: ignore[assignment]  # nobody appends to it


class _Claim(PersistentVolumeClaimVolumeSource):
    claim_name: BoundedName | None = None


class _Volume(Volume):
    name: BoundedName | None = None
    persistent_volume_claim: _Claim | None = None


class _Spec(PodSpec):
    node_name: BoundedName | None = None
    node_selector: dict[_LabelKey, _LabelValue] | None = None
    affinity: Raw = Raw(b"null")  # type: ignore[assignment]  # AdmissionRequest.pod decodes it
    volumes: list[_Volume] | None = None  # type: ignore[assignment]  # the same


class AdmittedPod(Pod):
    """v1.Pod of a request, with a bound for each text that a record or a cache can store.

    An API server asks webhooks before it validates a pod. It never bounds the name of a claim
    (pkg/apis/core/validation/validation.go, validatePersistentClaimVolumeSource). Neither does it bound kind, name and
    uid of an owner (apimachinery pkg/api/validation/objectmeta.go, validateOwnerReference). So pods that exist can have
    longer texts, and no watch decodes pods by this type: a pod that is left out would count on no node. The affinity is
    JSON until `AdmissionRequest.pod` decodes it.
    """

    metadata: _PodMeta
    spec: _Spec
