"""decide(): Pin | Leave | Needs, for one pod at its CREATE and one view of the cluster.

The rules of the house in their order, cheapest first. Every outcome carries its Why. Invariants: a hard pin names
only nodes with firm evidence that were judged feasible; nothing here raises.
"""

from __future__ import annotations

from collections.abc import Sequence

from webhook.core.api import kubevirt
from webhook.core.api.node_selector import MAX_TERMS, most_nodes
from webhook.core.api.pod import Pod
from webhook.core.decision import Decision, Leave, NodeFit, Pin, evidence_for, rank, weigh
from webhook.core.evidence import share_managers
from webhook.core.evidence.finding import Finding
from webhook.core.opt_in import Mode, Policy, _our_mode
from webhook.core.placement import feasibility, replica_share, shortlist
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, CHAIN_ORDER, Reason, Why
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.view import ClusterView, NeedObjects


def decide(pod: Pod, namespace: str, view: ClusterView, policy: Policy) -> Decision | NeedObjects:
    """What to do with a pod that is being created in `namespace`, or what must be read first. Never raises."""
    mode = _our_mode(pod, policy)
    if isinstance(mode, Why):
        return Leave(why=mode)
    return _place(pod, namespace, mode, view)


def _place(pod: Pod, namespace: str, mode: Mode, view: ClusterView) -> Decision | NeedObjects:
    """Rules 5 to 8 for a pod that opted in with `mode` (REQUIRED or PREFERRED)."""
    findings = share_managers.find_share_managers(pod, namespace, view)
    if isinstance(findings, NeedObjects):
        return findings
    ranked = _rank(findings)
    if not ranked:
        furthest = max(findings, key=lambda finding: CHAIN_ORDER[finding.why.reason], default=None)
        return Leave(why=furthest.why if furthest else Reason.NO_CLAIMS.why(), opted_in=True, findings=findings)
    incoming = IncomingPod.of(pod, namespace, share_managers.bound_volumes(findings))
    cycle = CycleState(incoming, view.snapshot())
    verdicts = feasibility.collect(feasibility.evaluate(node, cycle, view) for node in ranked)
    if isinstance(verdicts, NeedObjects):
        return verdicts
    wished = {verdict.node: ranked[verdict.node] for verdict in verdicts if verdict.preferable}
    if not wished:
        return Leave(why=verdicts[0].why, opted_in=True, findings=findings, node_fits=verdicts)
    required = _required(cycle, mode, findings, verdicts, view)
    soft = isinstance(required, Why)
    return Pin(
        why=required if isinstance(required, Why) else evidence_for(required[0], findings).why,
        required=() if isinstance(required, Why) else required,
        preferred=weigh(wished)[:MAX_TERMS],
        shortlist=_shortlist(cycle, findings, verdicts, view) if soft else (),
        usage=incoming.usage,
        findings=findings,
        node_fits=verdicts,
    )


def _shortlist(
    cycle: CycleState, findings: Sequence[Finding], verdicts: Sequence[NodeFit], view: ClusterView
) -> tuple[str, ...]:
    """The nodes among which a preference is heard, where that can't cost the start.

    Not while a claim is open: its volume may come to be where none of them is.
    """
    fitting = [verdict.node for verdict in verdicts if verdict.fits]
    if not fitting or any(finding.open for finding in findings):
        return ()
    pod = cycle.incoming.pod
    owner = kubevirt.owner(pod)
    taints = shortlist.count_taints(fitting[0], pod, view)
    return shortlist.pick(cycle, fitting, view, seed=(owner.uid if owner else None) or fitting[0], least_taints=taints)


def _rank(findings: Sequence[Finding]) -> dict[str, int]:
    """Node -> number of volumes whose share-manager it has, the most first, equals by name.

    What KubeVirt keeps of the VM itself counts only where no disk's share-manager is on a node: it is a few KB.
    """
    disks = {finding.volume_handle: finding.node for finding in findings if finding.node and not finding.state}
    state = {finding.volume_handle: finding.node for finding in findings if finding.node and finding.state}
    return rank((disks or state).values())


def _required(
    cycle: CycleState, mode: Mode, findings: Sequence[Finding], verdicts: Sequence[NodeFit], view: ClusterView
) -> tuple[str, ...] | Why:
    """The nodes of a hard pin, best first, or why there can't be one."""
    pod = cycle.incoming.pod
    if mode is not Mode.REQUIRED:
        asker = "the cluster's setting" if pod.metadata.annotation(ANNOTATION_CO_SCHEDULE) == "true" else "the VM"
        return Reason.PREFERRED_MODE.why(who=asker)
    firm = {finding.node for finding in findings if finding.firm and not finding.state}
    candidates = [verdict for verdict in verdicts if verdict.node in firm]
    if not candidates:
        best = evidence_for(verdicts[0].node, findings)
        return Reason.STATE_CLAIM.why(claim=best.claim) if best.state else best.why
    blocked = (
        feasibility.why_undecidable(cycle)
        or next((finding.why for finding in findings if finding.open), None)
        or replica_share.why_not_shared(cycle)
    )
    if blocked:
        return blocked
    staleness = view.staleness()
    if staleness:
        return Reason.UNCONFIRMED.why(staleness=staleness)
    feasible = tuple(verdict.node for verdict in candidates if verdict.feasible)
    if not feasible:
        return candidates[0].why
    # A topology spread was judged for a pin to one node: among several the scheduler may find none that it admits.
    wanted = 1 if pod.spec.topology_spread_constraints else len(feasible)
    most = most_nodes(pod.spec.required_node_affinity, wanted)
    return feasible[:most] or Reason.TOO_MANY_TERMS.why(limit=MAX_TERMS)
