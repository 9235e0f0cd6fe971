"""Which VMs are on the node of their share-manager: the VMStatus of each VM that asks for it, as things are now.

Metrics, `status`, the page and log lines show it. Nothing is decided here and nothing unknown is guessed: a VM has the
state UNKNOWN if its objects could not be read. Times are RFC 3339 as the API server writes them, and compare as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.core import refs
from webhook.core.api import kubevirt
from webhook.core.api.affinity import named_nodes
from webhook.core.api.kubevirt import LABEL_MIGRATION_JOB_UID
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import DEFAULT_SCHEDULER, UNSCHEDULABLE, Pod
from webhook.core.evidence import vm_facts
from webhook.core.evidence.finding import ClaimUse
from webhook.core.observe import remedy, why_apart
from webhook.core.observe.not_running import why_not_running
from webhook.core.observe.past_decision import Decided, PastDecision, past_decision
from webhook.core.observe.remedy import Remedy
from webhook.core.observe.vm_volumes import STARTING, VMVolumeStatus, bound_or_waiting_since, volumes_of
from webhook.core.observe.why_apart import Apart
from webhook.core.opt_in import Mode, OptedInBy, OptIn, Policy, opt_in_of
from webhook.core.reasons import CHAIN_ORDER, Reason, Why
from webhook.core.view import ClusterView, NoObject

_MESSAGE_CHARS: Final = 300  # of kube-scheduler's message, which counts nodes for each of its filters


class State(StrEnum):
    """Where a VM is, compared with its share-managers: the worst first. The codes are stable, as metric labels."""

    STUCK = "stuck"
    NOT_RUNNING = "not-running"
    APART = "apart"
    UNKNOWN = "unknown"
    PENDING = "pending"
    FREE = "free"
    TOGETHER = "together"

    @property
    def meaning(self) -> str:
        """What the state says of a VM, for the documents."""
        return _MEANINGS[self]


TROUBLED: Final = (State.STUCK, State.NOT_RUNNING, State.APART)
SEVERITY: Final = {state: rank for rank, state in enumerate(State)}
_AS_IF_ASKED: Final = OptIn(Mode.REQUIRED, "", OptedInBy.VM)
_MEANINGS: Final = {
    State.TOGETHER: "every share-manager that is on a node is on the VM's. Only disks of the VM's own count: no claim "
    "whose volume another VM, pod or PersistentVolume uses, no CD-ROM, and not KubeVirt's own claim (TPM, EFI)",
    State.APART: "the share-manager of one or more of the VM's own disks is on another node than the VM",
    State.STUCK: "the VM's pod may run only on nodes that its affinity names (the webhook's or its own), and "
    "kube-scheduler reports that it fits none",
    State.NOT_RUNNING: "the VM's pod has had a node for ten minutes or longer, and is still Pending: a container waits "
    "for a volume, an image or the kubelet",
    State.PENDING: "the VM, or a share-manager that Longhorn is creating, is not on a node yet",
    State.FREE: "the VM is on a node, and there is no pod of a share-manager that it could be with: none runs, "
    "whatever the ShareManager says, or its volumes need none",
    State.UNKNOWN: "an object that decides the state could not be read",
}


class VMStatus(Struct, frozen=True, kw_only=True, gc=False):
    """One VM that asks for co-scheduling, by the pod in which it runs or will run.

    Attributes:
        asked: the value that opts the VM in: true, required or preferred; `mode` is its meaning in this cluster.
        by: whose value that is: the VM's, its Namespace's or the cluster's.
        decided: what the webhook did when the pod was created.
        pinned: whether the webhook required nodes, or the pod waits for nodes that its affinity names: one node,
            which is `only`, or a short list.
        migrating: whether another pod of the VM is on a node, too.
        why: for a VM that is apart what made it so, else what shows the state.
        since: since when the VM is in this state, as far as the objects show it.
        held: why KubeVirt can move a VM that is apart nowhere; None if no reason is known.
        remedy: what the user can do about a VM that is apart, stuck or not running; None for another VM.
        said_by_reunite: what `reunite` last said of a VM that is apart; empty where that is not read.
        not_asked: why the VM does not ask; it is then shown as if it asked. None if it asks.
    """

    namespace: str
    name: str
    pod: str
    node: str | None
    asked: str
    mode: Mode
    decided: Decided
    pinned: bool
    only: str | None
    migrating: bool
    volumes: tuple[VMVolumeStatus, ...]
    state: State
    why: Why
    since: str | None
    held: Why | None = None
    remedy: Remedy | None = None
    said_by_reunite: str = ""
    by: OptedInBy = OptedInBy.VM
    not_asked: Why | None = None

    @property
    def share_manager_nodes(self) -> tuple[str, ...]:
        """The nodes of the share-managers that the VM's node is compared with, by name."""
        return tuple(sorted({volume.node for volume in self.volumes if volume.node and volume.together is not None}))


