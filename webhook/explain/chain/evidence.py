"""Evidence: what is shown beside a decision, from the same functions of core that it was made with.

The way from each claim to its share-manager, or from a volume to its VMs; and the verdict on every node, not only on
those that were asked about. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Final

from msgspec import Struct

from webhook.core.admit import Answer, Entry
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.decision import NodeFit
from webhook.core.evidence import consumers, share_managers
from webhook.core.opt_in import Policy
from webhook.core.placement import feasibility, share_manager
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.view import ClusterView, Kind, NeedObjects, NoObject, ObjectRef
from webhook.explain.chain import claim_chain, volume_chain
from webhook.explain.chain.claim_chain import ClaimChain
from webhook.explain.chain.volume_chain import VolumeChain
from webhook.explain.sources.cluster import Cluster, settled

_ONLY: Final = {
    Entry.VIRT_LAUNCHER: "only nodes that a claim leads to are shown",
    Entry.SHARE_MANAGER: (
        "only nodes that a VM leads to are shown, and the short list that a large cluster needs is left out"
    ),
}


class NodeVerdict(Struct, rename="camel", frozen=True, kw_only=True):
    """Whether the pod may run on a node. A candidate is one that some claim leads to, or some VM."""

    name: str
    candidate: bool
    feasible: bool
    reason: str
    sentence: str


class Evidence(Struct, frozen=True, kw_only=True):
    """What was found; `problem` says what could not be."""

    claims: Sequence[ClaimChain] = ()
    volume: VolumeChain | None = None
    nodes: Sequence[NodeVerdict] = ()
    problem: Sequence[str] = ()

    @property
    def reasons(self) -> Iterator[str]:
        """The code of each thing that was found."""
        yield from (chain.reason for chain in self.claims)
        yield from (node.reason for node in self.nodes)
        yield from (consumer.reason for consumer in (self.volume.consumers if self.volume else ()))


def of(answer: Answer, entry: Entry, namespace: str, cluster: Cluster, policy: Policy) -> Evidence:
    """The evidence for an answer; none at all for what is no new pod."""
    pod = answer.pod
    if pod is None:
        return Evidence()
    if entry is Entry.SHARE_MANAGER:
        return _of_volume(pod, namespace, cluster, policy)
    findings = settled(cluster, lambda view: share_managers.find_share_managers(pod, namespace, view))
    candidates = {finding.node for finding in findings if finding.node}
    incoming = IncomingPod.of(pod, namespace, share_managers.bound_volumes(findings))
    cycle = CycleState(incoming, cluster.view.snapshot())
    nodes, problem = _nodes(lambda name, view: feasibility.evaluate(name, cycle, view), candidates, cluster)
    return Evidence(
        claims=[claim_chain.of(finding, namespace, cluster.view) for finding in findings],
        nodes=nodes,
        problem=[f"{_ONLY[entry]}: {problem}"] if problem else [],
    )


def _of_volume(pod: Pod, namespace: str, cluster: Cluster, policy: Policy) -> Evidence:
    """The evidence for a share-manager pod: it has no claim, and verdicts of its own."""
    volume = share_manager.volume_of(pod)
    findings = settled(cluster, lambda view: consumers.find_vms(volume, view, policy))
    chain = settled(cluster, lambda view: volume_chain.of(volume, findings, view, policy))
    candidates = {finding.node for finding in findings if finding.node}
    cycle = CycleState(IncomingPod.of(pod, namespace), cluster.view.snapshot())
    nodes, problem = _nodes(lambda name, view: share_manager.share_manager_fit(name, cycle, view), candidates, cluster)
    notes = [f"{_ONLY[Entry.SHARE_MANAGER]}: {problem}"] if problem else []
    view, tickets = cluster.view, ObjectRef(Kind.VOLUME_ATTACHMENT, NamespacedName("", volume))
    if view.volume_attachment(volume) is NoObject.UNAVAILABLE:
        notes.append(f"its attachment tickets are not known: {view.read_error(tickets)}")
    return Evidence(volume=chain, nodes=nodes, problem=notes)


def _nodes(
    evaluate: Callable[[str, ClusterView], NodeFit | NeedObjects], candidates: set[str], cluster: Cluster
) -> tuple[list[NodeVerdict], str]:
    """Every candidate and every node of the cluster, the candidates first; and what kept the others from us."""
    listed = cluster.node_names()
    names = sorted(candidates | set(listed.items), key=lambda name: (name not in candidates, name))
    node_fits = settled(cluster, lambda view: feasibility.collect(evaluate(name, view) for name in names))
    return [_verdict(verdict, candidates) for verdict in node_fits], listed.problem


def _verdict(verdict: NodeFit, candidates: Container[str]) -> NodeVerdict:
    return NodeVerdict(
        name=verdict.node,
        candidate=verdict.node in candidates,
        feasible=verdict.feasible,
        reason=verdict.why.reason.code,
        sentence=verdict.why.sentence,
    )
