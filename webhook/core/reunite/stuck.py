"""Whether a stuck VM is restarted: `decide_restart` answers for one VM, and changes nothing.

A VM is stuck if kube-scheduler finds no node for its pod, and the pod may run only on nodes that the webhook required.
virt-controller never creates another pod for it. The deletion of that pod makes it start the VM again, and the webhook
decides for the new pod by what is there then (docs/decisions.md, 0015).
Invariants: a pod is deleted only if another node takes the pod as its user wrote it, and only if KubeVirt then starts
the VM again by itself. What is not known is no reason to delete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Final

from msgspec import Struct

from webhook.core.api.node_selector import named_nodes
from webhook.core.api.pod import Pod
from webhook.core.decision import NodeFit
from webhook.core.evidence import share_managers
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.live_migration.vm import VM
from webhook.core.observe.restart import restart_command, restart_without_owner
from webhook.core.patch.decision_patch import as_created
from webhook.core.placement import feasibility
from webhook.core.reasons import Reason
from webhook.core.reunite.history import unix_seconds
from webhook.core.reunite.not_yet import NotYet, Rule, why_not_asked
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.never_required import why_never_required
from webhook.core.scheduler.state.snapshot import SnapshotUnavailable
from webhook.core.view import ClusterView

STUCK_SECONDS: Final = 60.0  # for which kube-scheduler must have found no node
AGAIN_SECONDS: Final = 600.0  # between two deletions for one VM that has not run between them
_NODES_SHOWN: Final = 3  # as in the annotation of a decision
_PAUSED: Final = "Paused"
_STARTED_BY_KUBEVIRT: Final = ("Always", "RerunOnFailure")
"""With another runStrategy a VM whose pod is deleted stays Failed (kubevirt watch/vm/vm.go, syncRunStrategy)."""


class RestartVM(Struct, frozen=True, kw_only=True):
    """Delete this pod of the VM, because `node` would take it without the terms that the webhook wrote."""

    vm: VM
    pod: Pod
    node: str

    @property
    def sentence(self) -> str:
        """What is done, and why: the message of the Event."""
        nodes = sorted(named_nodes(self.pod.spec.required_node_affinity))
        more = f" and {len(nodes) - _NODES_SHOWN} more" if len(nodes) > _NODES_SHOWN else ""
        return (
            f"pod {self.vm.row.pod} waits since {_waits_since(self.pod)}: the webhook requires "
            f"{', '.join(nodes[:_NODES_SHOWN])}{more}, and kube-scheduler can't use that. Node {self.node} would take "
            "the pod. reunite deletes the pod, and KubeVirt starts the VM again"
        )


def decide_restart(vm: VM, pod: Pod, now: float, view: ClusterView, *, default_on: bool) -> RestartVM | NotYet:
    """Return that the VM is restarted, or the first rule that says no.

    Args:
        vm: the VM, which is stuck.
        pod: its pod, which waits on no node.
        now: seconds since 1970.
        view: the cluster, with all its pods.
        default_on: whether a VM without the annotation `kubevirt-scheduler/reunite` takes part.
    """
    free = as_created(pod)
    why = _why_not_the_vm(vm, default_on=default_on) or _why_not_the_pod(pod, free) or _why_not_now(vm, pod, now)
    return why or _decide_by_nodes(vm, pod, free, view)


def _why_not_the_vm(vm: VM, *, default_on: bool) -> NotYet | None:
    """Return why KubeVirt would not start the VM again, or why the VM takes no part."""
    not_asked = why_not_asked(vm.reunite, default_on=default_on)
    if not_asked:
        return not_asked
    if vm.owner is None:
        return Rule.NO_VIRTUAL_MACHINE.says_no(advice=restart_without_owner(vm.row.name))
    if vm.run_strategy not in _STARTED_BY_KUBEVIRT:
        command = restart_command(vm.owner, vm.row.namespace, vm.run_strategy)
        return Rule.RUN_STRATEGY.says_no(strategy=vm.run_strategy or "not known", command=command)
    return Rule.STARTS_PAUSED.says_no() if vm.start_strategy == _PAUSED else None


def _why_not_the_pod(pod: Pod, free: Pod) -> NotYet | None:
    """Return why the pod does not wait for the webhook's nodes. `free`: the pod without what the webhook wrote."""
    if pod.metadata.deletion_timestamp:
        return Rule.NOT_STUCK.says_no(pod=pod.metadata.name, because="it is being deleted")
    nominated = pod.status.nominated_node_name if pod.status else None
    if nominated:
        because = f"kube-scheduler makes room for it on node {nominated}"
        return Rule.NOT_STUCK.says_no(pod=pod.metadata.name, because=because)
    if free.spec.required_node_affinity == pod.spec.required_node_affinity:
        return Rule.NOT_OURS.says_no(pod=pod.metadata.name)
    return None


def _why_not_now(vm: VM, pod: Pod, now: float) -> NotYet | None:
    """Return what has to pass first.

    The condition's time is that of its last change of status. So the time in which a scheduling gate held the pod
    counts as well.
    """
    since = _waits_since(pod)
    if not since or now < unix_seconds(since) + STUCK_SECONDS:
        return Rule.STUCK_TOO_SOON.says_no(since=since or "an unknown time", seconds=int(STUCK_SECONDS))
    if vm.failed_starts and now < unix_seconds(vm.started) + AGAIN_SECONDS:
        return Rule.STARTED_AGAIN.says_no(failures=vm.failed_starts, at=vm.started, seconds=int(AGAIN_SECONDS))
    return None


def _waits_since(pod: Pod) -> str | None:
    condition = pod.status.scheduled if pod.status else None
    return condition.last_transition_time if condition else None


def _decide_by_nodes(vm: VM, pod: Pod, free: Pod, view: ClusterView) -> RestartVM | NotYet:
    """Ask the nodes of the cluster about the pod as its user wrote it. The pod that waits takes no room meanwhile."""
    findings = share_managers.find_share_managers(free, vm.row.namespace, view)
    snapshot = view.snapshot()
    if isinstance(snapshot, SnapshotUnavailable):
        return Rule.NOT_EVALUATED.says_no(because=snapshot.problem)
    with snapshot.without([pod]) if isinstance(snapshot, ListedSnapshot) else nullcontext():
        cycle = CycleState(free, vm.row.namespace, snapshot, share_managers.bound_volumes(findings))
        unknown = why_never_required(cycle)
        unknown = unknown or next((finding.why for finding in findings if finding.volume_nodes_unknown), None)
        if unknown:
            return Rule.NOT_EVALUATED.says_no(because=unknown.sentence)
        waits_for = named_nodes(pod.spec.required_node_affinity)
        own = next((fit.node for fit in _evaluate(sorted(waits_for), cycle, view) if fit.fits), None)
        if own:
            return Rule.OWN_NODE_FITS.says_no(node=own)
        others = [name for name in view.node_names() if name not in waits_for]
        first: NodeFit | None = None
        for fit in _evaluate(others, cycle, view):
            if fit.fits:
                return RestartVM(vm=vm, pod=pod, node=fit.node)
            first = first or fit
    return Rule.NO_OTHER_NODE.says_no(count=len(others), because=first.why.sentence if first else "none was read")


def _evaluate(names: Sequence[str], cycle: CycleState, view: ClusterView) -> Iterator[NodeFit]:
    """Yield the verdict on each node that the view has. Nothing is read for a node, as for a short list."""
    known = view.without_reads()
    verdicts = (feasibility.evaluate(name, cycle, known) for name in names)
    return (verdict for verdict in verdicts if verdict.why.reason is not Reason.NODE_LOOKUP_FAILED)
