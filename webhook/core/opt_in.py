"""Rules 1 to 4 (webhook.core.admit): does the request create a pod that the webhook places, and in which mode?"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from webhook.core import refs
from webhook.core.api.admission_review import POD_KIND, AdmissionRequest
from webhook.core.api.kubevirt import (
    ANNOTATION_PROVISIONING,
    ANNOTATION_RECEIVER,
    LABEL_APP,
    LABEL_MIGRATION_JOB_UID,
    VIRT_LAUNCHER,
)
from webhook.core.api.meta import Namespace
from webhook.core.api.pod import Pod
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, ANNOTATION_OPT_IN_ALL, LABEL_CO_SCHEDULE, Reason, Why
from webhook.core.view import ClusterView, NoObject

_VALUE_SHOWN_CHARS: Final = 48  # of a wrong annotation value; API clients expect warnings under 256 characters


OptInAll = Literal["off", "true", "required", "preferred"]
"""The values of --opt-in-all."""


class Mode(StrEnum):
    """How strictly a VM must run on its share-manager's node. OFF can only be the cluster's mode, never a VM's."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    OFF = "off"


class OptedInBy(StrEnum):
    """Who asks for co-scheduling, in words: the first of these that says anything, yes or no."""

    VM = "the VM's annotation"
    NAMESPACE = "the Namespace's label"
    CLUSTER = "the cluster's setting"


class OptIn(Struct, frozen=True, gc=False):
    """A VM is opted in. `mode` is REQUIRED or PREFERRED; `value` is what the annotation, label or setting says."""

    mode: Mode
    value: str
    by: OptedInBy


class Policy(Struct, frozen=True):
    """The operator's choices.

    Attributes:
        mode: what the value `true` stands for.
        opt_in_all: opts in VMs about which neither annotation nor label says anything; off for none.
        audit: the webhook writes each decision into the pod's annotation, and does not carry it out.
        shortlist: a preference in a large cluster can have a short list of nodes.
    """

    mode: Mode = Mode.REQUIRED
    opt_in_all: OptInAll = "off"
    audit: bool = False
    shortlist: bool = True


def not_a_pod_creation(request: AdmissionRequest) -> Why | None:
    """Rule 1: return why the request does not create a pod, None if it does."""
    if request.kind != POD_KIND:
        return Reason.NOT_A_POD.why(kind=str(request.kind) or "nothing")
    if request.operation != "CREATE":
        return Reason.NOT_A_CREATE.why(operation=request.operation or "nothing")
    if request.sub_resource:
        return Reason.SUBRESOURCE.why(subresource=request.sub_resource)
    return None


def why_other_pod(pod: Pod, _: str, __: ClusterView) -> Why | None:
    """Rules 2 and 3: return why the entry is not for this pod, None if it is."""
    meta = pod.metadata
    if meta.label(LABEL_APP) != VIRT_LAUNCHER:
        return Reason.NOT_VIRT_LAUNCHER.why()
    if meta.label(LABEL_MIGRATION_JOB_UID) is not None:
        return Reason.MIGRATION_TARGET.why()
    if meta.annotation(ANNOTATION_RECEIVER) == "true":
        return Reason.MIGRATION_RECEIVER.why()
    if meta.annotation(ANNOTATION_PROVISIONING) == "true":
        return Reason.EPHEMERAL_PROVISIONING.why()
    return None


def opt_in_of_new(pod: Pod, namespace: str, view: ClusterView, policy: Policy) -> OptIn | Why:
    """Rules 3 and 4: return how the VM of this pod is opted in, or why the webhook does not place the pod."""
    if pod.spec.node_name:
        return Reason.NODE_ALREADY_SET.why(node=pod.spec.node_name)
    return opt_in_of(pod, namespace, view, policy)


def opt_in_of(pod: Pod, namespace: str, view: ClusterView, policy: Policy) -> OptIn | Why:
    """Rule 4: return how the VM of a virt-launcher pod in `namespace` is opted in, or why it is not.

    The Namespace of a VM with an annotation of its own is never asked for.
    """
    annotation = pod.metadata.annotation(ANNOTATION_CO_SCHEDULE)
    if annotation is not None:
        return parse_opt_in(annotation, None, namespace, policy)
    ref = refs.namespace(namespace)
    found = view.get(ref)
    if found is NoObject.UNAVAILABLE:
        return Reason.NAMESPACE_LOOKUP_FAILED.why(namespace=namespace, problem=view.read_error(ref))
    return parse_opt_in(None, label_of(found), namespace, policy)


def label_of(found: Namespace | NoObject) -> str | None:
    """Return the value of the label by which a Namespace opts in its VMs; None without the label or the Namespace."""
    return None if isinstance(found, NoObject) else found.metadata.label(LABEL_CO_SCHEDULE)


def parse_opt_in(annotation: str | None, label: str | None, namespace: str, policy: Policy) -> OptIn | Why:
    """Return how a VM with this annotation, in a Namespace with this label, is opted in; or why it is not."""
    value, by = asked_value(annotation, label, policy)
    match value:
        case None:
            return Reason.NOT_OPTED_IN.why()
        case "false":
            out, in_namespace = Reason.OPTED_OUT, Reason.NAMESPACE_OPTED_OUT
            return out.why() if by is OptedInBy.VM else in_namespace.why(namespace=namespace)
        case "true":
            return Reason.MODE_OFF.why() if policy.mode is Mode.OFF else OptIn(policy.mode, value, by)
        case "required" | "preferred":
            return OptIn(Mode(value), value, by)
    shown = ascii(kept_value(value))[:_VALUE_SHOWN_CHARS]
    if by is OptedInBy.VM:
        return Reason.BAD_CO_SCHEDULE.why(value=shown)
    return Reason.BAD_NAMESPACE_LABEL.why(namespace=namespace, value=shown)


def kept_value(value: str | None) -> str | None:
    """Return what decides, of the value of an annotation or label: a word, or what a message shows of another value."""
    return value and value[:_VALUE_SHOWN_CHARS]


def asked_value(annotation: str | None, label: str | None, policy: Policy) -> tuple[str | None, OptedInBy]:
    """Return the value that counts, and whose it is: the VM's own comes first, then the Namespace's, the cluster's."""
    if annotation is not None:
        return annotation, OptedInBy.VM
    if label is not None:
        return label, OptedInBy.NAMESPACE
    return (None if policy.opt_in_all == "off" else policy.opt_in_all), OptedInBy.CLUSTER


def opt_in_all_of(configuration: Mapping[str, Any]) -> OptInAll:
    """Return the setting --opt-in-all of the cluster with this MutatingWebhookConfiguration.

    manifests/components/opt-in-all writes the setting there, beside the option of the webhook.
    """
    annotations = (configuration.get("metadata") or {}).get("annotations") or {}
    value: OptInAll = annotations.get(ANNOTATION_OPT_IN_ALL, "off")
    return value if value in get_args(OptInAll) else "off"


def opts_in(value: str | None) -> bool:
    """Whether this value asks for co-scheduling; the cluster's mode can still be off."""
    return value in ("true", "required", "preferred")
