"""What a user can do about a VM: one answer for `status`, `explain`, the page, the log and `reunite`.

Invariant: nothing is advised that is known not to work. What is not known is left to the reader: "if it can run there".

The webhook decides for a pod once, when the pod is created. A VM that is stuck or apart therefore needs a new pod.
Rules: kubevirt pkg/virt-api/rest/lifecycle.go (RestartVMRequestHandler refuses Once and Halted) and
pkg/virt-controller/watch/vm/vm.go (syncRunStrategy: Once starts a VM that has no VirtualMachineInstance). A VM with
Once can't be stopped and started: `virtctl stop` makes it Halted, and `virtctl start` then makes it Always.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.core import refs
from webhook.core.api.kubevirt import start_node_selector
from webhook.core.api.longhorn import Need
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.api.virtual_machine import VirtualMachine
from webhook.core.observe.past_decision import PastDecision, past_decision
from webhook.core.observe.vm_status import TROUBLED, State, VMStatus
from webhook.core.observe.vm_volumes import Apart, bound_or_waiting_since, why_apart
from webhook.core.patch.decision_patch import as_created
from webhook.core.placement import feasibility, longhorn_node
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cache import NodeInfo
from webhook.core.scheduler.node_rules import why_labels_mismatch, why_terms_mismatch
from webhook.core.view import ClusterView, NoObject

_HALTED: Final = "Halted"
_ONCE: Final = "Once"
_MOVE: Final = "reunite {vm} -n {namespace} -o yaml --now"
_MIGRATE: Final = "live-migrate the VM to node {node}, if it can run there"
_NOT_YET: Final = "do not live-migrate the VM to node {node} before the reason that `reunite` gives has passed"
REFUSED: Final = ("NotMovable", "NotPlaceable", "KubeVirtTooOld", "KubeVirtChanges")
"""The codes of what `reunite --now` refuses, too (webhook.reunite.waits)."""
_IMPOSSIBLE: Final = re.compile(rf"(at \S+: )?({'|'.join(REFUSED)}): ")
_ASK: Final = "see that the webhook runs (kubectl get mutatingwebhookconfiguration kubevirt-coschedule), and "
_STOP: Final = (
    "stop the VM until Longhorn has stopped its share-managers, then start it: the webhook steers them to the VM's node"
)
_NO_MIGRATION: Final = "KubeVirt can't live-migrate the VM ({why}); {then}"
_NOT_THERE: Final = "the VM can't run on the node of its share-manager: {why}; {then}"
_WAIT: Final = "no VM can start on the node of its share-manager now: {why}. When that has ended, look again"
# The taint makes Kubernetes delete the pods of a node that was shut down, and detach their volumes
# (pkg/controller/podgc/gc_controller.go, gcTerminating). KubeVirt takes the VM for running until its pod is gone.
_FREE: Final = (
    "{held}. If the machine of node {node} is certainly off, free the VM: kubectl taint nodes {node} "
    "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
)
_CONFINED: Final = (
    "let the VM run where its StorageClass keeps share-managers, or change the class of claim {claim}: "
    "shareManagerNodeSelector is {selector}, and a restart or a migration changes nothing"
)
_STUCK: Final = "delete the pod, because the webhook decides again for a new one: {command}"
_NOT_RUNNING: Final = (
    "read what node {node} waits for: kubectl describe pod {pod} -n {namespace}. If the node can't be repaired, set "
    "kubevirt-scheduler/co-schedule to false in the {template}, and delete the pod: {command}"
)


class _Known(Struct, frozen=True, kw_only=True):
    """What the VM's objects say: `vm` is its VirtualMachine, None if it certainly has none; `owner` what owns that."""

    vm: str | None
    owner: str = ""
    unmigratable: str = ""

    @property
    def owned(self) -> str:
        """What a remedy of the VirtualMachine adds."""
        return f"; {self.owner} owns the VirtualMachine, and can undo what you do to it" if self.owner else ""


