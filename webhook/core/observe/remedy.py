"""What a user can do about a VM: one answer for `status`, `explain`, the page, the log and `reunite`.

Invariant: nothing is advised that is known not to work. What is not known is left to the reader: "if it can run there".

The webhook decides for a pod once, when the pod is created. A VM that is stuck or apart therefore needs a new pod.
Rules: kubevirt pkg/virt-api/rest/lifecycle.go (RestartVMRequestHandler refuses Once and Halted) and
pkg/virt-controller/watch/vm/vm.go (syncRunStrategy: Once starts a VM that has no VirtualMachineInstance). A VM with
Once can't be stopped and started: `virtctl stop` makes it Halted, and `virtctl start` then makes it Always.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from webhook.core import refs
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.api.virtual_machine import VirtualMachine, VMIStatus
from webhook.core.observe.node_problem import why_no_vm_starts
from webhook.core.observe.why_apart import Apart
from webhook.core.patch.decision_patch import as_created
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.plugins.node_affinity import why_labels_mismatch, why_terms_mismatch
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.view import ClusterView, NoObject

_HALTED: Final = "Halted"
_ONCE: Final = "Once"
_MOVE: Final = "reunite {vm} -n {namespace} -o yaml --now"
_MIGRATE: Final = "live-migrate the VM to node {node}, if it can run there"
_ASK: Final = "see that the webhook runs (kubectl get mutatingwebhookconfiguration kubevirt-coschedule), and "
_STOP: Final = (
    "stop the VM until Longhorn has stopped its share-managers, then start it: the webhook steers them to the VM's node"
)
_NO_MIGRATION: Final = "KubeVirt can't live-migrate the VM ({why}); {then}"
_NOT_THERE: Final = "the VM can't run on the node of its share-manager: {why}; {then}"
_WAIT: Final = "no VM can start on the node of its share-manager now: {why}. When that has ended, look again"
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
_OWNED: Final = "; {owner} owns the VirtualMachine, and can undo what you do to it"


class Remedy(Struct, frozen=True, gc=False):
    """What the user can do about a VM; this program prints how if it gets the `arguments`. They can be empty."""

    sentence: str
    arguments: str = ""


class _Known(Struct, frozen=True, kw_only=True):
    """What the VM's objects say: `vm` is its VirtualMachine, None if it certainly has none; `owner` what owns that."""

    vm: str | None
    owner: str = ""
    unmigratable: str = ""


def why_held(pod: Pod, view: ClusterView) -> Why | None:
    """Return why KubeVirt can move the VM of this pod nowhere; None if no reason is known."""
    name = pod.spec.node_name or ""
    node = view.get(refs.node(name))
    if not isinstance(node, NoObject) and not (node.status and node.status.ready):
        return Reason.VM_NODE_NOT_READY.why(node=name)
    if pod.metadata.deletion_timestamp:
        return Reason.VM_POD_TERMINATING.why(pod=pod.metadata.name)
    return None


def remedy_of_held(held: Why, node: str) -> Remedy:
    """Return what frees a VM on `node` that KubeVirt can move nowhere.

    The taint makes Kubernetes delete the pods of a node that was shut down, and detach their volumes
    (pkg/controller/podgc/gc_controller.go, gcTerminating). KubeVirt takes the VM for running until its pod is gone.
    """
    return Remedy(_FREE.format(held=held.sentence, node=node))


