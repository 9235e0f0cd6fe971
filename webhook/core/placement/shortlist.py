"""The short list: some nodes among which kube-scheduler must choose, so that it scores the preferred ones.

In a large cluster kube-scheduler scores only a sample of the feasible nodes, and the sample seldom has the preferred
node. If every required term names a node by metadata.name, kube-scheduler filters those nodes only. It scores all of
them if there are fewer than 100 (schedule_one.go, findNodesThatFitPod and numFeasibleNodesToFind). Therefore the
webhook adds to a preference a short list of nodes on which the pod may run, spread over the cluster.

kube-scheduler compares the preferred node with the others of the list. If the preferred node has taints with
PreferNoSchedule, the others must have as many.

Invariant: the pod fits every node of a list, and a list has LEAST_NODES nodes or more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import Final
from zlib import crc32

from webhook.core import refs
from webhook.core.api.affinity import (
    MAX_TERMS,
    NodeSelectorTerm,
    most_nodes,
)
from webhook.core.api.pod import Pod
from webhook.core.placement.feasibility import evaluate
from webhook.core.scheduler.cache import NodeInfo, Snapshot, SnapshotUnavailable
from webhook.core.scheduler.cycle_state import CycleState, why_never_listed
from webhook.core.scheduler.node_rules import count_prefer_no_schedule, expression_holds, field_holds
from webhook.core.scheduler.pod_requests import PODS, Usage
from webhook.core.view import ClusterView, NoObject

SCORED_WHOLE_NODES: Final = 100  # schedule_one.go, minFeasibleNodesToFind: up to this number all are scored
LEAST_NODES: Final = 16
_CANDIDATES_MAX: Final = 10 * LEAST_NODES
"""The most nodes that are looked at: 20 to 30 us each, within 5 ms. A pod that fits a tenth of them gets a list."""
_GOLDEN: Final = 0.618  # the multiples of this fraction of a circle stay apart, however many there are


def pick(
    cycle: CycleState, preferred: Sequence[str], view: ClusterView, *, seed: str, least_taints: int = 0
) -> tuple[str, ...]:
    """Return the names of the nodes of a short list, the preferred ones first; none if every node is scored anyway.

    A list is a hard requirement. Therefore its nodes together must have enough for every pod that is limited to a short
    list and not bound yet, wherever those pods will run, and for this pod. A list holds for as long as the pod waits.
    Therefore there is none while most nodes are unusable: the usable nodes of the moment may be too few later. No
    object is read for a list: a node that `view` does not have is left out. Karpenter and cluster-autoscaler make no
    node for a pod that must run on nodes by metadata.name (provisioner.go, validateNodeSelectorTerm; and
    simulator/node_info_utils.go). Therefore there is none beside an autoscaler.

    The pod fits each node of `preferred`. `seed` makes the lists of different pods different. A node that is not
    preferred has at least `least_taints` taints (`count_taints`).
    """
    required, names, usable = cycle.pod.spec.required_node_affinity, view.node_names(), view.usable_nodes()
    snapshot = cycle.snapshot
    most = most_nodes(required, MAX_TERMS)
    if usable <= SCORED_WHOLE_NODES or 2 * usable <= len(names) or most < LEAST_NODES:
        return ()
    if (
        isinstance(snapshot, SnapshotUnavailable)
        or view.has_autoscaler()
        or view.staleness()
        or why_never_listed(cycle)
    ):
        return ()
    view = view.without_reads()
    listed: dict[str, int] = {}
    for name in (*preferred[:most], *_spread(names, seed)):
        if len(listed) >= most:
            break
        if name not in preferred:
            node = view.get(refs.node(name))
            if name in listed or isinstance(node, NoObject):
                continue
            if least_taints and count_prefer_no_schedule(node, cycle.pod.spec.tolerations or ()) < least_taints:
                continue
            if not _fits(name, cycle, view):
                continue
        listed[name] = _capacity(cycle.usage, snapshot.node_info(name))
    enough = len(listed) >= LEAST_NODES and sum(listed.values()) >= _needed(cycle.usage, snapshot)
    return tuple(listed) if enough else ()


def _needed(usage: Usage, snapshot: Snapshot) -> int:
    """Return for how many pods that request `usage` the list needs capacity.

    The number counts this pod, and what the unbound pods on short lists displace at most, on any node. Each other
    replica may have written as many lists as this replica knows of.
    """
    needed = 1
    for other, count in snapshot.scheduler_cache.shortlisted.items():
        amounts = dict(other.requests)
        needed += count * max([1, *(-(-amounts.get(name, 0) // amount) for name, amount in usage.requests)])
    return snapshot.replicas * needed


def _capacity(usage: Usage, node: NodeInfo) -> int:
    """Return for how many pods of this shape a node that fits one has enough."""
    has, requested = node.allocatable.get, node.requested.amounts.get
    free = (has(each, 0) - requested(each, 0) for each, _ in usage.requests)
    counts = (left // amount for left, (_, amount) in zip(free, usage.requests, strict=True))
    return min([has(PODS, 0) - node.requested.pods, *counts])


def _spread(names: Sequence[str], seed: str) -> Iterator[str]:
    """Return different names that are far from one another in their order, at most _CANDIDATES_MAX."""
    many = len(names)
    start, step = crc32(seed.encode()) % many, int(many * _GOLDEN)
    while gcd(step, many) != 1:
        step += 1
    return (names[(start + turn * step) % many] for turn in range(min(many, _CANDIDATES_MAX)))


def _fits(name: str, cycle: CycleState, view: ClusterView) -> bool:
    return evaluate(name, cycle, view).fits and not pod_prefers_against(name, cycle.pod, view)


def count_taints(name: str, pod: Pod, view: ClusterView) -> int:
    """Return how many taints PreferNoSchedule of the node the pod does not tolerate; 0 if the view lacks the node."""
    node = view.get(refs.node(name))
    return 0 if isinstance(node, NoObject) else count_prefer_no_schedule(node, pod.spec.tolerations or ())


def pod_prefers_against(name: str, pod: Pod, view: ClusterView) -> bool:
    """Whether the pod's own node affinity prefers other nodes by NotIn, as Longhorn's against a delinquent node."""
    affinity = pod.spec.node_affinity
    if affinity is None or not affinity.preferred:
        return False
    node = view.get(refs.node(name))
    labels = {} if isinstance(node, NoObject) else node.metadata.labels or {}
    for preference in (term.preference or NodeSelectorTerm() for term in affinity.preferred):
        for expression in preference.match_expressions or ():
            if expression.operator == "NotIn" and not expression_holds(expression, labels):
                return True
        for field in preference.match_fields or ():
            if field.operator == "NotIn" and not field_holds(field, name):
                return True
    return False