def with_remedy(row: VMStatus, pod: Pod, past: PastDecision, view: ClusterView) -> VMStatus:
    """Return the row of a VM that is apart with the cause, and of one in trouble with the remedy.

    Args:
        row: where the VM is.
        pod: the one in which it runs or will run.
        past: the webhook's decision for this pod.
        view: the cluster.
    """
    if row.state not in TROUBLED:
        return row
    known = _known(NamespacedName(row.namespace, row.name), view)
    if row.state is State.STUCK:
        return replace(row, remedy=_of_stuck(row, known))
    held = _why_held(pod, view)
    freed = _FREE.format(held=held.sentence, node=row.node) if held else ""
    if row.state is State.NOT_RUNNING:
        return replace(row, remedy=freed or _of_not_running(row, known))
    volume = next(each for each in row.volumes if each.together is False)
    serving = view.get(refs.share_manager_pod(volume.volume or ""))
    apart = Apart(
        node=row.node or "",
        since=bound_or_waiting_since(pod),
        past=past,
        volume=volume,
        steered=None if isinstance(serving, NoObject) else past_decision(serving),
        nodes=row.share_manager_nodes,
    )
    why = why_apart(apart, asks_itself=row.asked_by == "vm")
    remedy, command = (freed, "") if held else _of_apart(row, apart, why, pod, known, view)
    return replace(row, reason=why.reason.code, because=why.sentence, held=bool(held), remedy=remedy, command=command)


def with_message(row: VMStatus, message: str) -> VMStatus:
    """Return the row with what `reunite` last said of the VM, if it is apart.

    What `reunite` has found to be impossible is no longer advised.
    """
    if row.state is not State.APART or not message:
        return row
    remedy, home = row.remedy, row.share_manager_nodes[0]
    if row.command and _IMPOSSIBLE.match(message):
        remedy = remedy.replace(_MIGRATE.format(node=home), _NOT_YET.format(node=home))
    return replace(row, reunite=message, remedy=remedy)


def _of_apart(row: VMStatus, apart: Apart, why: Why, pod: Pod, known: _Known, view: ClusterView) -> tuple[str, str]:  # noqa: PLR0913, PLR0917 - all that is known
    """Return the remedy of a VM that is apart, and its command."""
    volume, home = apart.volume, apart.volume.node or ""
    if apart.excluded and volume.confined:
        return _CONFINED.format(claim=volume.claim, selector=volume.confined), ""
    if apart.excluded or len(apart.nodes) > 1:
        return _STOP + known.owned, ""
    rule, problem = _why_excluded(home, pod, view), why_no_vm_starts(home, view)
    if rule:
        return _NOT_THERE.format(why=rule.sentence, then=_STOP) + known.owned, ""
    if problem and not problem.reason.columns.unread and view.node_names():
        return _WAIT.format(why=problem.sentence), ""
    first = _ASK if why.reason is Reason.VM_WEBHOOK_NOT_ASKED else ""
    if known.unmigratable:
        restart = restart_command(known.vm, row.namespace, None) if known.vm else restart_without_owner(row.name)
        then = f"{first}restart it, and the webhook decides again: {restart}"
        return _NO_MIGRATION.format(why=known.unmigratable, then=then) + known.owned, ""
    return first + _MIGRATE.format(node=home), _MOVE.format(vm=row.name, namespace=row.namespace)


def _of_stuck(row: VMStatus, known: _Known) -> str:
    if known.vm is None:
        return restart_without_owner(row.name)
    return _STUCK.format(command=_new_pod(row, known)) + known.owned


def _of_not_running(row: VMStatus, known: _Known) -> str:
    template = f"template of {known.owner}, which owns the VM" if known.owner else "VM's template"
    names = {"node": row.node, "pod": row.pod, "namespace": row.namespace, "template": template}
    return _NOT_RUNNING.format(command=_new_pod(row, known), **names)


def _known(vm: NamespacedName, view: ClusterView) -> _Known:
    """Return what is known of the VM. An object that was not read says nothing."""
    vmi = view.get(refs.virtual_machine_instance(vm))
    name, unmigratable = vm.name, ""
    if not isinstance(vmi, NoObject):
        unmigratable = vmi.status.unmigratable if vmi.status else ""
        if vmi.virtual_machine is None:
            return _Known(vm=None, unmigratable=unmigratable)
        name = vmi.virtual_machine
    found = view.get(refs.virtual_machine(NamespacedName(vm.namespace, name)))
    owner = "" if isinstance(found, NoObject) else owner_of(found)
    return _Known(vm=name, owner=owner, unmigratable=unmigratable)


