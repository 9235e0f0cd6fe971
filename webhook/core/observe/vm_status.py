"""Which VMs are with their share-manager: one VMStatus for each VM that asked for it, as things are now.

What metrics, `status`, the page and Events show. Nothing is decided here, and nothing that is not known is guessed: a
row whose facts could not be had is UNKNOWN. Times are RFC 3339 as the API server writes them, so they compare as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from webhook.core.api import kubevirt
from webhook.core.api.kubevirt import LABEL_MIGRATION_JOB_UID
from webhook.core.api.node_selector import named_nodes
from webhook.core.api.pod import UNSCHEDULABLE, Pod
from webhook.core.evidence import share_managers
from webhook.core.evidence.finding import Finding
from webhook.core.opt_in import Mode, Policy, requested_mode
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, ANNOTATION_DECISION, CHAIN_ORDER, Reason, Why
from webhook.core.view import ClusterView, NeedObjects, NoObject

_MESSAGE_CHARS: Final = 300  # of kube-scheduler's words, which count nodes by each of its filters
_LOST: Final = (Reason.CLAIM_LOOKUP_FAILED, Reason.SHARE_MANAGER_POD_UNREAD)
_STARTING: Final = "starting"


class State(StrEnum):
    """How a VM and its share-managers are to each other. Codes are stable: they are metric labels."""

    TOGETHER = "together"  # every share-manager that is on a node is on the VM's
    APART = "apart"  # one or more is on another node
    STUCK = "stuck"  # the VM may run on named nodes only, and kube-scheduler says that it fits none
    PENDING = "pending"  # the VM, or a share-manager, is not on a node yet
    FREE = "free"  # the VM is on a node, and no share-manager is there that it could be with
    UNKNOWN = "unknown"  # what it takes to tell could not be read


class Decided(StrEnum):
    """What the webhook did as the pod was created: by its annotation, which a live migration's target never gets."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    UNCHANGED = "unchanged"
    MIGRATED = "migrated"  # a live migration brought the VM there: where to is not for the webhook to say
    NOTHING = "nothing"  # it was not asked, or did not answer


_WRITTEN: Final = frozenset((Decided.REQUIRED, Decided.PREFERRED, Decided.UNCHANGED))


class VMVolumeStatus(Struct, frozen=True, kw_only=True, gc=False):
    """One claim of a VM.

    `node` is the share-manager's, where it is on one; `state` is its ShareManager's. `together` is None where there is
    nothing to compare. `since`: when the share-manager's pod came to its node, where that is known.
    """

    claim: str
    volume: str | None
    node: str | None
    state: str | None
    together: bool | None
    since: str | None
    why: Why


class VMStatus(Struct, frozen=True, kw_only=True, gc=False):
    """One VM that asked for co-scheduling, by the pod that goes on running it.

    Attributes:
        asked: its annotation: true, required or preferred; `mode` is what that comes to in this cluster.
        decided: what the webhook did when the pod was created.
        pinned: whether the webhook has required nodes of it, or it waits for nodes that its affinity names: one node
            alone, `only`, or a short list.
        migrating: another pod of the VM is on a node too.
        since: from when on the VM has been in this state, as far as objects tell.
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

    @property
    def nodes_apart(self) -> tuple[str, ...]:
        """The nodes of the share-managers that are not on the VM's, by name."""
        return tuple(sorted({volume.node for volume in self.volumes if volume.node and volume.together is False}))


def row(pods: Sequence[Pod], view: ClusterView, policy: Policy) -> VMStatus | None:
    """The row of the one VM that these pods are of; None where none of them runs it, or it did not ask for us."""
    there = [pod for pod in pods if not kubevirt.is_finished(pod)]
    if not there:
        return None
    pod = max(there, key=kubevirt.running_order)
    mode = requested_mode(pod, policy)
    if not isinstance(mode, Mode):
        return None
    volumes = _volumes(pod, view)
    named = frozenset() if pod.spec.node_name else named_nodes(pod.spec.required_node_affinity)
    decided = _decided(pod)
    pinned = decided is Decided.REQUIRED or bool(named)
    state, why, since = _state(pod, volumes, pinned=pinned)
    return VMStatus(
        namespace=pod.metadata.namespace or "",
        name=kubevirt.vm_name(pod),
        pod=pod.metadata.name or "",
        node=pod.spec.node_name,
        asked=pod.metadata.annotation(ANNOTATION_CO_SCHEDULE) or "",
        mode=mode,
        decided=decided,
        pinned=pinned,
        only=min(named) if len(named) == 1 else None,
        migrating=any(each is not pod and _is_on_a_node(each) for each in there),
        volumes=volumes,
        state=state,
        why=why,
        since=since,
    )


def opts_in(annotation: str | None) -> bool:
    """Whether a pod with this annotation can have a row at all: what is cheap to ask first."""
    return annotation in ("true", "required", "preferred")


