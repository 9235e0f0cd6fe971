"""Whether one node is clear for the pod under admission: the story of one node, rule by rule.

The node is asked first, so that its own reason is given. Rules that forbid even a preference come first, then those
that need only the node and the pod, then those that need the other pods.
Invariant: kube-scheduler's filters accept a node that is feasible here, for a plain pod
(webhook.core.scheduler.cycle_state) and for the pods and nodes that are known.
"""

from __future__ import annotations

from webhook.core import refs
from webhook.core.api.longhorn import is_share_manager
from webhook.core.api.node import Node
from webhook.core.decision import NodeFit
from webhook.core.placement import longhorn_node, replica_share
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler import node_rules
from webhook.core.scheduler.cache import UNLISTED, NodeInfo, SnapshotUnavailable
from webhook.core.scheduler.cycle_state import CycleState, why_excluded
from webhook.core.view import ClusterView, NoObject, Ref


def evaluate(name: str, cycle: CycleState, view: ClusterView) -> NodeFit:
    """Return the verdict on the node `name`.

    The webhook does not even prefer a node on which a volume of the VM can't be attached or mounted. The same holds for
    a node whose free resources pods need that are on the way to it. If the Longhorn node could not be read, the webhook
    prefers the node.
    """
    spec, snapshot, node = cycle.pod.spec, cycle.snapshot, view.get(refs.node(name))
    tolerations = spec.tolerations or ()
    longhorn = view.get(refs.longhorn_node(name)) if view.has_longhorn_nodes() else None
    beside_pods, replicas = None, 1
    if not isinstance(snapshot, SnapshotUnavailable):
        beside_pods, replicas = snapshot.node_info(name), snapshot.replicas
    drivers = beside_pods.csi_drivers if beside_pods else None
    info = None if isinstance(node, NoObject) else NodeInfo(node, csi_drivers=drivers)
    unusable = node_rules.why_unusable(cycle.volumes, info) if info else None
    lacks = longhorn_node.lacks_of(name, longhorn, cycle, view)
    bad = (
        longhorn_node.why_not_ready(name, longhorn)
        or (longhorn_node.why_no_data_engine(name, info.node, cycle) if info else None)
        or longhorn_node.why_no_driver(name, drivers, cycle)
        or longhorn_node.why_lacking(name, lacks, view)
        or (unusable if unusable and unusable.reason.columns.excludes else None)
    )
    if bad:
        return NodeFit(name, bad, preferable=False)
    if info is None:
        absent = node is not NoObject.UNAVAILABLE
        return NodeFit(name, Reason.NODE_NOT_FOUND.why(node=name) if absent else _unread(refs.node(name), view))
    why = (
        why_unhealthy(info.node)
        or node_rules.why_repelled(tolerations, info.node)
        or node_rules.why_labels_mismatch(spec, info)
        or unusable
        or (_unread(refs.longhorn_node(name), view) if longhorn is NoObject.UNAVAILABLE else None)
        or node_rules.why_terms_mismatch(spec, info)
    )
    known = None if beside_pods is None or beside_pods.node is UNLISTED else beside_pods
    scarce = replica_share.why_scarce(cycle.usage, known, replicas) if known else None
    contested = replica_share.why_contested(cycle, known, scarce) if known else None
    if contested:
        return NodeFit(name, why or contested, preferable=False)
    why = why or scarce or _why_not_beside_pods(name, cycle, known)
    fit = NodeFit(name, why or Reason.NODE_FEASIBLE.why(node=name))
    if not fit.fits or is_share_manager(cycle.pod.metadata):
        return fit  # nothing is required for a share-manager pod, whatever is doubtful
    doubt = longhorn_node.why_doubtful(name, lacks) or node_rules.why_perhaps_drained(tolerations, info.node)
    return NodeFit(name, doubt) if doubt else fit


def _unread(ref: Ref, view: ClusterView) -> Why:
    return Reason.NODE_LOOKUP_FAILED.why(node=ref.name, kind=ref.kind, problem=view.read_error(ref))


def why_unhealthy(node: Node) -> Why | None:
    """Return why the node runs no new pods: it is deleted, not Ready, or cordoned.

    kube-scheduler might accept it: a pod can tolerate the taint node.kubernetes.io/unschedulable.
    """
    name = node.metadata.name
    if node.metadata.deletion_timestamp:
        return Reason.NODE_BEING_DELETED.why(node=name)
    if not (node.status and node.status.ready):
        return Reason.NODE_NOT_READY.why(node=name)
    return Reason.NODE_CORDONED.why(node=name) if node.spec and node.spec.unschedulable else None


def _why_not_beside_pods(name: str, cycle: CycleState, node: NodeInfo | None) -> Why | None:
    """Return what the pods of a node that has room have against the pod; or that they are not known (`node` None)."""
    snapshot = cycle.snapshot
    if isinstance(snapshot, SnapshotUnavailable):
        return Reason.FREE_RESOURCES_UNKNOWN.why(node=name, problem=snapshot.problem)
    if node is None:
        return Reason.FREE_RESOURCES_UNKNOWN.why(node=name, problem="the node was not listed yet")
    if isinstance(cycle.excluding, Why):
        return cycle.excluding
    excluded = why_excluded(cycle.excluding, node)
    return excluded or replica_share.why_not_alone(node)
