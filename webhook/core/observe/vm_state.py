"""A VM's pods -> its VMStatus, as things are now; without a pod, what its objects state of the next one.

Nothing is decided here and nothing unknown is guessed: a VM has the state UNKNOWN if its objects could not be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from msgspec.structs import replace

from webhook.core import refs
from webhook.core.api import kubevirt
from webhook.core.api.affinity import named_nodes
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import DEFAULT_SCHEDULER, UNSCHEDULABLE, Pod
from webhook.core.evidence import facts
from webhook.core.evidence.facts import ClaimUse
from webhook.core.observe.past_decision import Decided, past_decision
from webhook.core.observe.remedy import with_remedy
from webhook.core.observe.vm_status import STOPPED, State, VMStatus
from webhook.core.observe.vm_volumes import STARTING, VMVolumeStatus, bound_or_waiting_since, volumes_of
from webhook.core.opt_in import OptIn, Policy, asked_value, label_of, opt_in_of
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, CHAIN_ORDER, Reason, Why
from webhook.core.view import ClusterView, NoObject

_MESSAGE_CHARS: Final = 300  # of kube-scheduler's message, which counts nodes for each of its filters
_PENDING: Final = "Pending"
_LONG: Final = timedelta(minutes=10)  # a large image on a slow network needs minutes
_NO_CONTAINER: Final = "the kubelet reports no container that waits"
_ORDER: Final = {reason.code: rank for reason, rank in CHAIN_ORDER.items()}
_Found = tuple[State, str, str, str | None]  # the state, with its reason as code and sentence, and since when


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
    pod = facts.running_pod(unfinished, unfinished[0].metadata.namespace or "", view)
    row = without_pod(pod, view, policy)
    if row.not_asked and not even_unasked:
        return None
    named = frozenset() if pod.spec.node_name else named_nodes(pod.spec.required_node_affinity)
    past = past_decision(pod)
    pinned = past.decided is Decided.REQUIRED or bool(named)
    others = [each for each in unfinished if each is not pod and each.spec.node_name]
    migrating = any(not each.metadata.deletion_timestamp for each in others)
    guessed = facts.why_pod_not_known(pod, row.namespace, view) if others else None
    if guessed:
        state, reason, because, since = State.UNKNOWN, guessed.reason.code, guessed.sentence, None
    else:
        state, reason, because, since = _state(pod, row.volumes, at, pinned=pinned)
    row = replace(
        row,
        pod=pod.metadata.name or "",
        node=pod.spec.node_name,
        decided=past.decided,
        pinned=pinned,
        only_node=min(named) if len(named) == 1 else None,
        migrating=migrating,
        state=state,
        reason=reason,
        because=because,
        since=since,
    )
    return with_remedy(row, pod, past, view)


def without_pod(
    stated: Pod, view: ClusterView, policy: Policy, state: State | Literal["stopped"] = STOPPED
) -> VMStatus:
    """Return the status of a VM of which no pod was found. `stated`: what its objects state of the next one."""
    namespace, meta = stated.metadata.namespace or "", stated.metadata
    opt_in = opt_in_of(stated, namespace, view, policy)
    annotation = meta.annotation(ANNOTATION_CO_SCHEDULE)
    label = label_of(view.get(refs.namespace(namespace))) if annotation is None else None
    asked, by = asked_value(annotation, label, policy)
    name = kubevirt.vm_name(stated)
    vmi = view.get(refs.virtual_machine_instance(NamespacedName(namespace, name)))
    return VMStatus(
        namespace=namespace,
        name=name,
        kind="vm" if isinstance(vmi, NoObject) or vmi.virtual_machine else "vmi",
        state=state,
        asked=asked or "",
        asked_by=by.name.lower() if asked else "",
        mode=opt_in.mode if isinstance(opt_in, OptIn) else None,
        not_asked="" if isinstance(opt_in, OptIn) else str(opt_in),
        volumes=volumes_of(stated, view),
    )


def _state(pod: Pod, volumes: Sequence[VMVolumeStatus], at: str, *, pinned: bool) -> _Found:
    pod_since = bound_or_waiting_since(pod)
    not_running = _why_not_running(pod, at)
    if not pod.spec.node_name or not_running:
        state, why = (State.NOT_RUNNING, not_running) if not_running else _waiting(pod, pinned=pinned)
        return state, why.reason.code, why.sentence, pod_since
    apart = [volume for volume in volumes if volume.together is False]
    if apart:
        return _by(State.APART, apart[0], min(_later(pod_since, volume.since) for volume in apart) or None)
    own = [volume for volume in volumes if volume.is_own_disk]
    unread = [volume for volume in own if volume.unread]
    if unread:
        return _by(State.UNKNOWN, unread[0], pod_since)
    together = [volume for volume in volumes if volume.together]
    # A claim that is plugged in later says nothing of the disks with which the VM already runs.
    plugged = ClaimUse.HOTPLUGGED.name.lower()
    starting = [each for each in own if _is_starting(each) and not (together and each.use == plugged)]
    if starting:
        return _by(State.PENDING, starting[0], pod_since)
    if together:
        return _by(State.TOGETHER, together[0], max(_later(pod_since, volume.since) for volume in together) or None)
    furthest = max(own or volumes, key=lambda volume: _ORDER[volume.reason], default=None)
    if furthest:
        return _by(State.FREE, furthest, pod_since)
    return State.FREE, Reason.NO_CLAIMS.code, Reason.NO_CLAIMS.why().sentence, pod_since


def _by(state: State, volume: VMVolumeStatus, since: str | None) -> _Found:
    return state, volume.reason, volume.because, since


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
    unscheduled = volume.reason == Reason.SHARE_MANAGER_UNSCHEDULED.code
    return volume.node is None and (volume.share_manager == STARTING or unscheduled)


def _later(one: str | None, other: str | None) -> str:
    return max(one or "", other or "")


def _why_not_running(pod: Pod, at: str) -> Why | None:
    """Return why a pod that has a node counts as not running at this time (RFC 3339); None if it does not count.

    A pod is Pending until each of its containers has started once (kubernetes pkg/kubelet/kubelet_pods.go, getPhase).
    A pod whose status has no phase, or not the time of its binding, is not known to wait.
    """
    since = _bound_at(pod)
    if pod.status is None or pod.status.phase != _PENDING or since is None or not pod.spec.node_name:
        return None
    if datetime.fromisoformat(at) - datetime.fromisoformat(since) < _LONG:
        return None
    return Reason.VM_NOT_RUNNING.why(
        pod=pod.metadata.name, node=pod.spec.node_name, since=since, waiting=pod.status.waiting or _NO_CONTAINER
    )


def is_running_unknown(pod: Pod) -> bool:
    """Whether a pod has a node, and its status does not tell whether it runs."""
    phase = pod.status.phase if pod.status else None
    return bool(pod.spec.node_name) and (phase is None or (phase == _PENDING and _bound_at(pod) is None))


def _bound_at(pod: Pod) -> str | None:
    return pod.status.scheduled_at if pod.status else None
