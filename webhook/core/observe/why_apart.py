"""What made a VM apart from its share-manager, and what the user can do: one answer for `status`, page, list, explain.

Evidence only: the annotations of both pods, and since when both are on their nodes. Where these do not tell the cause,
the answer is VM_CAUSE_NOT_KNOWN with what is known. Times are RFC 3339 and compare as text.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from webhook.core import refs
from webhook.core.api.pod import Pod
from webhook.core.observe.past_decision import Decided, PastDecision
from webhook.core.observe.restart import new_pod_command
from webhook.core.observe.vm_volumes import VMVolumeStatus
from webhook.core.reasons import Reason, Why
from webhook.core.view import ClusterView, NoObject

_EXCLUDES: Final = frozenset(reason.code for reason in Reason if reason.columns.excludes)
_UNREADABLE: Final = "a reason that the annotation does not show"
_LIST: Final = "reunite {vm} -n {namespace} -o yaml --now"
_MIGRATE: Final = "live-migrate the VM to node {node}, if it can run there"
_ASK: Final = "see that the webhook runs (kubectl get mutatingwebhookconfiguration kubevirt-coschedule), and "
_STOP: Final = (
    "stop the VM until Longhorn has stopped its share-managers, then start it: the webhook steers them to the VM's node"
)
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
    "kubevirt-scheduler/co-schedule to false in the VM's template, and delete the pod: {command}"
)


class Remedy(Struct, frozen=True, gc=False):
    """What the user can do about a VM; this program prints how if it gets the `arguments`. They can be empty."""

    sentence: str
    arguments: str = ""


class Apart(Struct, frozen=True, kw_only=True):
    """What is known of a VM and of a share-manager on another node.

    Attributes:
        node: the VM's node.
        since: since when the VM's pod has it; None if that is not known.
        past: the webhook's decision for the VM's pod.
        migrated: whether a live migration created that pod.
        volume: the claim whose share-manager is on another node.
        steered: the webhook's decision for the share-manager's pod; None if there is no such pod.
        nodes: the nodes of all share-managers of the VM.
    """

    node: str
    since: str | None
    past: PastDecision
    migrated: bool
    volume: VMVolumeStatus
    steered: PastDecision | None
    nodes: tuple[str, ...]

    @property
    def times_known(self) -> bool:
        """Whether both pods show since when they have their node."""
        return bool(self.since and self.volume.since)

    @property
    def excluded(self) -> bool:
        """Whether the node of one of both pods excluded the other pod, whatever runs there, when that was created."""
        return any(past.reason in _EXCLUDES for past in (self.past, self.steered) if past)

    @property
    def share_manager_later(self) -> bool:
        """Whether the share-manager took its node after the VM took its own."""
        return bool(self.since and self.volume.since and self.volume.since > self.since)

    @property
    def share_manager_moved(self) -> bool:
        """Whether the share-manager was elsewhere when the VM's pod was created."""
        past = self.past
        if self.migrated and self.share_manager_later:
            return True  # a live migration has a running VM, and so a share-manager
        elsewhere = bool(past.nodes) and not past.more and self.volume.node not in past.nodes
        return elsewhere and (self.node in past.nodes or self.share_manager_later)


def why_held(pod: Pod, view: ClusterView) -> Why | None:
    """Return why KubeVirt can move the VM of this pod nowhere; None if no reason is known."""
    name = pod.spec.node_name or ""
    node = view.get(refs.node(name))
    if not isinstance(node, NoObject) and not (node.status and node.status.ready):
        return Reason.VM_NODE_NOT_READY.why(node=name)
    if pod.metadata.deletion_timestamp:
        return Reason.VM_POD_TERMINATING.why(pod=pod.metadata.name)
    return None


def why_apart(apart: Apart) -> Why:
    """Return what made the VM apart from this share-manager, or what is known if that does not tell."""
    past, node, volume = apart.past, apart.node, apart.volume
    here = {"claim": volume.claim, "other": volume.node, "node": node, "at": apart.since}
    if apart.share_manager_moved:
        since = f" at {volume.since}" if volume.since else ""
        return Reason.VM_SHARE_MANAGER_MOVED.why(**{**here, "since": since, "before": _before(apart)})
    if apart.share_manager_later and not past.nodes:
        steering = _steering(apart.steered, node)
        return Reason.VM_SHARE_MANAGER_LATER.why(**here, since=volume.since, steering=steering)
    if node in apart.nodes:
        return Reason.VM_SHARE_MANAGERS_SPREAD.why(nodes=" and ".join(apart.nodes))
    if apart.migrated and apart.times_known:
        return Reason.VM_LIVE_MIGRATED.why(**here)
    return _by_the_start(apart) or Reason.VM_CAUSE_NOT_KNOWN.why(facts=_facts(apart))