def vm_status_of(
    pods: Sequence[Pod], view: ClusterView, policy: Policy, at: str, *, even_unasked: bool = False
) -> VMStatus | None:
    """Return the status of the VM that these pods belong to; None if no pod runs it, or if it does not opt in.

    Args:
        pods: all pods of one VM.
        view: the cluster.
        policy: the settings of the webhook.
        at: the time for which the pods were read (RFC 3339).
        even_unasked: whether a VM that does not opt in has a status, too: as if it asked.
    """
    unfinished = [pod for pod in pods if not kubevirt.is_finished(pod)]
    if not unfinished:
        return None
    pod = vm_facts.running_pod(unfinished, unfinished[0].metadata.namespace or "", view)
    found = opt_in_of(pod, pod.metadata.namespace or "", view, policy)
    if not (even_unasked or isinstance(found, OptIn)):
        return None
    opt_in, not_asked = (found, None) if isinstance(found, OptIn) else (_AS_IF_ASKED, found)
    volumes = volumes_of(pod, view)
    named = frozenset() if pod.spec.node_name else named_nodes(pod.spec.required_node_affinity)
    past = past_decision(pod)
    pinned = past.decided is Decided.REQUIRED or bool(named)
    state, why, since = _state(pod, volumes, at, pinned=pinned)
    row = VMStatus(
        namespace=pod.metadata.namespace or "",
        name=kubevirt.vm_name(pod),
        pod=pod.metadata.name or "",
        node=pod.spec.node_name,
        asked=opt_in.value,
        by=opt_in.by,
        mode=opt_in.mode,
        decided=past.decided,
        pinned=pinned,
        only=min(named) if len(named) == 1 else None,
        migrating=any(each is not pod and _is_on_a_node(each) for each in unfinished),
        volumes=volumes,
        state=state,
        why=why,
        since=since,
        not_asked=not_asked,
    )
    return _with_remedy(row, pod, past, view)


def _with_remedy(row: VMStatus, pod: Pod, past: PastDecision, view: ClusterView) -> VMStatus:
    """Return the row of a VM that is apart with the cause, and of one in trouble with the remedy."""
    vm, node = NamespacedName(row.namespace, row.name), row.node or ""
    if row.state is State.STUCK:
        return replace(row, remedy=remedy.remedy_of_stuck(row.pod, vm, view))
    held = remedy.why_held(pod, view) if row.state in TROUBLED else None
    if row.state is State.NOT_RUNNING:
        mend = remedy.remedy_of_not_running(row.pod, vm, node, view)
        return replace(row, remedy=remedy.remedy_of_held(held, node) if held else mend)
    if row.state is not State.APART:
        return row
    volume = next(each for each in row.volumes if each.together is False)
    share_manager_pod = view.get(refs.share_manager_pod(volume.volume or ""))
    apart = Apart(
        node=pod.spec.node_name or "",
        since=bound_or_waiting_since(pod),
        past=past,
        migrated=pod.metadata.label(LABEL_MIGRATION_JOB_UID) is not None,
        volume=volume,
        steered=None if isinstance(share_manager_pod, NoObject) else past_decision(share_manager_pod),
        nodes=row.share_manager_nodes,
    )
    why = why_apart.why_apart(apart)
    if held:
        return replace(row, why=why, held=held, remedy=remedy.remedy_of_held(held, node))
    return replace(row, why=why, remedy=remedy.remedy_of_apart(why, pod, vm, apart, view))


def _is_on_a_node(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and not pod.metadata.deletion_timestamp


def _state(pod: Pod, volumes: Sequence[VMVolumeStatus], at: str, *, pinned: bool) -> tuple[State, Why, str | None]:
    pod_since = bound_or_waiting_since(pod)
    if not pod.spec.node_name:
        return (*_waiting(pod, pinned=pinned), pod_since)
    not_running = why_not_running(pod, at)
    if not_running:
        return State.NOT_RUNNING, not_running, pod_since
    apart = [volume for volume in volumes if volume.together is False]
    if apart:
        return State.APART, apart[0].why, min(_later(pod_since, volume.since) for volume in apart) or None
    own = [volume for volume in volumes if volume.use.is_own_disk]
    unread = [volume for volume in own if volume.unread]
    if unread:
        return State.UNKNOWN, unread[0].why, pod_since
    together = [volume for volume in volumes if volume.together]
    # A claim that is plugged in later says nothing of the disks with which the VM already runs.
    starting = [each for each in own if _is_starting(each) and not (together and each.use is ClaimUse.HOTPLUGGED)]
    if starting:
        return State.PENDING, starting[0].why, pod_since
    if together:
        return State.TOGETHER, together[0].why, max(_later(pod_since, volume.since) for volume in together) or None
    furthest = max(own or volumes, key=lambda volume: CHAIN_ORDER[volume.why.reason], default=None)
    return State.FREE, furthest.why if furthest else Reason.NO_CLAIMS.why(), pod_since


def _waiting(pod: Pod, *, pinned: bool) -> tuple[State, Why]:
    """Return the state of a VM that is on no node, by kube-scheduler's condition of its pod."""
    condition = pod.status.scheduled if pod.status else None
    name = pod.metadata.name
    if condition is None and pod.spec.scheduler_name not in (None, "", DEFAULT_SCHEDULER):
        return State.PENDING, Reason.VM_OTHER_SCHEDULER.why(pod=name, scheduler=pod.spec.scheduler_name)
    if condition is None or condition.reason != UNSCHEDULABLE:
        return State.PENDING, Reason.VM_NOT_SCHEDULED.why(pod=name)
    message = (condition.message or "no reason given")[:_MESSAGE_CHARS]
    if pinned:
        return State.STUCK, Reason.VM_STUCK.why(pod=name, message=message)
    return State.PENDING, Reason.VM_UNSCHEDULABLE.why(pod=name, message=message)


def _is_starting(volume: VMVolumeStatus) -> bool:
    """Whether the share-manager starts, and its node is not certain yet."""
    return volume.node is None and (volume.state == STARTING or volume.why.reason is Reason.SHARE_MANAGER_UNSCHEDULED)


def _later(one: str | None, other: str | None) -> str:
    return max(one or "", other or "")
