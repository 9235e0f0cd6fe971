"""A preference that is heard: the few nodes that the scheduler is to choose from.

In a large cluster kube-scheduler scores only a sample of the feasible nodes, and a preferred node is seldom in it.
Where every required term names a node by metadata.name it looks at those nodes alone, and scores them all while they
are fewer than 100 (schedule_one.go, findNodesThatFitPod and numFeasibleNodesToFind). So the wish goes on top of a short
list of nodes that the pod may run on, spread over the cluster.

The list is also what the preferred node is compared with: a node that the scheduler avoids for its PreferNoSchedule
taints is chosen from among nodes that it avoids as much.

Invariant: the pod fits every node of a list, and a list has LEAST_NODES or more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import Final
from zlib import crc32

from webhook.core.api.node_selector import MAX_TERMS, most_nodes, names_some_nodes
from webhook.core.api.pod import Pod
from webhook.core.decision import NodeFit
from webhook.core.placement import fit
from webhook.core.placement.fit import Applicant
from webhook.core.scheduler.plugins.node_affinity import shuns
from webhook.core.scheduler.plugins.node_resources_fit import places, times
from webhook.core.scheduler.plugins.taint_toleration import reluctance
from webhook.core.scheduler.state.pod_requests import Usage
from webhook.core.scheduler.state.snapshot import Snapshot
from webhook.core.view import ClusterView, NoObject

SCORED_WHOLE_NODES: Final = 100  # schedule_one.go, minFeasibleNodesToFind: as many are always all scored
LEAST_NODES: Final = 16
_LOOKED_AT_MAX: Final = 256  # of those that may be unfit; fewer are judged: what webhook.core.scheduler.budget allows
_GOLDEN: Final = 0.618  # the fraction of a circle whose multiples stay apart, however many there are


def pick(
    who: Applicant, wished: Sequence[str], view: ClusterView, *, seed: str, reluctance: int = 0
) -> tuple[str, ...]:
    """The nodes to choose from, the wished ones first; none where the scheduler sees every node anyway.

    A list is a hard requirement, so its nodes together must have room for every listed pod that is on its way,
    wherever those come to run: then one is left for this pod. And it holds for as long as the pod waits, so that there
    is none while most nodes are unusable: those of the moment may be few. Nothing is read for it: what `view` does not
    hold is left out.

    Args:
        who: the pod under admission.
        wished: the nodes that are preferred; the pod fits each of them.
        view: the cluster.
        seed: what makes one pod's list another than the next one's, and the same again.
        reluctance: the least (`feasibility.reluctance`) of every node that is not wished.
    """
    pod, names, usable = who.pod, view.node_names(), view.usable_nodes()
    most = most_nodes(pod.spec.required_node_affinity, MAX_TERMS)
    if usable <= SCORED_WHOLE_NODES or 2 * usable <= len(names) or most < LEAST_NODES:
        return ()
    if view.staleness() or fit.undecidable(pod, view) or names_some_nodes(pod.spec.required_node_affinity):
        return ()  # terms that name no node would stay beside the list
    snapshot = view.snapshot()
    wanted = _wanted(who.usage, snapshot) if snapshot and not isinstance(snapshot, str) else 0
    chosen: dict[str, int] = {}
    for name in (*wished[:most], *_spread(names, seed)):
        if len(chosen) >= most:
            break
        if name not in wished:
            if name in chosen or isinstance(view.node(name), NoObject) or reluctance_of(name, pod, view) < reluctance:
                continue
            if not who.budget.take_candidate():
                break
            if not _is_fit(name, who, view):
                continue
        chosen[name] = _places(name, who, snapshot)
    return tuple(chosen) if len(chosen) >= LEAST_NODES and sum(chosen.values()) >= wanted else ()


def _wanted(asked: Usage, snapshot: Snapshot) -> int:
    """For how many pods such as this one a list must have room: all that are listed and on no node yet, and this one.

    Each of the other replicas may have listed as many as this one has since the last pods that a watch has shown.
    """
    shown, flying = (
        sum(count * times(asked, each) for each, count in snapshot.listed(in_flight=in_flight).items())
        for in_flight in (False, True)
    )
    return shown + snapshot.replicas * (flying + 1)


def _places(name: str, who: Applicant, snapshot: Snapshot | str | None) -> int:
    if snapshot is None or isinstance(snapshot, str):
        return 0
    there = snapshot.room(name)
    return places(who.usage, there.has, there.load, snapshot.headroom)


def _spread(names: Sequence[str], seed: str) -> Iterator[str]:
    """Different names, far from one another in their order, for as long as is looked."""
    many = len(names)
    start, step = crc32(seed.encode()) % many, int(many * _GOLDEN)
    while gcd(step, many) != 1:
        step += 1
    return (names[(start + turn * step) % many] for turn in range(min(many, _LOOKED_AT_MAX)))


def _is_fit(name: str, who: Applicant, view: ClusterView) -> bool:
    verdict = fit.judge(name, who, view)
    return isinstance(verdict, NodeFit) and verdict.fits and not is_shunned(name, who.pod, view)


def reluctance_of(name: str, pod: Pod, view: ClusterView) -> int:
    """How much the scheduler avoids this node for the pod; 0 for one that can't be seen."""
    node = view.node(name)
    return 0 if isinstance(node, NoObject) else reluctance(node, pod)


def is_shunned(name: str, pod: Pod, view: ClusterView) -> bool:
    """Whether the pod's own preferences are against this node."""
    node_affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    preferred = (node_affinity.preferred if node_affinity else None) or ()
    node = view.node(name)
    return shuns(preferred, None if isinstance(node, NoObject) else node.metadata.labels, name)
