"""A preference that is heard: the few nodes that the scheduler is to choose from.

In a large cluster kube-scheduler scores only a sample of the feasible nodes, and a preferred node is seldom in it.
Where every required term names a node by metadata.name it looks at those nodes alone, and scores them all while they
are fewer than 100 (schedule_one.go, findNodesThatFitPod and numFeasibleNodesToFind). So the wish goes on top of a short
list of nodes that the pod may run on, spread over the cluster.

The list is also what the preferred node is compared with: a node that the scheduler avoids for its PreferNoSchedule
taints is chosen from among nodes that it avoids as much.

Invariant: a list has no node that was not judged feasible, and it is never a short one of one: fewer than LEAST_NODES
are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import Final
from zlib import crc32

from webhook.core import feasibility, fit
from webhook.core.affinity import MAX_TERMS, most_nodes, names_some_nodes, shuns
from webhook.core.feasibility import Verdict
from webhook.core.fit import Applicant
from webhook.core.objects import Pod
from webhook.core.view import ClusterView, Gap

SCORED_WHOLE_NODES: Final = 100  # schedule_one.go, minFeasibleNodesToFind: as many are always all scored
LEAST_NODES: Final = 16
_LOOKED_AT_MAX: Final = 256  # of those that may be unfit; fewer are judged: what webhook.core.budget allows
_GOLDEN: Final = 0.618  # the fraction of a circle whose multiples stay apart, however many there are


def pick(
    who: Applicant, wished: Sequence[str], view: ClusterView, *, seed: str, reluctance: int = 0
) -> tuple[str, ...]:
    """The nodes to choose from, the wished ones first; none where the scheduler sees every node anyway.

    Nothing is read for it: what `view` does not hold is left out.

    Args:
        who: the pod under admission.
        wished: the nodes that are preferred; each was judged feasible.
        view: the cluster.
        seed: what makes one pod's list another than the next one's, and the same again.
        reluctance: the least (`feasibility.reluctance`) of every node that is not wished.
    """
    pod = who.pod
    names = view.node_names()
    room = most_nodes(pod.spec.required_node_affinity, MAX_TERMS)
    if len(names) <= SCORED_WHOLE_NODES or room < LEAST_NODES or view.doubt() or fit.undecidable(pod, view):
        return ()
    if names_some_nodes(pod.spec.required_node_affinity):
        return ()  # those would stay beside the list, and a second admission would count another one
    chosen = dict.fromkeys(wished[:room])
    for name in _spread(names, seed):
        if len(chosen) >= room:
            break
        if name in chosen or isinstance(view.node(name), Gap) or reluctance_of(name, pod, view) < reluctance:
            continue
        if not who.budget.take_candidate():
            break
        if _is_fit(name, who, view):
            chosen[name] = None
    return tuple(chosen) if len(chosen) >= LEAST_NODES else ()


def _spread(names: Sequence[str], seed: str) -> Iterator[str]:
    """Different names, far from one another in their order, for as long as is looked."""
    many = len(names)
    start, step = crc32(seed.encode()) % many, int(many * _GOLDEN)
    while gcd(step, many) != 1:
        step += 1
    return (names[(start + turn * step) % many] for turn in range(min(many, _LOOKED_AT_MAX)))


def _is_fit(name: str, who: Applicant, view: ClusterView) -> bool:
    verdict = fit.judge(name, who, view)
    return isinstance(verdict, Verdict) and verdict.feasible and not is_shunned(name, who.pod, view)


def reluctance_of(name: str, pod: Pod, view: ClusterView) -> int:
    """How much the scheduler avoids this node for the pod; 0 for one that can't be seen."""
    node = view.node(name)
    return 0 if isinstance(node, Gap) else feasibility.reluctance(node, pod)


def is_shunned(name: str, pod: Pod, view: ClusterView) -> bool:
    """Whether the pod's own preferences are against this node."""
    node_affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    preferred = (node_affinity.preferred if node_affinity else None) or ()
    node = view.node(name)
    return shuns(preferred, None if isinstance(node, Gap) else node.metadata.labels, name)
