"""place_migration_target(): Pin | Leave for the target pod of a live migration at its CREATE.

A VM that must leave its node anyway comes to the node of its share-managers, if nobody chose another node. The API
server sends these pods only with manifests/components/homecoming. The rules 2 to 8 of webhook.core.admit, cheapest
first. Invariants: no node is ever required, so that a migration can end wherever it could end without the webhook;
nothing here raises.
"""

from __future__ import annotations

from collections.abc import Sequence

from webhook.core import refs
from webhook.core.api import kubevirt
from webhook.core.api.kubevirt import ANNOTATION_MIGRATION, HOSTNAME, LABEL_NODE_NAME, placing_node_selector
from webhook.core.api.meta import NamespacedName
from webhook.core.api.node_selector import MAX_TERMS
from webhook.core.api.pod import Pod
from webhook.core.decision import Decision, Leave, Pin, evidence_for, weigh
from webhook.core.evidence import share_managers
from webhook.core.evidence.finding import Finding
from webhook.core.opt_in import Policy, opt_in_of_new
from webhook.core.placement import feasibility
from webhook.core.placement.virt_launcher import no_share_manager, rank_share_managers, with_opted_in_by
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.view import ClusterView, NoObject


def place_migration_target(pod: Pod, namespace: str, view: ClusterView, policy: Policy) -> Decision:
    """Decide for a pod that is being created in `namespace`. Never raises."""
    opt_in = opt_in_of_new(pod, namespace, view, policy, migrates=True)
    if isinstance(opt_in, Why):
        return Leave(why=opt_in)
    return with_opted_in_by(_place(pod, namespace, view), opt_in)


def _place(pod: Pod, namespace: str, view: ClusterView) -> Decision:
    """Rules 3 and 5 to 8 for a target that is opted in.

    While an object is missing, nothing is asked that depends on it.
    """
    # KubeVirt merges spec.addedNodeSelector of the migration into it (migration.go, createTargetPod).
    hostname = (pod.spec.node_selector or {}).get(HOSTNAME)
    if hostname is not None:
        return Leave(why=Reason.TARGET_NAMED.why(label=f"{HOSTNAME}={hostname}"), opted_in=True)
    source = pod.metadata.label(LABEL_NODE_NAME)
    if not source:
        return Leave(why=Reason.SOURCE_UNKNOWN.why(), opted_in=True)
    findings = share_managers.find_share_managers(pod, namespace, view)
    ranked = rank_share_managers(findings)
    if view.missing or not ranked:
        return no_share_manager(findings)
    homes = {node: count for node, count in ranked.items() if node != source}
    if not homes:
        claim = evidence_for(source, findings).claim
        return Leave(why=Reason.SHARE_MANAGER_AT_SOURCE.why(claim=claim, node=source), opted_in=True, findings=findings)
    why = _why_stay_away(pod, namespace, source, findings, view)
    if why:
        return Leave(why=why, opted_in=True, findings=findings)
    return _prefer(pod, namespace, homes, findings, view)


def _prefer(
    pod: Pod, namespace: str, homes: dict[str, int], findings: Sequence[Finding], view: ClusterView
) -> Decision:
    """Rules 7 and 8: prefer each of these nodes on which Longhorn can attach the pod's volumes.

    There is no short list, because a short list is a hard requirement.
    """
    cycle = CycleState(pod, namespace, view.snapshot(), share_managers.bound_volumes(findings))
    node_fits = [feasibility.evaluate(node, cycle, view) for node in homes]
    preferable = [node_fit for node_fit in node_fits if node_fit.preferable]
    if not preferable:
        return Leave(why=node_fits[0].why, opted_in=True, findings=findings, node_fits=node_fits)
    return Pin(
        why=Reason.MIGRATION_TARGET_NOT_REQUIRED.why() if preferable[0].fits else preferable[0].why,
        preferred=weigh({node_fit.node: homes[node_fit.node] for node_fit in preferable})[:MAX_TERMS],
        requests=cycle.usage,
        findings=findings,
        node_fits=node_fits,
    )


def _why_stay_away(pod: Pod, namespace: str, source: str, findings: Sequence[Finding], view: ClusterView) -> Why | None:
    """Return who wants the VM away from its share-managers, or why that is not known; None if nobody chose its node.

    A migration that named its target by addedNodeSelector left these labels in the node selector of the pod that it
    created. KubeVirt renders the next target without them.
    """
    running = _source_pod(pod, namespace, source, findings, view)
    if not isinstance(running, Pod):
        return running
    wanted = pod.spec.node_selector or {}
    by_user = placing_node_selector(running.spec.node_selector, running.metadata.annotation(ANNOTATION_MIGRATION))
    label = next((f"{key}={value}" for key, value in sorted(by_user.items()) if wanted.get(key) != value), None)
    return Reason.SOURCE_NODE_CHOSEN.why(node=source, pod=running.metadata.name, label=label) if label else None


def _source_pod(pod: Pod, namespace: str, source: str, findings: Sequence[Finding], view: ClusterView) -> Pod | Why:
    """Return the pod in which the VM runs now: from the cache of pods, else as the API server has it."""
    claims = (view.virt_launchers(NamespacedName(namespace, finding.claim)) for finding in findings)
    cached = (each for pods in claims if not isinstance(pods, NoObject) for each in pods)
    found = next((each for each in cached if _is_source(each, pod, source)), None)
    if found:
        return found
    ref = refs.virt_launchers_on(namespace, source)
    pods = view.get(ref)
    if pods is NoObject.UNAVAILABLE:
        return Reason.SOURCE_POD_UNREAD.why(node=source, problem=view.read_error(ref))
    listed = () if isinstance(pods, NoObject) else pods
    found = next((each for each in listed if _is_source(each, pod, source)), None)
    return found or Reason.SOURCE_POD_NOT_FOUND.why(node=source, vm=kubevirt.vm_name(pod))


def _is_source(each: Pod, target: Pod, source: str) -> bool:
    """Whether a pod of the target's VirtualMachineInstance is on the source node and has not ended."""
    vmi, owner = kubevirt.owner(target), kubevirt.owner(each)
    is_of_vm = bool(vmi and vmi.uid and owner and owner.name and owner.uid == vmi.uid)
    return is_of_vm and each.spec.node_name == source and not kubevirt.is_finished(each)