def owner_of(vm: VirtualMachine) -> str:
    """Return what owns a VirtualMachine, as a VirtualMachinePool or an operator's object does; empty for nothing."""
    return next((f"{each.kind} {each.name}" for each in vm.metadata.owner_references or () if each.kind), "")


def restart_command(name: str, namespace: str, strategy: str | None) -> str:
    """Return the command that restarts a VirtualMachine; for a `strategy` of None a text for all strategies.

    If the runStrategy is Halted, KubeVirt is stopping the VM already.
    """
    restart = f"virtctl restart {name} -n {namespace}"
    delete = f"kubectl delete virtualmachineinstance {name} -n {namespace}"
    if strategy is None:
        return f"{restart}; if the VM's runStrategy is Once: {delete}"
    if strategy == _ONCE:
        return f"{delete}; the VM's runStrategy is Once: KubeVirt refuses a restart, and recreates what is deleted"
    if strategy == _HALTED:
        return f"virtctl start {name} -n {namespace}, once KubeVirt has stopped it: the VM's runStrategy is Halted"
    return restart


def _new_pod(row: VMStatus, known: _Known) -> str:
    """Return the command that gives a VM another pod in place of one that has never run.

    virt-controller sets the VMI of a pod that is deleted to Failed. Always and RerunOnFailure then make a new one.
    Manual waits for a start (StartVMRequestHandler). Once refuses it, and starts again if its VMI is deleted.
    """
    if known.vm is None:
        return restart_without_owner(row.name)
    return (
        f"kubectl delete pod {row.pod} -n {row.namespace}; if the VM's runStrategy is Manual, also: virtctl start "
        f"{known.vm} -n {row.namespace}; if it is Once, instead: kubectl delete virtualmachineinstance {known.vm} "
        f"-n {row.namespace}"
    )


def restart_without_owner(name: str) -> str:
    """Return the advice for a VirtualMachineInstance without a VirtualMachine, which KubeVirt never recreates."""
    return f"no VirtualMachine owns {name}, so its creator must stop and start it"


def why_no_vm_starts(name: str, view: ClusterView) -> Why | None:
    """Return why no VM can start on this node; None if nothing about the node forbids a start.

    A node that passes can still reject a VM: resources, taints and affinity belong to the VM. Nothing unknown counts as
    a problem, and nothing unknown counts as none: a node that was not read has a reason.
    """
    ref, longhorn_ref = refs.node(name), refs.longhorn_node(name)
    node, longhorn = view.get(ref), view.get(longhorn_ref) if view.has_longhorn_nodes() else None
    if node is NoObject.NOT_FOUND:
        return Reason.NODE_NOT_FOUND.why(node=name)
    if isinstance(node, NoObject):
        return Reason.NODE_LOOKUP_FAILED.why(node=name, kind=ref.kind, problem=view.read_error(ref))
    if unhealthy := feasibility.why_unhealthy(node):
        return unhealthy
    if longhorn is NoObject.UNAVAILABLE:
        return Reason.NODE_LOOKUP_FAILED.why(node=name, kind=longhorn_ref.kind, problem=view.read_error(longhorn_ref))
    lacks = [lack for lack in longhorn_node.lacks_known(longhorn) if lack.need is Need.NFS_CLIENT]
    return longhorn_node.why_not_ready(name, longhorn) or longhorn_node.why_lacking(name, lacks, view)


def _why_excluded(name: str, pod: Pod, view: ClusterView) -> Why | None:
    """Return which rule of the pod, as it was created, excludes this node; None if none is known to."""
    node = view.get(refs.node(name))
    if isinstance(node, NoObject):
        return None
    info, spec = NodeInfo(node), replace(as_created(pod).spec, node_selector=start_node_selector(pod))
    return why_labels_mismatch(spec, info) or why_terms_mismatch(spec, info)


def _why_held(pod: Pod, view: ClusterView) -> Why | None:
    """Return why KubeVirt can move the VM of this pod nowhere; None if no reason is known."""
    name = pod.spec.node_name or ""
    node = view.get(refs.node(name))
    if not isinstance(node, NoObject) and not (node.status and node.status.ready):
        return Reason.VM_NODE_NOT_READY.why(node=name)
    if pod.metadata.deletion_timestamp:
        return Reason.VM_POD_TERMINATING.why(pod=pod.metadata.name)
    return None
