"""decide(): Steer | Leave | Needs, for one share-manager pod at its CREATE and one view of the cluster.

When a VM was stopped, its share-manager is made after it has a node again: then it is the share-manager pod that has
to follow. Invariants: one node is never required, for Longhorn never makes a Pending share-manager pod anew; a pod
whose volume no VM of ours uses is not touched; nothing here raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from webhook.core.api.longhorn import (
    LABEL_LONGHORN_COMPONENT,
    LABEL_LONGHORN_SHARE_MANAGER,
    SHARE_MANAGER,
    SHARE_MANAGER_POD_PREFIX,
)
from webhook.core.api.meta import NamespacedName
from webhook.core.api.node_selector import MAX_TERMS
from webhook.core.api.pod import Pod
from webhook.core.decision import Decision, Leave, NodeFit, Steer, evidence_for, rank, weigh
from webhook.core.evidence import consumers
from webhook.core.evidence.finding import Finding
from webhook.core.opt_in import Policy
from webhook.core.placement import feasibility, shortlist
from webhook.core.reasons import CHAIN_ORDER, Reason
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.view import ClusterView, NeedObjects

_NOT_KNOWN: Final = (Reason.NODE_LOOKUP_FAILED, Reason.PODS_UNKNOWN)
_TOWARD_MAX: Final = 8  # VMs on one volume; each is a term that the scheduler looks for on every node


def decide(pod: Pod, namespace: str, view: ClusterView, policy: Policy) -> Decision | NeedObjects:
    """What to do with a pod that is being created in `namespace`, or what must be read first. Never raises."""
    volume = volume_of(pod)
    if namespace != policy.longhorn_namespace or not volume:
        return Leave(why=Reason.NOT_SHARE_MANAGER.why(namespace=policy.longhorn_namespace))
    if pod.spec.node_name:
        return Leave(why=Reason.NODE_ALREADY_SET.why(node=pod.spec.node_name))
    findings = consumers.find_vms(volume, view, policy)
    if isinstance(findings, NeedObjects):
        return findings
    ranked = rank(finding.node for finding in findings if finding.node)
    if not ranked:
        furthest = max(findings, key=lambda finding: CHAIN_ORDER[finding.why.reason])
        ours = furthest.why.reason is Reason.CONSUMER_ON_NO_NODE
        return Leave(why=furthest.why, opted_in=ours, findings=findings)
    incoming = IncomingPod.of(pod, namespace)
    cycle = CycleState(incoming, view.snapshot())
    verdicts = feasibility.collect(evaluate_preference(node, cycle, view) for node in ranked)
    if isinstance(verdicts, NeedObjects):
        return verdicts
    wished = {verdict.node: ranked[verdict.node] for verdict in verdicts if verdict.preferable}
    if not wished:
        return Leave(why=verdicts[0].why, opted_in=True, findings=findings, node_fits=verdicts)
    fitting = [verdict.node for verdict in verdicts if verdict.fits]
    names, toward = _among(cycle, volume, fitting, findings, view) if len(fitting) == len(wished) else ((), ())
    return Steer(
        why=evidence_for(next(iter(wished)), findings).why,
        preferred=weigh(wished)[:MAX_TERMS],
        shortlist=names,
        toward=toward,
        usage=incoming.usage,
        findings=findings,
        node_fits=verdicts,
    )


def _among(
    cycle: CycleState, volume: str, fitting: Sequence[str], findings: Sequence[Finding], view: ClusterView
) -> tuple[tuple[str, ...], tuple[NamespacedName, ...]]:
    """The short list, and the VMs that the pod is drawn to as pods, too.

    PreferNoSchedule taints of the wished node count for more than nodeAffinity can give (TaintToleration has weight 3,
    NodeAffinity 2). Among nodes with as many they decide nothing; where there are too few of those the pods' affinity
    makes up for them. It costs the scheduler a look at every node, so it is not for every pod.
    """
    taints = shortlist.count_taints(fitting[0], cycle.incoming.pod, view)
    names = shortlist.pick(cycle, fitting, view, seed=volume, least_taints=taints)
    if names or not taints:
        return names, ()
    there = (finding.instance for finding in findings if finding.node in fitting and finding.instance)
    return shortlist.pick(cycle, fitting, view, seed=volume), tuple(dict.fromkeys(there))[:_TOWARD_MAX]


def volume_of(pod: Pod) -> str:
    """The Longhorn volume that a pod is the share-manager of; empty where it is none.

    Both the label and the name say it (longhorn-manager types.go, GetShareManagerLabels and
    GetShareManagerPodNameFromShareManagerName); the label is what the API server asks us by.
    """
    if pod.metadata.label(LABEL_LONGHORN_COMPONENT) != SHARE_MANAGER:
        return ""
    before, _, volume = (pod.metadata.name or "").partition(SHARE_MANAGER_POD_PREFIX)
    return pod.metadata.label(LABEL_LONGHORN_SHARE_MANAGER) or ("" if before else volume)


def evaluate_preference(node: str, cycle: CycleState, view: ClusterView) -> NodeFit | NeedObjects:
    """The verdict on a node. As for a VM, but what may not run there is not even preferred: the pod would be no nearer.

    Where the node could not be read, or what is on it is not known, it is: a wish that is not granted changes nothing.
    """
    verdict = feasibility.evaluate(node, cycle, view)
    if isinstance(verdict, NeedObjects) or verdict.why.reason in _NOT_KNOWN:
        return verdict
    if verdict.fits and shortlist.pod_prefers_against(node, cycle.incoming.pod, view):
        return NodeFit(node, Reason.NODE_DELINQUENT.why(node=node), preferable=False)
    return NodeFit(node, verdict.why, preferable=verdict.fits)
