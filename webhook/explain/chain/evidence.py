"""Evidence: what is shown beside a decision, from the same functions of core that it was made with.

The way from each claim to its share-manager, or from a volume to its VMs; and the verdict on every node, not only on
those that were asked about. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from webhook.core.admit import Answer, Entry
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.decision import Verdict
from webhook.core.evidence import consumers, share_managers
from webhook.core.opt_in import Policy
from webhook.core.placement import fit, share_manager
from webhook.core.view import ClusterView, Gap, Kind, NeedObjects, Ref
from webhook.explain.chain import claim_chain, volume_chain
from webhook.explain.chain.claim_chain import ClaimChain
from webhook.explain.chain.volume_chain import VolumeChain
from webhook.explain.sources.cluster_reader import ClusterReader, answer_when_read

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


def collect_evidence(answer: Answer, entry: Entry, namespace: str, cluster: ClusterReader, policy: Policy) -> Evidence:
    """The evidence for an answer; none at all for what is no new pod."""
    pod = answer.pod
    if pod is None:
        return Evidence()
    if entry is Entry.SHARE_MANAGER:
        return _volume_evidence(pod, namespace, cluster, policy)
    findings = answer_when_read(cluster, lambda view: share_managers.resolve(pod, namespace, view))
    candidates = {finding.node for finding in findings if finding.node}
    incoming = fit.applicant(pod, namespace, share_managers.bound_volumes(findings))
    nodes, problem = _nodes(lambda name, view: fit.judge(name, incoming, view), candidates, cluster)
    return Evidence(
        claims=[claim_chain.build_claim_chain(finding, namespace, cluster.view) for finding in findings],
        nodes=nodes,
        problem=[f"{_ONLY[entry]}: {problem}"] if problem else [],
    )


def _volume_evidence(pod: Pod, namespace: str, cluster: ClusterReader, policy: Policy) -> Evidence:
    """The evidence for a share-manager pod: it has no claim, and verdicts of its own."""
    volume = share_manager.volume_of(pod)
    findings = answer_when_read(cluster, lambda view: consumers.resolve(volume, view, policy))
    chain = answer_when_read(cluster, lambda view: volume_chain.build_volume_chain(volume, findings, view, policy))
    candidates = {finding.node for finding in findings if finding.node}
    incoming = fit.applicant(pod, namespace)
    nodes, problem = _nodes(lambda name, view: share_manager.judge(name, incoming, view), candidates, cluster)
    notes = [f"{_ONLY[Entry.SHARE_MANAGER]}: {problem}"] if problem else []
    view, tickets = cluster.view, Ref(Kind.VOLUME_ATTACHMENT, NamespacedName("", volume))
    if view.volume_attachment(volume) is Gap.UNAVAILABLE:
        notes.append(f"its attachment tickets are not known: {view.problem(tickets)}")
    return Evidence(volume=chain, nodes=nodes, problem=notes)


def _nodes(
    judge: Callable[[str, ClusterView], Verdict | NeedObjects], candidates: set[str], cluster: ClusterReader
) -> tuple[list[NodeVerdict], str]:
    """Every candidate and every node of the cluster, the candidates first; and what kept the others from us."""
    listed = cluster.node_names()
    names = sorted(candidates | set(listed.items), key=lambda name: (name not in candidates, name))
    results = answer_when_read(cluster, lambda view: _all(judge(name, view) for name in names))
    return [_verdict(verdict, candidates) for verdict in results], listed.problem


def _all(results: Iterable[Verdict | NeedObjects]) -> list[Verdict] | NeedObjects:
    verdicts: list[Verdict] = []
    unread: list[Ref] = []
    for each in results:
        if isinstance(each, NeedObjects):
            unread += each.refs
        else:
            verdicts.append(each)
    return NeedObjects(tuple(unread)) if unread else verdicts


def _verdict(verdict: Verdict, candidates: Container[str]) -> NodeVerdict:
    return NodeVerdict(
        name=verdict.node,
        candidate=verdict.node in candidates,
        feasible=verdict.feasible,
        reason=verdict.why.reason.code,
        sentence=verdict.why.sentence,
    )
