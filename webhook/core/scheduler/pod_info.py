"""PodInfo: a pod as it counts on one node: that to which it is bound, or probably will be.

A pod that is not bound yet counts on a node if kube-scheduler has nominated it for the node, or if the webhook has
written the node into its affinity. So a replica of the webhook sees what another replica has written. Nobody else's pod
counts before it is bound: anybody may create pods, with any labels and any affinity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.core.api.affinity import (
    MAX_TERMS,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    named_nodes,
    pinned_nodes,
)
from webhook.core.api.kubevirt import HOSTNAME
from webhook.core.api.longhorn import INSTANCE_MANAGER, LABEL_LONGHORN_COMPONENT
from webhook.core.api.pod import PodStatus, WatchedSpec
from webhook.core.scheduler.label_selector import Selector, Term, parse_terms
from webhook.core.scheduler.pod_requests import Usage, is_over


class PodNode(Struct, frozen=True, kw_only=True, weakref=True):
    """One node on which a pod counts.

    Attributes:
        node: its name.
        bound: the pod is bound to the node.
        nominated: kube-scheduler has chosen the node for the pod, and waits until another pod has left it.
        terminating: the pod is bound, and being deleted.
        queued: the pod is on the way to the node: kube-scheduler has not tried to schedule it yet.
        pinned: the pod is a VM's, and may run on no other node, or only on a few that it prefers equally.
        shortlisted: the pod may run on the nodes of a short list only. Set for one of the nodes that it prefers.
    """

    node: str
    bound: bool = False
    nominated: bool = False
    terminating: bool = False
    queued: bool = False
    pinned: bool = False
    shortlisted: bool = False

    @property
    def by_record(self) -> bool:
        """Whether only the webhook's record brings the pod to the node."""
        return not (self.bound or self.nominated)


class AntiAffinity(Struct, frozen=True, weakref=True):
    """The required anti-affinity terms of a pod; pods with equal terms can share one object."""

    terms: tuple[Term, ...] = ()


NO_TERMS: Final = AntiAffinity()
PARTS_NOT_READ: Final = AntiAffinity((Term(Selector(), (), HOSTNAME, unread=True),))
"""Of a bound pod with a field that was too long to be read (webhook.core.pod_limits): it can exclude all there."""
TERMS_NOT_READ: Final = AntiAffinity((Term(Selector(), (), "", unread=True),))
"""Of a bound pod whose terms were too long to be read: they can be about any pod, over any topology."""


def anti_affinity(terms: Iterable[PodAffinityTerm], namespace: str) -> AntiAffinity:
    """Return the required anti-affinity of a pod in `namespace`."""
    parsed = parse_terms(terms, namespace)
    return AntiAffinity(parsed) if parsed else NO_TERMS


class PodInfo(Struct, frozen=True, gc=False):
    """A pod on one of the nodes on which it counts.

    `labels`: those of a pinned pod, for others' rules can be about it before it is bound; and those of Longhorn's
    instance managers. None for any other pod.
    """

    namespace: str
    usage: Usage
    anti_affinity: AntiAffinity
    on: PodNode
    labels: Mapping[str, str] | None = None


def pod_info(
    namespace: str, usage: Usage, anti_affinity: AntiAffinity, on: PodNode, labels: Mapping[str, str] | None
) -> PodInfo:
    """Return the pod as it counts on one node, with its labels if they are kept."""
    kept = on.pinned or (on.bound and (labels or {}).get(LABEL_LONGHORN_COMPONENT) == INSTANCE_MANAGER)
    return PodInfo(namespace, usage, anti_affinity, on, (labels or {}) if kept else None)


def pod_nodes(
    spec: WatchedSpec, status: PodStatus | None, *, terminating: bool, is_vm: bool, recorded: bool
) -> Sequence[PodNode]:
    """Return the nodes on which a pod counts; none if the pod is over.

    A pod with a scheduling gate counts nowhere, because kube-scheduler ignores it until the gate is removed, which can
    take hours. A pod that kube-scheduler has nominated for a node counts there: for other pods of its priority or a
    lower one it is as good as bound (framework/runtime/framework.go, RunFilterPluginsWithNominatedPods).

    Any other pod counts only if it is `recorded`: the webhook's record says that the webhook has written terms into it.
    A preference counts until kube-scheduler has evaluated the pod. A pod that may run on named nodes only counts until
    it is bound. The caller sees to it that the pod's owner exists (`PodNode.by_record`). A pod that prefers more nodes
    than the webhook ever names counts nowhere, because each of them costs memory.
    """
    if is_over(status.phase if status else None):
        return ()
    if spec.node_name:
        return (PodNode(node=spec.node_name, bound=True, terminating=terminating),)
    if spec.scheduling_gates:
        return ()
    node_affinity = spec.node_affinity
    named = named_nodes(node_affinity.required) if node_affinity else frozenset()
    if status and status.nominated_node_name:
        nominated = status.nominated_node_name
        return (PodNode(node=nominated, nominated=True, pinned=is_vm and recorded and named == {nominated}),)
    queued = not (status and status.scheduled)
    if not recorded or not (queued or named):
        return ()
    preferred = _preferred(node_affinity.preferred or ()) if node_affinity else frozenset()
    nodes = named if len(named) == 1 else preferred.union(spec.near_nodes)
    if len(nodes) > MAX_TERMS:
        return ()
    equally = bool(named) and named.issubset(nodes)
    return tuple(
        PodNode(
            node=name,
            queued=queued,
            pinned=is_vm and equally,
            shortlisted=bool(named) and not equally and index == 0,
        )
        for index, name in enumerate(sorted(nodes))
    )


def _preferred(terms: Sequence[PreferredSchedulingTerm]) -> frozenset[str]:
    """The nodes that preferences name, each by a term of its own."""
    return frozenset(
        name
        for term in terms
        if term.preference and not term.preference.match_expressions
        for name in pinned_nodes(term.preference)
    )