def _is_on_a_node(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and not pod.metadata.deletion_timestamp


def _decided(pod: Pod) -> Decided:
    if pod.metadata.label(LABEL_MIGRATION_JOB_UID) is not None:
        return Decided.MIGRATED
    told = (pod.metadata.annotation(ANNOTATION_DECISION) or "").partition(" ")[0].rstrip(":")
    return Decided(told) if told in _WRITTEN else Decided.NOTHING


def _volumes(pod: Pod, view: ClusterView) -> tuple[VMVolumeStatus, ...]:
    """Each claim, and where its share-manager is.

    What KubeVirt keeps of the VM itself is compared with nothing where a disk's share-manager is on a node: placement
    does not count it then.
    """
    findings = share_managers.find_share_managers(pod, pod.metadata.namespace or "", view)
    if isinstance(findings, NeedObjects):
        why = Reason.CLAIM_LOOKUP_FAILED.why(
            claim=findings.refs[0].key.name, kind=findings.refs[0].kind, problem="not read yet"
        )
        return (
            VMVolumeStatus(
                claim=findings.refs[0].key.name, volume=None, node=None, state=None, together=None, since=None, why=why
            ),
        )
    disks = any(finding.node and not finding.state for finding in findings)
    return tuple(
        _volume(finding, None if finding.state and disks else pod.spec.node_name, view) for finding in findings
    )


def _volume(finding: Finding, vm_node: str | None, view: ClusterView) -> VMVolumeStatus:
    handle = finding.volume_handle
    manager = NoObject.NOT_FOUND if handle is None else view.share_manager(handle)
    status = None if isinstance(manager, NoObject) else manager.status
    state = status.state if status else None
    # An ownerID alone is interim while the share-manager starts: it may be moved before its pod is made.
    settled = finding.firm and not (finding.why.reason is Reason.SHARE_MANAGER_OWNER and state == _STARTING)
    node = finding.node if settled else None
    return VMVolumeStatus(
        claim=finding.claim,
        volume=handle,
        node=node,
        state=state,
        together=None if node is None or not vm_node else node == vm_node,
        since=_serving_since(handle, view) if handle and node else None,
        why=finding.why,
    )


def _serving_since(handle: str, view: ClusterView) -> str | None:
    """When the share-manager's pod came to its node; not known where its ownerID is all there is."""
    pod = view.share_manager_pod(handle)
    return None if isinstance(pod, NoObject) else _came(pod)


def _came(pod: Pod) -> str | None:
    """When a pod came to its node, or into the state of waiting for one; when it was made, where nothing says it."""
    condition = pod.status.scheduled if pod.status else None
    return (condition and condition.last_transition_time) or pod.metadata.creation_timestamp


def _state(pod: Pod, volumes: Sequence[VMVolumeStatus], *, pinned: bool) -> tuple[State, Why, str | None]:
    came = _came(pod)
    if not pod.spec.node_name:
        return (*_waiting(pod, pinned=pinned), came)
    apart = [volume for volume in volumes if volume.together is False]
    if apart:
        return State.APART, apart[0].why, min(_later(came, volume.since) for volume in apart) or None
    lost = [volume for volume in volumes if volume.why.reason in _LOST]
    if lost:
        return State.UNKNOWN, lost[0].why, came
    coming = [volume for volume in volumes if _is_coming(volume)]
    if coming:
        return State.PENDING, coming[0].why, came
    together = [volume for volume in volumes if volume.together]
    if together:
        return State.TOGETHER, together[0].why, max(_later(came, volume.since) for volume in together) or None
    furthest = max(volumes, key=lambda volume: CHAIN_ORDER[volume.why.reason], default=None)
    return State.FREE, furthest.why if furthest else Reason.NO_CLAIMS.why(), came


def _waiting(pod: Pod, *, pinned: bool) -> tuple[State, Why]:
    """Of a VM that is on no node: what kube-scheduler says of it."""
    condition = pod.status.scheduled if pod.status else None
    name = pod.metadata.name
    if condition is None or condition.reason != UNSCHEDULABLE:
        return State.PENDING, Reason.VM_NOT_SCHEDULED.why(pod=name)
    message = (condition.message or "no reason given")[:_MESSAGE_CHARS]
    if pinned:
        return State.STUCK, Reason.VM_STUCK.why(pod=name, message=message)
    return State.PENDING, Reason.VM_UNSCHEDULABLE.why(pod=name, message=message)


def _is_coming(volume: VMVolumeStatus) -> bool:
    """Whether a share-manager is being made, and is on no node for certain yet."""
    return volume.node is None and (volume.state == _STARTING or volume.why.reason is Reason.SHARE_MANAGER_UNSCHEDULED)


def _later(one: str | None, other: str | None) -> str:
    return max(one or "", other or "")


def counts(rows: Iterable[VMStatus]) -> dict[State, int]:
    """How many VMs are in each state; every state is there."""
    counted = dict.fromkeys(State, 0)
    for each in rows:
        counted[each.state] += 1
    return counted