def _by_the_start(apart: Apart) -> Why | None:
    """Return why the decision at the VM's start has left the VM apart; None if it does not tell that."""
    past = apart.past
    if apart.migrated or (past.nodes and apart.volume.node not in past.nodes):
        return None
    if past.decided is Decided.PREFERRED and not past.more and apart.node not in past.nodes:
        return Reason.VM_PREFERRED.why(on=past.on, because=past.because or _UNREADABLE, node=apart.node)
    if past.decided is Decided.UNCHANGED and apart.times_known:
        return Reason.VM_LEFT_UNCHANGED.why(because=past.because or _UNREADABLE)
    if past.decided is Decided.NOTHING and apart.times_known:
        return Reason.VM_WEBHOOK_NOT_ASKED.why()
    return None


def remedy_of_apart(why: Why, vm: str, namespace: str, apart: Apart) -> Remedy:
    """Return what the user can do about a VM that is apart by this cause."""
    volume, node = apart.volume, apart.volume.node
    if apart.excluded and volume.confined:
        return Remedy(_CONFINED.format(claim=volume.claim, selector=volume.confined))
    if apart.excluded or why.reason is Reason.VM_SHARE_MANAGERS_SPREAD:
        return Remedy(_STOP)
    first = _ASK if why.reason is Reason.VM_WEBHOOK_NOT_ASKED else ""
    return Remedy(first + _MIGRATE.format(node=node), _LIST.format(vm=vm, namespace=namespace))


def remedy_of_held(held: Why, node: str) -> Remedy:
    """Return what frees a VM on `node` that KubeVirt can move nowhere.

    The taint makes Kubernetes delete the pods of a node that was shut down, and detach their volumes
    (pkg/controller/podgc/gc_controller.go, gcTerminating). KubeVirt takes the VM for running until its pod is gone.
    """
    return Remedy(_FREE.format(held=held.sentence, node=node))


def remedy_of_stuck(pod: str, vm: str, namespace: str) -> Remedy:
    """Return what the user can do about a VM that is stuck."""
    return Remedy(_STUCK.format(command=new_pod_command(pod, vm, namespace)))


def remedy_of_not_running(pod: str, vm: str, namespace: str, node: str) -> Remedy:
    """Return what the user can do about a VM whose pod has a node and does not run."""
    command = new_pod_command(pod, vm, namespace)
    return Remedy(_NOT_RUNNING.format(node=node, pod=pod, namespace=namespace, command=command))


def _before(apart: Apart) -> str:
    if not apart.past.nodes:
        return f"the VM was live-migrated to node {apart.node} at {apart.since}"
    return f"at the VM's start the webhook {_did(apart.past)}"


def _steering(steered: PastDecision | None, node: str) -> str:
    """Return what the webhook did with the share-manager's pod."""
    if steered is None or steered.decided is Decided.NOTHING:
        return "the API server did not call the webhook for the share-manager's pod, or got no answer"
    if node in steered.nodes:
        return f"for the share-manager's pod the webhook preferred {steered.on}, and kube-scheduler chose another node"
    return f"for the share-manager's pod the webhook {_did(steered)}"


def _did(past: PastDecision) -> str:
    if past.on:
        return f"{past.decided} {past.on}" + (f", because {past.because}" if past.because else "")
    if past.decided is Decided.UNCHANGED:
        return f"left the pod unchanged, because {past.because or _UNREADABLE}"
    return "was not asked"


def _facts(apart: Apart) -> str:
    volume, start = apart.volume, "live migration" if apart.migrated else "start"
    return (
        f"the VM is on node {apart.node} since {apart.since or 'an unknown time'}, the share-manager of claim "
        f"{volume.claim} on node {volume.node} since {volume.since or 'an unknown time'}, and at the VM's {start} "
        f"the webhook {_did(apart.past)}"
    )
