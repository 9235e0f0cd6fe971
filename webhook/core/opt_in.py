"""Rules 1 to 4 (webhook.core.admit): does the request create a pod that the webhook places, and in which mode?"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from webhook.core.api.admission_review import POD_KIND, RequestHead
from webhook.core.api.kubevirt import (
    ANNOTATION_PROVISIONING,
    ANNOTATION_RECEIVER,
    LABEL_APP,
    LABEL_MIGRATION_JOB_UID,
    VIRT_LAUNCHER,
)
from webhook.core.api.pod import DEFAULT_SCHEDULER, Pod
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, Reason, Why

_VALUE_SHOWN_CHARS: Final = 48  # of a wrong annotation value; API clients expect warnings under 256 characters


class Mode(StrEnum):
    """How strictly a VM must run on its share-manager's node. OFF can only be the cluster's mode, never a VM's."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    OFF = "off"


class Policy(Struct, frozen=True):
    """The operator's choices.

    Attributes:
        mode: what the annotation value `true` stands for.
        longhorn_namespace: the namespace of Longhorn's own objects.
        audit: the webhook writes each decision into the pod's annotation, and does not carry it out.
        shortlist: a preference in a large cluster can have a short list of nodes.
        taken_over: the names of schedulers that are gone or will go. Their virt-launcher pods get `scheduler_name`.
    """

    mode: Mode = Mode.REQUIRED
    longhorn_namespace: str = "longhorn-system"
    audit: bool = False
    shortlist: bool = True
    taken_over: frozenset[str] = frozenset()
    scheduler_name: str = DEFAULT_SCHEDULER


def not_a_pod_creation(request: RequestHead) -> Why | None:
    """Rule 1: return why the request does not create a pod, None if it does."""
    if request.kind != POD_KIND:
        return Reason.NOT_A_POD.why(kind=str(request.kind) or "nothing")
    if request.operation != "CREATE":
        return Reason.NOT_A_CREATE.why(operation=request.operation or "nothing")
    if request.sub_resource:
        return Reason.SUBRESOURCE.why(subresource=request.sub_resource)
    return None


def co_schedule_mode(pod: Pod, policy: Policy) -> Mode | Why:
    """Rules 2 to 4: return the mode for this pod (REQUIRED or PREFERRED), or why the webhook does not place it."""
    meta = pod.metadata
    if meta.label(LABEL_APP) != VIRT_LAUNCHER:
        return Reason.NOT_VIRT_LAUNCHER.why()
    if meta.label(LABEL_MIGRATION_JOB_UID) is not None:
        return Reason.MIGRATION_TARGET.why()
    return _why_not_scheduled(pod) or requested_mode(pod, policy)


def migration_target_mode(pod: Pod, policy: Policy) -> Mode | Why:
    """Rules 2 to 4 for the target of a live migration: return the VM's mode, or why the webhook leaves the pod."""
    if pod.metadata.label(LABEL_APP) != VIRT_LAUNCHER:
        return Reason.NOT_VIRT_LAUNCHER.why()
    if pod.metadata.label(LABEL_MIGRATION_JOB_UID) is None:
        return Reason.NOT_MIGRATION_TARGET.why()
    return _why_not_scheduled(pod) or requested_mode(pod, policy)


def _why_not_scheduled(pod: Pod) -> Why | None:
    """Rule 3: return why kube-scheduler does not choose a node for the VM by this pod."""
    meta = pod.metadata
    if meta.annotation(ANNOTATION_RECEIVER) == "true":
        return Reason.MIGRATION_RECEIVER.why()
    if meta.annotation(ANNOTATION_PROVISIONING) == "true":
        return Reason.EPHEMERAL_PROVISIONING.why()
    if pod.spec.node_name:
        return Reason.NODE_ALREADY_SET.why(node=pod.spec.node_name)
    return None


def requested_mode(pod: Pod, policy: Policy) -> Mode | Why:
    """Rule 4: return the mode that a virt-launcher pod's annotation asks for, or why it asks for none."""
    match pod.metadata.annotation(ANNOTATION_CO_SCHEDULE):
        case None:
            return Reason.NOT_OPTED_IN.why()
        case "false":
            return Reason.OPTED_OUT.why()
        case "true":
            return Reason.MODE_OFF.why() if policy.mode is Mode.OFF else policy.mode
        case "required":
            return Mode.REQUIRED
        case "preferred":
            return Mode.PREFERRED
        case other:
            return Reason.BAD_CO_SCHEDULE.why(value=ascii(other)[:_VALUE_SHOWN_CHARS])


def opts_in(annotation: str | None) -> bool:
    """Whether this value of the annotation asks for co-scheduling; the cluster's mode can still be off."""
    return annotation in ("true", "required", "preferred")
