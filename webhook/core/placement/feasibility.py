"""May this pod run on that node at all? The scheduler's filters that need nothing but pod, node and volumes.

Each verdict is a Why: NODE_FEASIBLE, or the first rule that refuses, cheapest first. Resources are not counted here.
Invariant: a node we call feasible is refused by none of the scheduler's NodeName, NodeUnschedulable,
TaintToleration, NodeAffinity, VolumeBinding and VolumeZone filters (for bound volumes).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from webhook.core.api.affinity import InterPodTerms
from webhook.core.api.longhorn import LonghornNode
from webhook.core.api.meta import NamespacedName
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.decision import NodeFit
from webhook.core.placement import data_engine
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.plugins.dynamic_resources import claimed_devices
from webhook.core.scheduler.plugins.node_affinity import selector_admits
from webhook.core.scheduler.plugins.taint_toleration import _REPELLING_EFFECTS, _taint_text, tolerates
from webhook.core.scheduler.plugins.volume_zone import _is_elsewhere
from webhook.core.scheduler.state.incoming_pod import ClaimVolume
from webhook.core.view import ClusterView, Kind, NeedObjects, NoObject, ObjectRef, need_objects

DRAIN_TAINTS: Final = frozenset(
    {
        "node.kubernetes.io/out-of-service",  # its pods and volumes are taken away
        "node.cloudprovider.kubernetes.io/shutdown",
        "kubevirt.io/drain",  # KubeVirt's own: VMs migrate away (configuration.migrations.nodeDrainTaintKey)
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
    }
)
"""Taints of nodes that are about to be lost. Whoever tolerates them may be bound there, and would soon have to go."""


def judge(name: str, pod: Pod, volumes: Iterable[ClaimVolume], view: ClusterView) -> NodeFit | NeedObjects:
    """The verdict on node `name`, or the references that the view has not read yet.

    Longhorn refuses to attach a volume where its own node object is absent or not Ready (longhorn-manager: "node is
    not ready, couldn't attach volume"): such a node is not even preferred. Where that could not be read, it is. Nor is
    a node without the data engine of a volume that the pod needs attached there.
    """
    node = view.node(name)
    longhorn_node = view.longhorn_node(name) if view.has_longhorn_nodes() else None
    if node is NoObject.NOT_CACHED or longhorn_node is NoObject.NOT_CACHED:
        key = NamespacedName("", name)
        return need_objects((ObjectRef(Kind.NODE, key), node), (ObjectRef(Kind.LONGHORN_NODE, key), longhorn_node))
    longhorn_refuses = _longhorn_refusal(name, longhorn_node, view)
    if longhorn_refuses and longhorn_refuses.reason is Reason.LONGHORN_NOT_READY:
        return NodeFit(name, longhorn_refuses, preferable=False)
    attached = ((bound.volume, bound.served_from) for bound in volumes)
    if not isinstance(node, NoObject) and (lacks := data_engine.refusal(node, name, pod, attached)):
        return NodeFit(name, lacks, preferable=False)
    why = _absence(node, name, view) if isinstance(node, NoObject) else _refusal(node, name, pod, volumes)
    why = why or longhorn_refuses or _own_affinity_refusal(node, name, pod)
    return NodeFit(name, why or Reason.NODE_FEASIBLE.why(node=name))


def _longhorn_refusal(name: str, node: LonghornNode | NoObject | None, view: ClusterView) -> Why | None:
    if node is NoObject.UNAVAILABLE:
        return _lost(name, Kind.LONGHORN_NODE, view)
    if isinstance(node, NoObject):
        return Reason.LONGHORN_NOT_READY.why(node=name, state="is absent")
    if node is not None and not (node.status and node.status.ready):
        return Reason.LONGHORN_NOT_READY.why(node=name, state="is not Ready")
    return None


def _lost(name: str, kind: Kind, view: ClusterView) -> Why:
    return Reason.NODE_LOOKUP_FAILED.why(
        node=name, kind=kind, problem=view.read_error(ObjectRef(kind, NamespacedName("", name)))
    )


def _absence(gap: NoObject, name: str, view: ClusterView) -> Why:
    return _lost(name, Kind.NODE, view) if gap is NoObject.UNAVAILABLE else Reason.NODE_NOT_FOUND.why(node=name)


def _refusal(node: Node, name: str, pod: Pod, volumes: Iterable[ClaimVolume]) -> Why | None:
    """Why the scheduler would refuse this node, its own affinity apart; None where it would not."""
    if node.metadata.deletion_timestamp:
        return Reason.NODE_BEING_DELETED.why(node=name)
    if not (node.status and node.status.ready):
        return Reason.NODE_NOT_READY.why(node=name)
    if node.spec and node.spec.unschedulable:
        return Reason.NODE_CORDONED.why(node=name)
    leaving = next(
        (taint for taint in (node.spec.taints or () if node.spec else ()) if taint.key in DRAIN_TAINTS), None
    )
    if leaving:
        return Reason.NODE_LEAVING.why(node=name, taint=_taint_text(leaving))
    for taint in (node.spec.taints or ()) if node.spec else ():
        if taint.effect in _REPELLING_EFFECTS and not tolerates(pod.spec.tolerations or (), taint):
            return Reason.TAINT_NOT_TOLERATED.why(node=name, taint=_taint_text(taint))
    labels = node.metadata.labels or {}
    for key, value in (pod.spec.node_selector or {}).items():
        if labels.get(key) != value:
            return Reason.NODE_SELECTOR_MISMATCH.why(node=name, label=f"{key}={value}")
    for bound in volumes:
        affinity = bound.volume.spec.node_affinity if bound.volume.spec else None
        volume = bound.volume.metadata.name
        if affinity and not selector_admits(affinity.required, labels, None):
            return Reason.VOLUME_AFFINITY_MISMATCH.why(node=name, volume=volume, claim=bound.claim)
        if bound.volume.metadata.labels and _is_elsewhere(bound.volume.metadata.labels, labels):
            return Reason.VOLUME_ZONE_MISMATCH.why(node=name, volume=volume, claim=bound.claim)
    return None


def _own_affinity_refusal(node: Node | NoObject, name: str, pod: Pod) -> Why | None:
    """Asked last: what is wrong with the node tells more than that its owner excludes it."""
    labels = None if isinstance(node, NoObject) else node.metadata.labels
    if selector_admits(pod.spec.required_node_affinity, labels, name):
        return None
    return Reason.NODE_AFFINITY_MISMATCH.why(node=name)


def undecidable(pod: Pod) -> Why | None:
    """The rule of the pod that is not evaluated here and could refuse any one node; None where there is none."""
    affinity = pod.spec.affinity
    if affinity and _requires(affinity.pod_affinity):
        return Reason.INTER_POD_AFFINITY.why(which="affinity")
    if affinity and _requires(affinity.pod_anti_affinity):
        return Reason.INTER_POD_AFFINITY.why(which="anti-affinity")
    for constraint in pod.spec.topology_spread_constraints or ():
        if constraint.when_unsatisfiable != "ScheduleAnyway":
            return Reason.TOPOLOGY_SPREAD.why(key=constraint.topology_key)
    return claimed_devices(pod)


def _requires(terms: InterPodTerms | None) -> bool:
    return bool(terms and terms.required)
