"""PodInfo, PodHandle: a pod as it counts on one node: that to which it is bound, or probably will be.

A pod that is bound to no node yet takes resources of a node if the webhook has written the node into its affinity. In
this way a replica of the webhook sees what another replica has written. Nobody else's pod counts before it is bound or
nominated: anybody may create pods, with any labels and any affinity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol
from weakref import WeakValueDictionary

from msgspec import Struct

from webhook.core.api.affinity import NodeAffinity, PodAffinityTerm
from webhook.core.api.node_selector import MAX_TERMS, PreferredSchedulingTerm, named_nodes, pinned_nodes
from webhook.core.api.pod import PodSchedulingGate, PodStatus
from webhook.core.scheduler.matching.label_selector import Term
from webhook.core.scheduler.matching.pod_matcher import PodGroup
from webhook.core.scheduler.state.pod_requests import Usage, is_over


class PodNode(Struct, frozen=True, kw_only=True, weakref=True):
    """One node on which a pod counts.

    Attributes:
        node: its name.
        bound: the pod is bound to the node. Otherwise it is expected there.
        nominated: kube-scheduler has chosen the node for the pod, and waits until another pod has left it.
        terminating: the pod is bound, and being deleted.
        queued: the pod is new, and kube-scheduler has not tried to schedule it yet.
        pinned: the pod is a VM's, and may run on no other node, or only on a few that it prefers equally.
        shortlisted: the pod may run on the nodes of a short list only. Set for one of the nodes that it prefers.
        is_vm: the pod is a virt-launcher pod with a record of the webhook.
        assumed: no watch has shown the pod yet: this replica has answered for it, and it is a virt-launcher pod.
    """

    node: str
    bound: bool = False
    nominated: bool = False
    terminating: bool = False
    queued: bool = False
    pinned: bool = False
    shortlisted: bool = False
    is_vm: bool = False
    assumed: bool = False

    @property
    def by_record(self) -> bool:
        """Whether only the webhook's record brings the pod to the node."""
        return not (self.bound or self.nominated)

    @property
    def shown(self) -> bool:
        """Whether a watch has shown this VM's pod, and the pod is queued."""
        return self.is_vm and self.queued and not self.assumed


class PodInfo(Struct, frozen=True):
    """A pod on one of the nodes on which it counts. `anti_affinity` are its required terms, or why there are none."""

    namespace: str
    usage: Usage
    labels: Mapping[str, str] | None
    anti_affinity: Sequence[PodAffinityTerm] | AntiAffinity | None
    on: PodNode


class AntiAffinity(Struct, frozen=True, eq=False, weakref=True):
    """Required anti-affinity; pods with equal terms share one object. `wide`: those over another key than hostname."""

    terms: tuple[Term, ...]
    wide: tuple[Term, ...]


NO_TERMS: Final = AntiAffinity((), ())
PARTS_NOT_COMPARED: Final = AntiAffinity((), ())
"""Of a bound pod of which a field was too long to be read (webhook.core.large_pod). It has no such terms."""
TERMS_NOT_COMPARED: Final = AntiAffinity((), ())
"""Of a bound pod whose terms were too long to be read: they can be about any pod, over any topology."""


class PodHandle(Struct, frozen=True, eq=False, gc=False):
    """What `SchedulerCache.add` returns; `confirm` and `remove` take it.

    `values`: those of the labels whose keys `group` has. `answer`: the number of an assumed pod, else 0.
    """

    on: PodNode
    usage: Usage
    group: PodGroup
    values: tuple[str, ...]
    anti_affinity: AntiAffinity
    answer: int

    @property
    def expected(self) -> PodNode | None:
        """How the pod counts if it is not bound; None if it is."""
        return None if self.on.bound else self.on


class Spec(Protocol):
    """The part of a v1.PodSpec that `pod_nodes` reads."""

    @property
    def node_name(self) -> str | None:
        """The node that the pod is bound to."""
        ...

    @property
    def scheduling_gates(self) -> Sequence[PodSchedulingGate] | None:
        """The gates; kube-scheduler ignores the pod until they are removed."""
        ...

    @property
    def node_affinity(self) -> NodeAffinity | None:
        """The pod's node affinity, if it has any."""
        ...

    @property
    def near_nodes(self) -> Iterable[str]:
        """The nodes that the pod prefers by pod affinity."""
        ...


def pod_nodes(
    spec: Spec, status: PodStatus | None, *, terminating: bool, is_vm: bool, recorded: bool
) -> Sequence[PodNode]:
    """Return the nodes on which a pod counts; none if the pod is over.

    A pod with a scheduling gate counts nowhere, because kube-scheduler ignores it until the gate is removed, which can
    take hours. A pod that kube-scheduler has nominated for a node counts there: for other pods of its priority or a
    lower one it is as good as bound (framework/runtime/framework.go, RunFilterPluginsWithNominatedPods).

    A pod that prefers more nodes than the webhook ever names counts nowhere, because each of them costs memory.

    Any other pod counts only if it is `recorded`: the webhook's record says that the webhook has written terms into it.
    A preference counts until kube-scheduler has evaluated the pod. A pod that may run on named nodes only counts until
    it is bound. The caller sees to it that the pod's owner exists (`PodNode.by_record`).
    """
    if is_over(status.phase if status else None):
        return ()
    if spec.node_name:
        return _bound(spec.node_name, terminating=terminating)
    if spec.scheduling_gates:
        return ()
    node_affinity = spec.node_affinity
    named = named_nodes(node_affinity.required) if node_affinity else frozenset()
    if status and status.nominated_node_name:
        nominated = status.nominated_node_name
        pinned = is_vm and recorded and named == {nominated}
        return (PodNode(node=nominated, nominated=True, pinned=pinned, is_vm=is_vm and recorded),)
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
            is_vm=is_vm,
        )
        for index, name in enumerate(sorted(nodes))
    )


_bound_pods: Final[WeakValueDictionary[tuple[str, bool], PodNode]] = WeakValueDictionary()


def _bound(node: str, *, terminating: bool) -> tuple[PodNode]:
    """Return what the bound pods of a node have in common."""
    found = _bound_pods.get((node, terminating))
    if found is None:
        found = _bound_pods[node, terminating] = PodNode(node=node, bound=True, terminating=terminating)
    return (found,)


def _preferred(terms: Sequence[PreferredSchedulingTerm]) -> frozenset[str]:
    """The nodes that preferences name, each by a term of its own."""
    return frozenset(
        name
        for term in terms
        if term.preference and not term.preference.match_expressions
        for name in pinned_nodes(term.preference)
    )
