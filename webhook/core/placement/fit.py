"""Does this pod fit on that node, beside the pods that are there? All that kube-scheduler's default filters refuse for.

First `feasibility`, which needs no other pod; then what others have left: NodeResourcesFit, NodePorts,
NodeVolumeLimits, InterPodAffinity and PodTopologySpread. Invariant: what is called feasible here is refused by none of
them, for the pods and nodes that are known; where that can't be told, it is not called so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from webhook.core.api.pod import Pod
from webhook.core.decision import NodeFit
from webhook.core.placement import feasibility
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.budget import Budget
from webhook.core.scheduler.plugins.dynamic_resources import claimed_devices
from webhook.core.scheduler.plugins.node_resources_fit import Shortage, refusal
from webhook.core.scheduler.pod_filters import PodFilters
from webhook.core.scheduler.state import node_info
from webhook.core.scheduler.state.incoming_pod import ClaimVolume, newcomer
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.scheduler.state.pod_requests import Usage, usage
from webhook.core.scheduler.state.snapshot import Snapshot
from webhook.core.scheduler.status import Passed
from webhook.core.view import ClusterView, NeedObjects


class Applicant(Struct, frozen=True):
    """A pod that nodes are judged for.

    Attributes:
        pod: the pod under admission.
        volumes: its bound claims, which all must be usable on a node.
        usage: what it takes of a node.
        filters: the rules between pods, asked for it. They look at other pods once: for one turn of the event loop.
        budget: what its admission may look at.
    """

    pod: Pod
    volumes: Sequence[ClaimVolume]
    usage: Usage
    filters: PodFilters
    budget: Budget


def applicant(pod: Pod, namespace: str, volumes: Sequence[ClaimVolume] = ()) -> Applicant:
    """The pod that is being created in `namespace`, as it is judged."""
    budget = Budget()
    return Applicant(pod, volumes, usage(pod.spec), PodFilters(newcomer(pod, namespace), budget), budget)


def judge(name: str, who: Applicant, view: ClusterView) -> NodeFit | NeedObjects:
    """The verdict on node `name`, or the references that the view has not read yet.

    A pod that may run on one node alone is the only one that can be stranded. So it must find room there whatever comes
    before it, and what other replicas decide at this moment can't be seen yet:

    ===============================  ================================  ==================================
    room for such a pod              no pod is on its way there        pods are on their way there
    ===============================  ================================  ==================================
    for the share of each replica    it may be pinned                  it may be preferred
    for less, or none                it may be preferred               it may be preferred once all know
                                                                       that they are several
    ===============================  ================================  ==================================

    On its way is a pod that is drawn to the node, and that kube-scheduler has not looked at yet. The share: beside all
    pods that are bound to the node, nominated for it or drawn to it there is room for this one and for what this
    replica has drawn there a moment ago, as many times as there are replicas. Each replica keeps to its share, so that
    together they give away no more than there is. Several VMs on their way are a crowd (`snapshot.SchedulerCache`):
    nobody is
    pinned there until it has gone, and kube-scheduler gives the places to as many preferences as fit. Before all know
    of the crowd a preference beyond the share could take the place of a pin that is not seen yet; so it could while a
    VM that may run on no other node waits for room there.
    """
    verdict = feasibility.judge(name, who.pod, who.volumes, view)
    if isinstance(verdict, NeedObjects) or not verdict.feasible:
        return verdict
    snapshot = view.snapshot()
    if snapshot is None:
        return verdict
    if isinstance(snapshot, str):
        return NodeFit(name, Reason.PODS_UNKNOWN.why(node=name, problem=snapshot))
    there = snapshot.room(name)
    return (
        _full(name, who, there, snapshot)
        or _refused(name, who, there, snapshot)
        or _shared(name, who, there, snapshot)
        or verdict
    )


def settled(judged: Sequence[NodeFit | NeedObjects]) -> list[NodeFit] | NeedObjects:
    """The verdicts, or everything that must be read for those that are missing."""
    unread = tuple(ref for verdict in judged if isinstance(verdict, NeedObjects) for ref in verdict.refs)
    return NeedObjects(unread) if unread else [verdict for verdict in judged if isinstance(verdict, NodeFit)]


def undecidable(pod: Pod, view: ClusterView) -> Why | None:
    """The rule of the pod that no node can be judged by, and that could refuse any; None where there is none."""
    gate = next((gate.name for gate in pod.spec.scheduling_gates or ()), None)
    if gate is not None:
        return Reason.SCHEDULING_GATED.why(gate=gate)
    snapshot = view.snapshot()
    if snapshot is None:
        return feasibility.undecidable(pod)
    return claimed_devices(pod)


def indivisible(who: Applicant, view: ClusterView) -> Why | None:
    """What of the pod no replica has a share of, so that two of them could both pin for it; None where nothing is."""
    snapshot = view.snapshot()
    if snapshot is None or isinstance(snapshot, str) or snapshot.replicas == 1:
        return None
    affinity = who.pod.spec.affinity
    if who.usage.ports:
        what = "host port"
    elif affinity and affinity.pod_anti_affinity and affinity.pod_anti_affinity.required:
        what = "required anti-affinity"
    elif any(each.when_unsatisfiable != "ScheduleAnyway" for each in who.pod.spec.topology_spread_constraints or ()):
        what = "DoNotSchedule topology spread"
    else:
        return None
    return Reason.INDIVISIBLE.why(what=what, replicas=snapshot.replicas)


def _full(name: str, who: Applicant, there: NodeInfo, snapshot: Snapshot) -> NodeFit | None:
    """The verdict where the node has no room beside the pods that are bound or drawn to it."""
    short = refusal(who.usage, there.has, there.load, snapshot.headroom)
    if short is None:
        return None
    reason = Reason.NO_ROOM if isinstance(short, Shortage) else Reason.PORT_TAKEN
    return _scarce(name, reason.why(node=name, **short.names()), there)


def _shared(name: str, who: Applicant, there: NodeInfo, snapshot: Snapshot) -> NodeFit | None:
    """The verdict where the node has room, and what others may be drawing to it forbids a hard pin."""
    short = None
    if snapshot.replicas > 1:
        short = refusal(who.usage, there.has, there.load, _margin(who.usage, there, snapshot))
    if short is not None:
        return _scarce(name, Reason.NO_SHARE.why(node=name, replicas=snapshot.replicas, **short.names()), there)
    if there.on_way:
        return NodeFit(name, Reason.OTHERS_ON_WAY.why(node=name, count=there.on_way))
    return NodeFit(name, Reason.CROWD_BEFORE.why(node=name)) if there.crowded else None


def _margin(asked: Usage, there: NodeInfo, snapshot: Snapshot) -> Mapping[str, int]:
    """How much of each resource must be left beside this pod: the shares of the other replicas, and the headroom.

    Each of them may have drawn as much to the node as this one has with this pod, and no watch shows it yet.
    """
    others, flying = snapshot.replicas - 1, there.in_flight
    margin = {
        **snapshot.headroom,
        node_info.PODS: snapshot.headroom.get(node_info.PODS, 0) + others * (1 + flying.pods),
    }
    for resource, amount in asked.requests:
        margin[resource] = margin.get(resource, 0) + others * (amount + flying.requested.get(resource, 0))
    return margin


def _scarce(name: str, why: Why, there: NodeInfo) -> NodeFit:
    """Where there is less than everybody's share, a preference is for a pod that comes alone."""
    if there.on_way and not there.settled:
        return NodeFit(name, Reason.NODE_CONTESTED.why(node=name, count=there.on_way, because=why), preferable=False)
    if there.pinned:
        return NodeFit(name, Reason.NODE_AWAITED.why(node=name, because=why), preferable=False)
    return NodeFit(name, why)


def _refused(name: str, who: Applicant, there: NodeInfo, snapshot: Snapshot) -> NodeFit | None:
    """The verdict where the node's limits, or rules between pods, would keep the pod away."""
    for bound in who.volumes:
        csi = bound.volume.spec.csi if bound.volume.spec else None
        limit = there.volume_limits.get(csi.driver or "") if csi else None
        if csi and limit is not None:
            why = Reason.VOLUMES_LIMITED.why(node=name, driver=csi.driver, limit=limit, claim=bound.claim)
            return NodeFit(name, why)
    node = snapshot.nodes.get(name)
    if node is None:
        return NodeFit(name, Reason.PODS_UNKNOWN.why(node=name, problem="the node was not listed yet"))
    ruling = who.filters.ruling(node, snapshot)
    if isinstance(ruling, Passed):
        return None
    # A VM that is pinned there, and not bound yet, must not find this one there before it, and be repelled.
    comes_first = there.pinned and ruling.cause is Reason.NEIGHBOUR_EXPECTED
    return NodeFit(name, ruling.why, preferable=not comes_first)
