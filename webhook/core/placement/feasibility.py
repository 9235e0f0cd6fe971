"""Whether one node is feasible for the pod under admission: the story of one node, rule by rule.

The first rule that rejects the node gives the reason. Rules that forbid even a preference come first, then those that
need only the node and the pod, then those that need the other pods. The plugins are webhook.core.scheduler.registry's.
Invariant: kube-scheduler's filters accept a node that is feasible here, for the pods and nodes that are known.
"""

from __future__ import annotations

from webhook.core import refs
from webhook.core.api.node import Node
from webhook.core.decision import NodeFit
from webhook.core.placement import longhorn_node, replica_share
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler import registry
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.plugins import taint_toleration
from webhook.core.scheduler.registry import Filter, PodFilter, VolumeFilter
from webhook.core.scheduler.state.node_info import UNLISTED, NodeInfo
from webhook.core.scheduler.state.snapshot import SnapshotUnavailable
from webhook.core.view import ClusterView, NoObject, Ref


def evaluate(name: str, cycle: CycleState, view: ClusterView) -> NodeFit:
    """Return the verdict on the node `name`.

    The webhook does not even prefer a node on which a volume of the VM can't be attached or mounted. If the Longhorn
    node could not be read, the webhook prefers the node.
    """
    node, snapshot = view.get(refs.node(name)), cycle.snapshot
    longhorn = view.get(refs.longhorn_node(name)) if view.has_longhorn_nodes() else None
    beside_pods = None if isinstance(snapshot, SnapshotUnavailable) else snapshot.node_info(name)
    info = None if isinstance(node, NoObject) else NodeInfo(node)
    volume = _filter_volumes(registry.FILTER_VOLUME, cycle, info) if info else None
    lacks = longhorn_node.lacks_of(name, longhorn, cycle, view)
    why = (
        longhorn_node.why_not_ready(name, longhorn)
        or (None if isinstance(node, NoObject) else longhorn_node.why_no_data_engine(name, node, cycle))
        or longhorn_node.why_no_driver(name, beside_pods.csi_drivers if beside_pods else None, cycle)
        or longhorn_node.why_lacking(name, lacks, view)
        or (volume if volume and volume.reason.columns.excludes else None)
    )
    if why:
        return NodeFit(name, why, preferable=False)
    if info is None or isinstance(node, NoObject):
        absent = node is not NoObject.UNAVAILABLE
        return NodeFit(name, Reason.NODE_NOT_FOUND.why(node=name) if absent else _unread(refs.node(name), view))
    why = (
        why_unhealthy(node)
        or _filter(registry.FILTER_NODE, cycle, info)
        or volume
        or (_unread(refs.longhorn_node(name), view) if longhorn is NoObject.UNAVAILABLE else None)
        or _filter(registry.FILTER_BY_AFFINITY, cycle, info)
    )
    node_fit = NodeFit(name, why) if why else _evaluate_beside_pods(name, cycle, beside_pods)
    if not node_fit.fits or longhorn_node.is_share_manager(cycle.pod):
        return node_fit  # nothing is required for a share-manager pod, whatever is doubtful
    doubt = longhorn_node.why_doubtful(name, lacks) or taint_toleration.why_perhaps_drained(cycle, info)
    return NodeFit(name, doubt) if doubt else node_fit


def _unread(ref: Ref, view: ClusterView) -> Why:
    return Reason.NODE_LOOKUP_FAILED.why(node=ref.name, kind=ref.kind, problem=view.read_error(ref))


def why_unhealthy(node: Node) -> Why | None:
    """Return why the node runs no new pods, although kube-scheduler might accept it: it is deleted, or not Ready."""
    if node.metadata.deletion_timestamp:
        return Reason.NODE_BEING_DELETED.why(node=node.metadata.name)
    return None if node.status and node.status.ready else Reason.NODE_NOT_READY.why(node=node.metadata.name)


def _filter(filters: tuple[Filter, ...], cycle: CycleState, node: NodeInfo) -> Why | None:
    """Return the reason of the first filter that does not pass the node; None if all pass the node."""
    for filter_node in filters:
        why = filter_node(cycle, node)
        if why:
            return why
    return None


def _filter_volumes(filters: tuple[VolumeFilter, ...], cycle: CycleState, node: NodeInfo) -> Why | None:
    """Return the first reason of a volume that can't be used on the node; without one, why that is not known."""
    whys = [why for volume in cycle.volumes for each in filters if (why := each(volume, node))]
    return next((why for why in whys if why.reason.columns.excludes), whys[0] if whys else None)


def _evaluate_beside_pods(name: str, cycle: CycleState, node: NodeInfo | None) -> NodeFit:
    """Return the verdict on a node that nothing about the node itself rejects."""
    snapshot = cycle.snapshot
    if isinstance(snapshot, SnapshotUnavailable):
        return NodeFit(name, Reason.FREE_RESOURCES_UNKNOWN.why(node=name, problem=snapshot.problem))
    if node is None or node.node is UNLISTED:
        return NodeFit(name, Reason.FREE_RESOURCES_UNKNOWN.why(node=name, problem="the node was not listed yet"))
    why = _filter(registry.FILTER_BY_REQUESTS, cycle, node)
    if why:
        return replica_share.verdict_if_scarce(name, why, node)
    why = _filter_volumes(registry.FILTER_VOLUME_LIMITS, cycle, node)
    if why:
        return NodeFit(name, why)
    why = _filter(registry.FILTER_BETWEEN_PODS, cycle, node)
    if why:
        # A VM waits for this node alone. If this pod were there first, its anti-affinity would reject that VM.
        preferable = not (node.waited_for and why.reason is Reason.DEPENDS_ON_UNSCHEDULED_POD)
        return NodeFit(name, why, preferable=preferable)
    verdict = replica_share.verdict_if_shared(name, cycle.usage, node, snapshot)
    return verdict or NodeFit(name, Reason.NODE_FEASIBLE.why(node=name))


def why_undecidable(cycle: CycleState) -> Why | None:
    """Return why no node may be required for this pod: a scheduling gate, or a plugin that can't be evaluated."""
    return _first(registry.PRE_ENQUEUE, cycle) or why_not_evaluated(cycle)


def why_not_evaluated(cycle: CycleState) -> Why | None:
    """Return the rule of the pod that could reject any node, and that no plugin here can evaluate; None if none is."""
    return _first(registry.PRE_FILTER, cycle)


def _first(filters: tuple[PodFilter, ...], cycle: CycleState) -> Why | None:
    return next(filter(None, (plugin(cycle) for plugin in filters)), None)
