"""CycleState: one pod under admission, what is known of its cluster, and where pods on nodes can exclude it. And the
rules of a pod with which no node is ever required.

Upstream: CycleState in pkg/scheduler/framework/cycle_state.go. The incoming pod's rules are read once, and then node by
node is filtered.

kube-scheduler's InterPodAffinity plugin (pkg/scheduler/framework/plugins/interpodaffinity/filtering.go): only the
required anti-affinity of pods on nodes is compared with the incoming pod (satisfyExistingPodsAntiAffinity). A term
rejects the nodes that have the value of its pod's node. A pod that is not bound yet can be bound first. A pod with
required terms of its own is never required on a node (`why_never_required`).
Invariant: the plugin does not reject a node that passes here, for a pod without such terms and these pods and nodes.

A pod is plain if only its node selector, its node affinity, its tolerations and the amounts that it requests decide
where it can run. For any other rule of kube-scheduler the answer depends on more than one node and its pods, or on what
the webhook does not read. The node is then preferred at most. Upstream: a folder of pkg/scheduler/framework/plugins for
each plugin that is named here.
Invariant: no plugin rejects a node, or keeps the pod waiting, by a field of the pod that is neither here nor evaluated
by webhook.core.placement.feasibility.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from webhook.core.api.container import Container
from webhook.core.api.longhorn import LONGHORN_CSI_DRIVER
from webhook.core.api.pod import Pod, PodSpec
from webhook.core.pod_limits import PART_BYTES_MAX
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cache import UNLISTED, AnySnapshot, NodeInfo, Snapshot, SnapshotUnavailable
from webhook.core.scheduler.label_selector import Term
from webhook.core.scheduler.node_rules import ClaimVolume
from webhook.core.scheduler.pod_requests import usage

TERMS_MAX: Final = 1_000  # 0.4 us for each comparison: a tenth of the 5 ms that an admission may take
NODES_MAX: Final = 10_000  # twice the nodes of the largest clusters; 0.2 us for the value of each


class Excluding(NamedTuple):
    """A term of other pods that can be meant for the incoming pod.

    `values`: those that its topology key has on the nodes of these pods; None for a node that is not known.
    """

    term: Term
    values: frozenset[str | None]


def excluding(namespace: str, labels: Mapping[str, str], snapshot: Snapshot) -> Sequence[Excluding] | Why:
    """Return the terms that can be meant for a pod with these labels; or that they are too many."""
    found, places = [], 0
    near = snapshot.scheduler_cache.existing_terms.near(namespace, labels)
    for compared, (term, nodes) in enumerate(near, start=1):
        if term.matches(namespace, labels):
            places += len(nodes)
            if places <= NODES_MAX:
                found.append(Excluding(term, frozenset(_values(term.topology_key, nodes, snapshot))))
        if compared > TERMS_MAX or places > NODES_MAX:
            return Reason.TOO_MANY_EXISTING_TERMS.why(terms=TERMS_MAX, nodes=NODES_MAX)
    return found


def _values(key: str, nodes: Iterable[str], snapshot: Snapshot) -> Iterable[str | None]:
    """Yield the values of a label. A node without it is in no topology; a node that is not known may be in any."""
    for name in nodes:
        node = snapshot.node(name)
        if node is UNLISTED:
            yield None
        elif key in (node.metadata.labels or {}):
            yield node.metadata.label(key)


def why_excluded(terms: Iterable[Excluding], node: NodeInfo) -> Why | None:
    """Return which of the terms can reject the node; None if none can."""
    for term, values in terms:
        key, value = term.topology_key, node.labels.get(term.topology_key)
        if term.unread and (value is None or value in values):  # its requests are perhaps not known, either
            return Reason.POD_NOT_COMPARED.why(which=f"node {node.name}" if key else "some node", most=PART_BYTES_MAX)
        if value is None:
            continue
        if value in values:
            return Reason.EXCLUDED_BY_POD.why(node=node.name, key=key, pods=term)
        if None in values:
            return Reason.MAY_BE_EXCLUDED_BY_POD.why(node=node.name, key=key, pods=term)
    return None


class CycleState:
    """One pod under admission, and the snapshot of its cluster.

    Attributes:
        pod: the incoming pod, which has no node yet.
        namespace: the request's, because that of the object can be empty at CREATE.
        snapshot: the nodes and pods; or why there is no snapshot.
        volumes: the bound claims. All of them must be usable on the pod's node.
        usage: what the pod takes of a node.
    """

    def __init__(self, pod: Pod, namespace: str, snapshot: AnySnapshot, volumes: Sequence[ClaimVolume] = ()) -> None:
        self.pod = pod
        self.namespace = namespace
        self.snapshot = snapshot
        self.volumes = volumes
        self.usage = usage(pod.spec)

    @cached_property
    def excluding(self) -> Sequence[Excluding] | Why:
        """Where required anti-affinity of pods on nodes can exclude the pod; or why that is not compared."""
        if isinstance(self.snapshot, SnapshotUnavailable):
            return ()
        return excluding(self.namespace, self.pod.metadata.labels or {}, self.snapshot)


TOPOLOGY_LABELS: Final = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
"""The labels of a PersistentVolume that VolumeZone compares with those of a node."""
_LISTED: Final = ("NodeVolumeLimits",)
"""Nodes that pass feasibility can make a short list. Of the rules of other plugins it is not known which nodes pass."""


def why_never_required(cycle: CycleState, but: Collection[str] = ()) -> Why | None:
    """Return the first rule that the pod has, `but` those of some plugins; None for a plain pod."""
    for plugin, what in _rules(cycle):
        if plugin not in but:
            return Reason.RULE_NOT_EVALUATED.why(what=what, plugin=plugin)
    return None


def why_never_listed(cycle: CycleState) -> Why | None:
    """Return the first of the rules with which the pod can't have a short list either; None if it has none of them."""
    return why_never_required(cycle, but=_LISTED)


