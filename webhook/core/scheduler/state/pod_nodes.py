"""Where a pod counts: on the node that it is bound to, or on each node that it is drawn to.

A pod that is on no node yet takes a place of its node all the same, as far as its affinity tells where it will come to
run: what one replica of the webhook has written is what another one reads here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from webhook.core.api.affinity import NodeAffinity
from webhook.core.api.node_selector import PreferredSchedulingTerm, named_nodes, pinned_nodes
from webhook.core.api.pod import PodSchedulingGate, PodStatus
from webhook.core.scheduler.state.pod_index import Presence
from webhook.core.scheduler.state.pod_requests import is_over


class Place(Struct, frozen=True, kw_only=True, gc=False):
    """One node that a pod counts on; as of webhook.core.scheduler.state.cache.PodInfo."""

    node: str
    presence: Presence = Presence.EXPECTED
    on_way: bool = False
    pinned: bool = False
    listed: bool = False
    vm: bool = False


class Spec(Protocol):
    """What is asked of a v1.PodSpec."""

    @property
    def node_name(self) -> str | None:
        """The node that it is bound to."""
        ...

    @property
    def scheduling_gates(self) -> Sequence[PodSchedulingGate] | None:
        """What keeps kube-scheduler from it."""
        ...

    @property
    def node_affinity(self) -> NodeAffinity | None:
        """Its affinity's."""
        ...


def places(spec: Spec, status: PodStatus | None, *, leaves: bool, is_vm: bool) -> Sequence[Place]:
    """Where a pod counts; nowhere where its affinity leaves that to kube-scheduler, or where it is over.

    A pod with a scheduling gate counts nowhere: kube-scheduler does not look at it until the gate is lifted, which may
    take hours. One that kube-scheduler has nominated for a node counts there: for other pods of its priority or a lower
    one it is as good as bound (framework/runtime/framework.go, RunFilterPluginsWithNominatedPods).

    Args:
        spec: the pod's.
        status: the pod's.
        leaves: it is being deleted.
        is_vm: it is a virt-launcher pod.
    """
    if is_over(status.phase if status else None):
        return ()
    if spec.node_name:
        return (Place(node=spec.node_name, presence=Presence.TERMINATING if leaves else Presence.BOUND),)
    if spec.scheduling_gates:
        return ()
    node_affinity = spec.node_affinity
    named = named_nodes(node_affinity.required) if node_affinity else frozenset()
    if status and status.nominated_node_name:
        nominated = status.nominated_node_name
        return (Place(node=nominated, pinned=is_vm and named == {nominated}, vm=is_vm),)
    wished = _wished(node_affinity.preferred or ()) if node_affinity else frozenset()
    nodes = named if len(named) == 1 else wished
    alike = bool(named) and named.issubset(nodes)
    on_way = not (status and status.scheduled)
    return tuple(
        Place(
            node=name,
            on_way=on_way,
            pinned=is_vm and alike,
            listed=bool(named) and not alike and index == 0,
            vm=is_vm,
        )
        for index, name in enumerate(sorted(nodes))
    )


def _wished(preferred: Sequence[PreferredSchedulingTerm]) -> frozenset[str]:
    """The nodes that preferences name, each for itself."""
    return frozenset(
        name
        for term in preferred
        if term.preference and not term.preference.match_expressions
        for name in pinned_nodes(term.preference)
    )
