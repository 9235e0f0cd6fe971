"""What is remembered of a virt-launcher pod: whose it is, where it runs, and which claims it uses.

As webhook.kube.records.pod_status; a share-manager pod is steered to where these are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import intern
from typing import Any, Final

from msgspec import Struct, field

from webhook.core.api.affinity import Affinity, InterPodTerms, NodeAffinity
from webhook.core.api.kubevirt import LABEL_MIGRATION_JOB_UID, VMI_KIND
from webhook.core.api.meta import ObjectMeta, OwnerReference
from webhook.core.api.node_selector import NodeSelector, NodeSelectorTerm, named_nodes, pin
from webhook.core.api.pod import PersistentVolumeClaimVolumeSource, Pod, PodSpec, PodStatus, Volume
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, ANNOTATION_DECISION
from webhook.kube.informer.index import Indexer
from webhook.kube.informer.resource import namespaced_key
from webhook.kube.records.pod_status import build_status, placed_at, refusal
from webhook.kube.records.shared import share

_WORD_CHARS: Final = 16  # required, preferred, unchanged: and no more of what anybody may have written there


class _Annotations(Struct, gc=False):
    """Ours, and the one that a list by watch ends with."""

    co_schedule: str | None = field(name=ANNOTATION_CO_SCHEDULE, default=None)
    decision: str | None = field(name=ANNOTATION_DECISION, default=None)
    initial_events_end: str | None = field(name="k8s.io/initial-events-end", default=None)


class WireMeta(Struct, rename="camel", gc=False):
    """metav1.ObjectMeta of a pod, as far as it is read."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: _Annotations | None = None
    owner_references: list[OwnerReference] | None = None


class WireAffinity(Struct, rename="camel", gc=False):
    """v1.Affinity of a pod, as far as it is read."""

    node_affinity: NodeAffinity | None = None
    pod_anti_affinity: InterPodTerms | None = None


class _WireVolume(Struct, rename="camel", gc=False):
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None


class _WireSpec(Struct, rename="camel", gc=False):
    node_name: str | None = None
    affinity: WireAffinity | None = None
    volumes: list[_WireVolume] | None = None


class WireLauncher(Struct, gc=False):
    """A virt-launcher pod, for whoever lists no other pods."""

    metadata: WireMeta
    spec: _WireSpec = field(default_factory=_WireSpec)
    status: PodStatus | None = None


class _State(Struct, frozen=True, gc=False):
    """What many pods have alike. `named`: the nodes that a pod may run on by their names, while it is on none.

    `decided`: the first word of our annotation. `migrated`: whether the pod is a live migration's target.
    """

    co_schedule: str | None
    decided: str | None
    node: str | None
    named: tuple[str, ...]
    phase: str | None
    migrated: bool


class Launcher(Struct, frozen=True, gc=False):
    """A record. `claims`: the cache keys of the claims that the pod uses. `placed_at`, `refusal`: see records."""

    claims: tuple[str, ...]
    instance: str | None
    uid: str | None
    created: str | None
    deleted: str | None
    placed_at: str | None
    refusal: str | None
    state: _State


def keep(wire: Any) -> Launcher:
    """Record, from a WireLauncher or a webhook.kube.records.pods.WirePod."""
    meta, spec = wire.metadata, wire.spec
    sources = (volume.persistent_volume_claim for volume in spec.volumes or ())
    names = dict.fromkeys(source.claim_name for source in sources if source and source.claim_name)
    node_affinity = spec.affinity.node_affinity if spec.affinity else None
    named = named_nodes(node_affinity.required) if node_affinity and not spec.node_name else ()
    owner = next((each for each in meta.owner_references or () if each.kind == VMI_KIND), OwnerReference())
    asked = meta.annotations.co_schedule if meta.annotations else None
    told = meta.annotations.decision if meta.annotations else None
    decided = told.partition(" ")[0][:_WORD_CHARS] if told else None
    migrated = LABEL_MIGRATION_JOB_UID in (meta.labels or ())
    phase = wire.status.phase if wire.status else None
    return Launcher(
        tuple(intern(namespaced_key(meta.namespace, name)) for name in names),
        owner.name,
        owner.uid,
        meta.creation_timestamp,
        meta.deletion_timestamp,
        placed_at(wire.status),
        refusal(wire.status),
        share(_State(asked, decided, spec.node_name, tuple(sorted(named)), phase, migrated)),
    )


def build(key: str, launcher: Launcher) -> Pod:
    """Object."""
    namespace, _, name = key.partition("/")
    state, instance = launcher.state, launcher.instance
    return Pod(
        metadata=ObjectMeta(
            namespace=namespace,
            name=name,
            labels={LABEL_MIGRATION_JOB_UID: ""} if state.migrated else None,
            annotations=_annotations(state),
            owner_references=None if instance is None else [_owner(instance, launcher.uid)],
            creation_timestamp=launcher.created,
            deletion_timestamp=launcher.deleted,
        ),
        spec=PodSpec(
            node_name=state.node,
            affinity=_pinned(state.named) if state.named else None,
            volumes=[_volume(claim) for claim in launcher.claims],
        ),
        status=build_status(state.phase, launcher.placed_at, launcher.refusal),
    )


def _annotations(state: _State) -> dict[str, str]:
    told = {ANNOTATION_CO_SCHEDULE: state.co_schedule, ANNOTATION_DECISION: state.decided}
    return {key: value for key, value in told.items() if value is not None}


def _owner(instance: str, uid: str | None) -> OwnerReference:
    return OwnerReference(kind=VMI_KIND, name=instance, uid=uid)


def _pinned(nodes: Sequence[str]) -> Affinity:
    terms = [NodeSelectorTerm(match_fields=[pin(node)]) for node in nodes]
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=terms)))


def _volume(claim: str) -> Volume:
    source = PersistentVolumeClaimVolumeSource(claim_name=claim.partition("/")[2])
    return Volume(persistent_volume_claim=source)


class ByClaim(Indexer):
    """Pods by the claims that they use."""

    def _about(self, key: str, record: Any) -> Iterable[str]:  # noqa: ARG002 - of the protocol
        claims: tuple[str, ...] = record.claims
        return claims