def _rules(cycle: CycleState) -> Iterator[tuple[str, str]]:
    """Yield plugin and field, in words, of each rule that the pod has."""
    pod = cycle.pod.spec
    yield from _of_pod(pod)
    for container in (*(pod.containers or ()), *(pod.init_containers or ())):
        yield from _of_container(container)
    for bound in cycle.volumes:
        yield from _of_volume(bound)


def _of_pod(pod: PodSpec) -> Iterator[tuple[str, str]]:
    for gate in pod.scheduling_gates or ():
        yield "SchedulingGates", f"scheduling gate {gate.name}"
    if pod.scheduling_group:
        yield "GangScheduling", "a scheduling group (spec.schedulingGroup)"
    for term in pod.required_pod_affinity:
        yield "InterPodAffinity", f"required pod affinity over {term.topology_key}"
    for term in pod.required_pod_anti_affinity:
        yield "InterPodAffinity", f"required pod anti-affinity over {term.topology_key}"
    for constraint in pod.topology_spread_constraints or ():
        # A required node or a short list changes what it means: it counts the nodes that the pod may use.
        if constraint.when_unsatisfiable != "ScheduleAnyway":
            yield "PodTopologySpread", f"a DoNotSchedule topology spread over {constraint.topology_key}"
    if pod.resource_claims:
        yield "DynamicResources", "claims of devices (spec.resourceClaims)"
    if pod.host_network and pod.host_users is False:
        yield "NodeDeclaredFeatures", "hostUsers: false beside hostNetwork"
    for volume in pod.volumes or ():
        if volume.is_restricted:
            yield "VolumeRestrictions", f"inline volume {volume.name}"
    required = pod.required_node_affinity
    if required and any(term.match_fields for term in required.node_selector_terms or ()):
        # The webhook could not tell such a term from its own.
        yield "NodeAffinity", "a required node affinity term with matchFields"


def _of_container(container: Container) -> Iterator[tuple[str, str]]:
    """NodeDeclaredFeatures: what needs a feature of the node, as of 1.37 (nodedeclaredfeatures/features)."""
    for port in container.ports or ():
        if port.host_port:
            yield "NodePorts", f"host port {port.host_port}"
    if container.restart_policy_rules:
        yield "NodeDeclaredFeatures", "restartPolicyRules"
    for mount in container.volume_mounts or ():
        if mount.bind_mount_options:
            yield "NodeDeclaredFeatures", "bindMountOptions"


def _of_volume(bound: ClaimVolume) -> Iterator[tuple[str, str]]:
    """VolumeBinding takes an in-tree volume for that of a CSI driver (volumebinding/binder.go, tryTranslatePVToCSI).

    The pod waits while one of its claims is being deleted (volumebinding/volume_binding.go, podHasPVCs). Once there is
    a new claim of this name, its volume can be anywhere.
    NodeVolumeLimits: how many volumes of other drivers are attached to a node is not known.
    """
    spec = bound.volume.spec
    if bound.being_deleted:
        yield "VolumeBinding", f"claim {bound.claim}, which is being deleted"
    if bound.of_one_pod:
        yield "VolumeRestrictions", f"claim {bound.claim}, which is ReadWriteOncePod"
    in_tree = spec.in_tree() if spec and not spec.csi else None  # a PersistentVolume has one source
    if in_tree:
        yield "VolumeBinding", f"claim {bound.claim}, whose PersistentVolume is of the in-tree kind {in_tree}"
    if spec and spec.csi and spec.csi.driver != LONGHORN_CSI_DRIVER:
        yield "NodeVolumeLimits", f"claim {bound.claim}, whose volume is of CSI driver {spec.csi.driver or '(none)'}"
    for label in bound.volume.metadata.labels or ():
        if label in TOPOLOGY_LABELS:
            yield "VolumeZone", f"claim {bound.claim}, whose PersistentVolume has the label {label}"
