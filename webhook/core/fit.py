"""Does this pod fit on that node, beside the pods that are there? All that kube-scheduler's default filters refuse for.

First `feasibility`, which needs no other pod; then what others have left: NodeResourcesFit, NodePorts,
NodeVolumeLimits, InterPodAffinity and PodTopologySpread. Invariant: what is called feasible here is refused by none of
them, for the pods and nodes that are known; where that can't be told, it is not called so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from webhook.core import feasibility, room
from webhook.core.affinity import only_node
from webhook.core.budget import Budget
from webhook.core.crowd import Crowd, Room
from webhook.core.feasibility import ClaimVolume, Verdict
from webhook.core.newcomer import Newcomer
from webhook.core.objects import Pod
from webhook.core.pod_filters import PodFilters
from webhook.core.reasons import Reason, Why
from webhook.core.requests import Usage, usage
from webhook.core.rulings import Allowed
from webhook.core.view import ClusterView, Needs


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


def newcomer(pod: Pod, namespace: str) -> Newcomer:
    """The pod as rules between pods see it."""
    spec, affinity = pod.spec, pod.spec.affinity
    to, away = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else (None, None)
    return Newcomer(
        namespace=namespace,
        labels=pod.metadata.labels or {},
        affinity=(to.required if to else None) or (),
        anti_affinity=(away.required if away else None) or (),
        spread=spec.topology_spread_constraints or (),
        node_selector=spec.node_selector or {},
        node_affinity=spec.required_node_affinity,
        tolerations=spec.tolerations or (),
    )


def judge(name: str, who: Applicant, view: ClusterView) -> Verdict | Needs:
    """The verdict on node `name`, or the references that the view has not read yet.

    Who else is there is not asked for a pod that may run on no other node, for it has nothing to lose: above all one
    that we have pinned a moment ago, and that a webhook after us has changed. Its place is counted as taken: by itself.
    """
    verdict = feasibility.judge(name, who.pod, who.volumes, view)
    if isinstance(verdict, Needs) or not verdict.feasible or only_node(who.pod.spec.required_node_affinity) == name:
        return verdict
    crowd = view.crowd()
    if crowd is None:
        return verdict
    if isinstance(crowd, str):
        return Verdict(name, Reason.PODS_UNKNOWN.why(node=name, problem=crowd))
    there = crowd.room(name)
    return _full(name, who, there, crowd.headroom) or _refused(name, who, there, crowd) or verdict


def settled(judged: Sequence[Verdict | Needs]) -> list[Verdict] | Needs:
    """The verdicts, or everything that must be read for those that are missing."""
    unread = tuple(ref for verdict in judged if isinstance(verdict, Needs) for ref in verdict.refs)
    return Needs(unread) if unread else [verdict for verdict in judged if isinstance(verdict, Verdict)]


def undecidable(pod: Pod, view: ClusterView) -> Why | None:
    """The rule of the pod that no node can be judged by, and that could refuse any; None where there is none."""
    if view.crowd() is None:
        return feasibility.undecidable(pod)
    return feasibility.claimed_devices(pod)


def _full(name: str, who: Applicant, there: Room, headroom: Mapping[str, int]) -> Verdict | None:
    """The verdict where the node has no room, or may have none.

    Where some of it was promised to pods that are still to be bound, not even a preference: the scheduler takes pods of
    a higher priority first, and one of those would get the place of one that can go nowhere else.
    """
    short = room.refusal(who.usage, there.has, there.load, headroom)
    if short is None and there.contested:
        short = room.refusal(who.usage, there.has, there.load, _kept(headroom, there.contested))
    if short is None:
        return None
    reason = Reason.NO_ROOM if isinstance(short, room.Shortage) else Reason.PORT_TAKEN
    return Verdict(name, reason.why(node=name, **short.names()), preferable=not there.expected)


def _kept(headroom: Mapping[str, int], contested: Mapping[str, int]) -> Mapping[str, int]:
    """What is to stay free of each resource, in all."""
    return {name: headroom.get(name, 0) + contested.get(name, 0) for name in {**headroom, **contested}}


def _refused(name: str, who: Applicant, there: Room, crowd: Crowd) -> Verdict | None:
    """The verdict where the node's limits, or rules between pods, would keep the pod away."""
    for bound in who.volumes:
        csi = bound.volume.spec.csi if bound.volume.spec else None
        limit = there.volume_limits.get(csi.driver or "") if csi else None
        if csi and limit is not None:
            why = Reason.VOLUMES_LIMITED.why(node=name, driver=csi.driver, limit=limit, claim=bound.claim)
            return Verdict(name, why)
    node = crowd.nodes.get(name)
    if node is None:
        return Verdict(name, Reason.PODS_UNKNOWN.why(node=name, problem="the node was not listed yet"))
    ruling = who.filters.ruling(node, crowd)
    return None if isinstance(ruling, Allowed) else Verdict(name, ruling.why)
