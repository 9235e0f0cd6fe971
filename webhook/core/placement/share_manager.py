"""steer_share_manager(): Steer | Leave for a share-manager pod at its CREATE and one view of the cluster.

Longhorn creates the share-manager pod of a stopped VM after the VM has a node again. The webhook then steers this pod
to the VM. If the VM's node can't take it, as in a drain, it follows the VM's other share-managers. They come to other
nodes before the VM does, and must not part. Rules 3 and 5 to 8 of webhook.core.admit. Invariants: no node is
required, because Longhorn never recreates a Pending share-manager pod; a pod stays unchanged if no VM that opts in uses
its volume; nothing here raises.
"""

from __future__ import annotations

from typing import Final

from webhook.core.api.longhorn import LABEL_LONGHORN_SHARE_MANAGER, is_share_manager
from webhook.core.api.meta import LABEL_VALUE_MAX_CHARS
from webhook.core.api.pod import Pod
from webhook.core.decision import Decision, Leave, NodeFit, Steer, evidence_for, rank, weigh
from webhook.core.evidence import consumers
from webhook.core.opt_in import Policy
from webhook.core.placement import feasibility, longhorn_node, shortlist
from webhook.core.reasons import CHAIN_ORDER, Reason, Why
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.view import ClusterView

_NODES_MAX: Final = 8  # of one volume; kube-scheduler compares a pod affinity term for each with every pod


def why_not_share_manager(pod: Pod, namespace: str, view: ClusterView) -> Why | None:
    """Rule 2: return why the entry is not for this pod, None if it is a share-manager pod of Longhorn."""
    if namespace != view.longhorn_namespace or not volume_of(pod):
        return Reason.NOT_SHARE_MANAGER.why(namespace=view.longhorn_namespace)
    return None


def steer_share_manager(pod: Pod, namespace: str, view: ClusterView, policy: Policy) -> Decision:
    """Decide for a pod that is being created in `namespace`. Never raises.

    While an object is missing, nothing is asked that depends on it.
    """
    volume = volume_of(pod)
    if pod.spec.node_name:
        return Leave(why=Reason.NODE_ALREADY_SET.why(node=pod.spec.node_name))
    findings = consumers.find_vms(volume, view, policy)
    ranked = rank(finding.node for finding in findings if finding.node)
    if view.missing or not ranked:
        furthest = max(findings, key=lambda finding: CHAIN_ORDER[finding.why.reason])
        opted_in = furthest.why.reason is Reason.CONSUMER_ON_NO_NODE
        return Leave(why=furthest.why, opted_in=opted_in, findings=findings)
    cycle = CycleState(pod, namespace, view.snapshot())
    node_fits = [share_manager_fit(node, cycle, view) for node in ranked]
    if not view.missing and not any(node_fit.preferable for node_fit in node_fits):
        beside = consumers.find_share_managers_beside(findings, view)
        if view.missing:
            beside = []
        others = rank(finding.node for finding in beside if finding.node and finding.node not in ranked)
        fits_beside = [share_manager_fit(node, cycle, view) for node in others]
        findings, ranked, node_fits = [*findings, *beside], {**ranked, **others}, [*node_fits, *fits_beside]
    preferable = {node_fit.node: ranked[node_fit.node] for node_fit in node_fits if node_fit.preferable}
    if not preferable:
        return Leave(why=node_fits[0].why, opted_in=True, findings=findings, node_fits=node_fits)
    fitting = [node_fit.node for node_fit in node_fits if node_fit.fits]

    preferred = weigh(preferable)[:_NODES_MAX]
    near = tuple(each for each in preferred if len(each.node) <= LABEL_VALUE_MAX_CHARS)
    # Where volumes of its own can be used is not evaluated: Longhorn gives it none, but another webhook can.
    has_claims = any(each.persistent_volume_claim or each.ephemeral for each in pod.spec.volumes or ())
    listed = policy.shortlist and not has_claims and len(fitting) == len(preferable)
    taints = shortlist.count_taints(next(iter(preferable)), pod, view)
    names = shortlist.pick(cycle, fitting, view, seed=volume, least_taints=taints) if listed else ()
    # Beside a node that has fewer PreferNoSchedule taints they outweigh a preferred pod affinity (TaintToleration has
    # weight 3, InterPodAffinity and NodeAffinity 2), and not both affinities together. In a list they decide nothing.
    is_outweighed = bool(taints) and not names
    seen = all(longhorn_node.is_instance_manager_seen(each.node, namespace, cycle.snapshot) for each in near)
    return Steer(
        why=evidence_for(next(iter(preferable)), findings).why,
        preferred=preferred,
        shortlist=names,
        near=near,
        by_node=is_outweighed or near != preferred or not seen,
        requests=cycle.usage,
        findings=findings,
        node_fits=node_fits,
    )


def volume_of(pod: Pod) -> str:
    """Return the Longhorn volume that the pod is the share-manager of; empty if it is not a share-manager pod.

    Upstream: longhorn-manager types.go, GetShareManagerLabels. The webhook configuration selects the pods by a label.
    """
    return (is_share_manager(pod.metadata) and pod.metadata.label(LABEL_LONGHORN_SHARE_MANAGER)) or ""


def share_manager_fit(node: str, cycle: CycleState, view: ClusterView) -> NodeFit:
    """Rule 7 for a share-manager pod. Unlike a VM's pod it does not even prefer a node that it can't run on.

    A node that could not be read, or whose pods are not known, is still preferred: such a preference does no harm.
    """
    node_fit = feasibility.evaluate(node, cycle, view)
    if node_fit.why.reason.columns.unread:
        return node_fit
    if node_fit.fits and shortlist.pod_prefers_against(node, cycle.pod, view):
        return NodeFit(node, Reason.NODE_DELINQUENT.why(node=node), preferable=False)
    return NodeFit(node, node_fit.why, preferable=node_fit.fits)
