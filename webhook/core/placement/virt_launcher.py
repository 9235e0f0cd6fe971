"""place_virt_launcher(): Pin | Leave for one virt-launcher pod at its CREATE and one view of the cluster.

The rules 3 to 8 of webhook.core.admit in their order, cheapest first. Every decision carries its Why. Invariants: a
required node has firm evidence and is feasible; nothing here raises.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from webhook.core.api import kubevirt
from webhook.core.api.affinity import MAX_TERMS, most_nodes
from webhook.core.api.pod import DEFAULT_SCHEDULER, Pod
from webhook.core.decision import Decision, Leave, NodeFit, Pin, evidence_for, rank, weigh
from webhook.core.evidence import facts, share_managers
from webhook.core.evidence.facts import ClaimUse, Finding
from webhook.core.opt_in import Mode, OptedInBy, OptIn, Policy, opt_in_of_new
from webhook.core.placement import feasibility, replica_share, shortlist
from webhook.core.reasons import CHAIN_ORDER, Reason, Why
from webhook.core.scheduler.cycle_state import CycleState, why_never_required
from webhook.core.view import ClusterView


def place_virt_launcher(pod: Pod, namespace: str, view: ClusterView, policy: Policy) -> Decision:
    """Decide for a pod that is being created in `namespace`. Never raises."""
    opt_in = opt_in_of_new(pod, namespace, view, policy)
    if isinstance(opt_in, Why):
        return Leave(why=opt_in)
    decision = _place(pod, namespace, opt_in, view, allowed=policy.shortlist)
    return decision if opt_in.by is decision.by else replace(decision, by=opt_in.by)


def _place(pod: Pod, namespace: str, opt_in: OptIn, view: ClusterView, *, allowed: bool) -> Decision:
    """Rules 5 to 8 for a pod that is opted in. While an object is missing, nothing is asked that depends on it."""
    findings = share_managers.find_share_managers(pod, namespace, view)
    ranked = rank_share_managers(findings)
    if view.missing or not ranked:
        return no_share_manager(findings)
    cycle = CycleState(pod, namespace, view.snapshot(), share_managers.bound_volumes(findings))
    node_fits = [feasibility.evaluate(node, cycle, view) for node in ranked]
    preferable = {node_fit.node: ranked[node_fit.node] for node_fit in node_fits if node_fit.preferable}
    if view.missing or not preferable:
        return Leave(why=node_fits[0].why, opted_in=True, findings=findings, node_fits=node_fits)
    failing, unknown = facts.start_failures(pod, namespace, view)
    if failing and facts.fails_again(failing):
        # The preference may be what keeps the VM from starting: in a small cluster weight 100 always wins.
        return Leave(why=failing, opted_in=True, findings=findings, node_fits=node_fits)
    required = failing or _required(cycle, opt_in, findings, node_fits, view.staleness() or unknown)
    if isinstance(required, Why):
        why, required = required, ()
        allowed = allowed and not (failing or unknown or _why_other_scheduler(pod, opt_in))
        shortlist = _shortlist(cycle, findings, node_fits, view, allowed=allowed)
    else:
        why, shortlist = evidence_for(required[0], findings).why, ()
    return Pin(
        why=why,
        required=required,
        preferred=weigh(preferable)[:MAX_TERMS],
        shortlist=shortlist,
        requests=cycle.usage,
        findings=findings,
        node_fits=node_fits,
    )


def _shortlist(
    cycle: CycleState, findings: Sequence[Finding], node_fits: Sequence[NodeFit], view: ClusterView, *, allowed: bool
) -> tuple[str, ...]:
    """Return the short list for a preference; empty if a short list could keep the pod from starting.

    That is so if the nodes of a claim's volume are unknown: the volume can turn up where no node of the list is. There
    is none either if only other claims than disks of the VM's own lead to a node.
    """
    own = any(finding.node and finding.use.is_own_disk and not finding.unsure for finding in findings)
    fitting = [node_fit.node for node_fit in node_fits if node_fit.fits]
    if not allowed or not own or not fitting or any(finding.volume_nodes_unknown for finding in findings):
        return ()
    pod = cycle.pod
    owner = kubevirt.owner(pod)
    taints = shortlist.count_taints(fitting[0], pod, view)
    seed = (owner.uid if owner else None) or fitting[0]
    return shortlist.pick(cycle, fitting, view, seed=seed, least_taints=taints)


def no_share_manager(findings: Sequence[Finding]) -> Leave:
    """Return the decision for a pod none of whose share-managers is on a node: the reason of the furthest claim."""
    furthest = max(findings, key=lambda finding: CHAIN_ORDER[finding.why.reason], default=None)
    return Leave(why=furthest.why if furthest else Reason.NO_CLAIMS.why(), opted_in=True, findings=findings)


def rank_share_managers(findings: Sequence[Finding]) -> dict[str, int]:
    """Return node -> number of volumes whose share-manager is there; the most first, equal ones by name.

    Only the volumes of the highest use (ClaimUse) count that has a share-manager on a node. A CD-ROM never counts.
    """
    on_node = [finding for finding in findings if finding.node and finding.use is not ClaimUse.CDROM]
    use = max((finding.use for finding in on_node), default=None)
    return rank({finding.volume_handle: finding.node or "" for finding in on_node if finding.use is use}.values())


def _why_other_scheduler(pod: Pod, opt_in: OptIn) -> Why | None:
    """Return that another scheduler places the pod: it can refuse any node by rules that nobody here knows.

    A VM whose own annotation says `required` is judged as under the default scheduler.
    """
    scheduler = pod.spec.scheduler_name or DEFAULT_SCHEDULER
    if scheduler == DEFAULT_SCHEDULER or (opt_in.by is OptedInBy.VM and opt_in.value == Mode.REQUIRED):
        return None
    return Reason.OTHER_SCHEDULER.why(scheduler=scheduler)


def _required(
    cycle: CycleState, opt_in: OptIn, findings: Sequence[Finding], node_fits: Sequence[NodeFit], staleness: str
) -> tuple[str, ...] | Why:
    """Rule 8: return the nodes to require, best first; or why none can be required.

    `staleness`: what of the cluster is not known as it is now; empty if all is.
    """
    pod = cycle.pod
    if opt_in.mode is not Mode.REQUIRED:
        asker = "the VM" if opt_in.by is OptedInBy.VM else opt_in.by
        return Reason.PREFERRED_MODE.why(who=OptedInBy.CLUSTER if opt_in.value == "true" else asker)
    certain = (finding for finding in findings if finding.firm and not finding.unsure)
    firm_nodes = {finding.node for finding in certain if finding.use is ClaimUse.OWN}
    firm = [node_fit for node_fit in node_fits if node_fit.node in firm_nodes]
    if not firm:
        return evidence_for(node_fits[0].node, findings).why_not_required
    feasible = tuple(node_fit.node for node_fit in firm if node_fit.feasible)
    if not feasible:
        return firm[0].why
    whys = [*(finding.why for finding in findings), *(node_fit.why for node_fit in firm)]
    blocked = (
        why_never_required(cycle)
        or next((finding.why for finding in findings if finding.volume_nodes_unknown), None)
        # What was not read could be another node for the pod: less knowledge must not bind it to fewer.
        or next((why for why in whys if why.reason.columns.unread), None)
        or _why_other_scheduler(pod, opt_in)
        or replica_share.why_not_calm(cycle.snapshot)
    )
    if blocked:
        return blocked
    if staleness:
        return Reason.EVIDENCE_NOT_CONFIRMED.why(staleness=staleness)
    most = most_nodes(pod.spec.required_node_affinity, len(feasible))
    return feasible[:most] or Reason.TOO_MANY_TERMS.why(limit=MAX_TERMS)
