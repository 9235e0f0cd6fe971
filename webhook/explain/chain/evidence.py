"""Evidence: everything that an explanation shows beside the decision.

For a virt-launcher pod: the objects behind each claim. For a share-manager pod: the objects behind its volume. For
both: the result of every node of the cluster, while the decision needs the candidates only. Invariant: the functions
of core that made the decision make the evidence, and nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Final

from msgspec import Struct

from webhook.core import refs
from webhook.core.admit import Answer, Entry
from webhook.core.api.pod import Pod
from webhook.core.decision import NodeFit
from webhook.core.evidence import consumers, share_managers
from webhook.core.opt_in import Policy
from webhook.core.placement import feasibility, share_manager
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.view import ClusterView, NoObject
from webhook.explain.chain import claim_chain, volume_chain
from webhook.explain.chain.claim_chain import ClaimChain
from webhook.explain.chain.volume_chain import VolumeChain
from webhook.explain.sources.cluster_reader import ClusterReader

_SHARE_MANAGERS_ONLY: Final = (
    "only the nodes of the claims' share-managers are shown, because the nodes could not be listed"
)
_VMS_ONLY: Final = (
    "only the nodes of the VMs are shown, and no short list of nodes, because the nodes could not be listed"
)


class NodeEvidence(Struct, rename="camel", frozen=True, kw_only=True):
    """Whether the pod can run on a node. A candidate is the node of a share-manager of the pod's claims, or of a VM."""

    name: str
    candidate: bool
    feasible: bool
    reason: str
    sentence: str


class Evidence(Struct, frozen=True, kw_only=True):
    """The evidence for one pod. `problem` has a sentence for each part that could not be read."""

    claims: Sequence[ClaimChain] = ()
    volume: VolumeChain | None = None
    nodes: Sequence[NodeEvidence] = ()
    problem: Sequence[str] = ()

    @property
    def reasons(self) -> Iterator[str]:
        """The reason code of each finding and of each node."""
        yield from (chain.reason for chain in self.claims)
        yield from (node.reason for node in self.nodes)
        yield from (consumer.reason for consumer in (self.volume.consumers if self.volume else ()))


def collect_evidence(answer: Answer, entry: Entry, namespace: str, cluster: ClusterReader, policy: Policy) -> Evidence:
    """Return the evidence for an answer of core; empty if the request does not create a pod."""
    pod = answer.pod
    if pod is None:
        return Evidence()
    if entry is Entry.SHARE_MANAGER:
        return _volume_evidence(pod, namespace, cluster, policy)
    findings = cluster.ask(lambda view: share_managers.find_share_managers(pod, namespace, view))
    candidates = {finding.node for finding in findings if finding.node}
    cycle = CycleState(pod, namespace, cluster.view.snapshot(), share_managers.bound_volumes(findings))
    nodes, problem = _nodes(lambda name, view: feasibility.evaluate(name, cycle, view), candidates, cluster)
    return Evidence(
        claims=[claim_chain.build_claim_chain(finding, namespace, cluster.view) for finding in findings],
        nodes=nodes,
        problem=[f"{_SHARE_MANAGERS_ONLY}: {problem}"] if problem else [],
    )


def _volume_evidence(pod: Pod, namespace: str, cluster: ClusterReader, policy: Policy) -> Evidence:
    """The evidence for a share-manager pod. It has no claim, and core evaluates its nodes by rules of their own."""
    volume = share_manager.volume_of(pod)
    findings = cluster.ask(lambda view: consumers.find_vms(volume, view, policy))
    chain = cluster.ask(lambda view: volume_chain.build_volume_chain(volume, findings, view, policy))
    candidates = {finding.node for finding in findings if finding.node}
    cycle = CycleState(pod, namespace, cluster.view.snapshot())
    nodes, problem = _nodes(lambda name, view: share_manager.share_manager_fit(name, cycle, view), candidates, cluster)
    notes = [f"{_VMS_ONLY}: {problem}"] if problem else []
    view, tickets = cluster.view, refs.volume_attachment(volume)
    if view.get(tickets) is NoObject.UNAVAILABLE:
        notes.append(f"the volume's attachment tickets could not be read: {view.read_error(tickets)}")
    return Evidence(volume=chain, nodes=nodes, problem=notes)


def _nodes(
    evaluate: Callable[[str, ClusterView], NodeFit], candidates: set[str], cluster: ClusterReader
) -> tuple[list[NodeEvidence], str]:
    """The result of each candidate and of each other node, candidates first; why the others could not be listed."""
    listed = cluster.node_names()
    names = sorted(candidates | set(listed.items), key=lambda name: (name not in candidates, name))
    results = cluster.ask(lambda view: [evaluate(name, view) for name in names])
    return [_node_evidence(verdict, candidates) for verdict in results], listed.problem


def _node_evidence(verdict: NodeFit, candidates: Container[str]) -> NodeEvidence:
    return NodeEvidence(
        name=verdict.node,
        candidate=verdict.node in candidates,
        feasible=verdict.feasible,
        reason=verdict.why.reason.code,
        sentence=verdict.why.sentence,
    )