def remedy_of_apart(why: Why, pod: Pod, vm: NamespacedName, apart: Apart, view: ClusterView) -> Remedy:
    """Return what the user can do about a VM that is apart by this cause."""
    volume, home, known = apart.volume, apart.volume.node or "", _known(vm, view)
    owned = _OWNED.format(owner=known.owner) if known.owner else ""
    if apart.excluded and volume.confined:
        return Remedy(_CONFINED.format(claim=volume.claim, selector=volume.confined))
    if apart.excluded or why.reason is Reason.VM_SHARE_MANAGERS_SPREAD:
        return Remedy(_STOP + owned)
    rule, problem = _why_not_on(home, pod, view), why_no_vm_starts(home, view)
    if rule:
        return Remedy(_NOT_THERE.format(why=rule.sentence, then=_STOP) + owned)
    if problem and not problem.reason.columns.unread and view.node_names():
        return Remedy(_WAIT.format(why=problem.sentence))
    first = _ASK if why.reason is Reason.VM_WEBHOOK_NOT_ASKED else ""
    if known.unmigratable:
        restart = restart_command(known.vm, vm.namespace, None) if known.vm else restart_without_owner(vm.name)
        then = f"{first}restart it, and the webhook decides again: {restart}"
        return Remedy(_NO_MIGRATION.format(why=known.unmigratable, then=then) + owned)
    return Remedy(first + _MIGRATE.format(node=home), _MOVE.format(vm=vm.name, namespace=vm.namespace))


def remedy_of_stuck(pod: str, vm: NamespacedName, view: ClusterView) -> Remedy:
    """Return what the user can do about a VM that is stuck."""
    known = _known(vm, view)
    if known.vm is None:
        return Remedy(restart_without_owner(vm.name))
    owned = _OWNED.format(owner=known.owner) if known.owner else ""
    return Remedy(_STUCK.format(command=new_pod_command(pod, known.vm, vm.namespace)) + owned)


def remedy_of_not_running(pod: str, vm: NamespacedName, node: str, view: ClusterView) -> Remedy:
    """Return what the user can do about a VM whose pod has a node and does not run."""
    known = _known(vm, view)
    command = new_pod_command(pod, known.vm, vm.namespace) if known.vm else restart_without_owner(vm.name)
    template = f"template of {known.owner}, which owns the VM" if known.owner else "VM's template"
    return Remedy(_NOT_RUNNING.format(node=node, pod=pod, namespace=vm.namespace, template=template, command=command))


def _known(vm: NamespacedName, view: ClusterView) -> _Known:
    """Return what is known of the VM. An object that was not read says nothing."""
    vmi = view.get(refs.virtual_machine_instance(vm))
    name, unmigratable = vm.name, ""
    if not isinstance(vmi, NoObject):
        unmigratable = vmi.status.unmigratable if isinstance(vmi.status, VMIStatus) else ""
        if vmi.virtual_machine is None:
            return _Known(vm=None, unmigratable=unmigratable)
        name = vmi.virtual_machine
    found = view.get(refs.virtual_machine(NamespacedName(vm.namespace, name)))
    owner = "" if isinstance(found, NoObject) else owner_of(found)
    return _Known(vm=name, owner=owner, unmigratable=unmigratable)


def owner_of(vm: VirtualMachine) -> str:
    """Return what owns a VirtualMachine, as a VirtualMachinePool or an operator's object does; empty for nothing."""
    return next((f"{each.kind} {each.name}" for each in vm.metadata.owner_references or () if each.kind), "")


def _why_not_on(name: str, pod: Pod, view: ClusterView) -> Why | None:
    """Return which rule of the pod, as it was created, excludes this node; None if none is known to."""
    node = view.get(refs.node(name))
    if isinstance(node, NoObject):
        return None
    info, spec = NodeInfo(node), as_created(pod).spec
    return why_labels_mismatch(spec, info) or why_terms_mismatch(spec, info)


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


def new_pod_command(pod: str, name: str, namespace: str) -> str:
    """Return the command that gives a VM another pod in place of one that has never run.

    virt-controller sets the VMI of a pod that is deleted to Failed. Always and RerunOnFailure then make a new one.
    Manual waits for a start (StartVMRequestHandler). Once refuses it, and starts again if its VMI is deleted.
    """
    return (
        f"kubectl delete pod {pod} -n {namespace}; if the VM's runStrategy is Manual, also: virtctl start {name} "
        f"-n {namespace}; if it is Once, instead: kubectl delete virtualmachineinstance {name} -n {namespace}"
    )


def restart_without_owner(name: str) -> str:
    """Return the advice for a VirtualMachineInstance without a VirtualMachine, which KubeVirt never recreates."""
    return f"no VirtualMachine owns {name}, so its creator must stop and start it"
