"""Rules 1 to 4: is the request the creation of a pod that we place, and which mode does the VM ask for?"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from webhook.core.api.admission_review import POD_KIND, RequestHead
from webhook.core.api.kubevirt import LABEL_APP, LABEL_MIGRATION_JOB_UID, VIRT_LAUNCHER
from webhook.core.api.pod import Pod
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, Reason, Why

_ANNOTATION_RECEIVER: Final = "kubevirt.io/create-migration-target"
_ANNOTATION_PROVISIONING: Final = "kubevirt.io/ephemeral-provisioning"
_VALUE_SHOWN_CHARS: Final = 48  # of an annotation that we do not understand: a warning should stay under 256


class Mode(StrEnum):
    """How hard a VM is bound to its share-manager's node. OFF is a cluster's default only, never a VM's choice."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    OFF = "off"


class Policy(Struct, frozen=True):
    """What the operator decided: the mode that the annotation value `true` stands for, and where Longhorn lives."""

    mode: Mode = Mode.REQUIRED
    longhorn_namespace: str = "longhorn-system"


def foreign(request: RequestHead) -> Why | None:
    """Rule 1: why the request is not the creation of a pod, None where it is."""
    if request.kind != POD_KIND:
        return Reason.NOT_A_POD.why(kind=str(request.kind) or "nothing")
    if request.operation != "CREATE":
        return Reason.NOT_A_CREATE.why(operation=request.operation or "nothing")
    if request.sub_resource:
        return Reason.SUBRESOURCE.why(subresource=request.sub_resource)
    return None


def _our_mode(pod: Pod, policy: Policy) -> Mode | Why:
    """Rules 2 to 4: the mode this pod asks for, or why it is not ours to place."""
    meta = pod.metadata
    if meta.label(LABEL_APP) != VIRT_LAUNCHER:
        return Reason.NOT_VIRT_LAUNCHER.why()
    if meta.label(LABEL_MIGRATION_JOB_UID) is not None:
        return Reason.MIGRATION_TARGET.why()
    if meta.annotation(_ANNOTATION_RECEIVER) == "true":
        return Reason.MIGRATION_RECEIVER.why()
    if meta.annotation(_ANNOTATION_PROVISIONING) == "true":
        return Reason.EPHEMERAL_PROVISIONING.why()
    if pod.spec.node_name:
        return Reason.NODE_ALREADY_SET.why(node=pod.spec.node_name)
    return requested_mode(pod, policy)


def requested_mode(pod: Pod, policy: Policy) -> Mode | Why:
    """Rule 4: the mode that the annotation of a virt-launcher pod asks for, or why it asks for none."""
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
