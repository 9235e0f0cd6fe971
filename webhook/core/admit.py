"""The path of one admission, bytes to bytes. Read this module first.

The rules, by their numbers. Code, tests and documents use these numbers and no others:

1. The request creates a pod (`opt_in.not_a_pod_creation`).
2. The entry is for this kind of pod: the virt-launcher pod of a VM that starts, or Longhorn's share-manager pod. The
   target of a live migration stays unchanged. The cluster has the VirtualMachineInstance that owns the pod, or the
   ShareManager (`owner`). Of a pod without it nothing is kept, and nothing else is read for it.
3. Nobody has chosen its node yet: KubeVirt for a decentralized migration or for a provisioning pod, the user by
   spec.nodeName.
4. The VM asks for co-scheduling by its annotation; or the label of its Namespace does, or the cluster's setting
   (`opt_in.opt_in_of`).
5. Each claim of a virt-launcher pod leads to a share-manager (`evidence.share_managers`). The volume of a
   share-manager pod leads to the VMs that use it (`evidence.consumers`).
6. Something shows the node of that share-manager, or of that VM.
7. The pod can run on that node (`placement.feasibility`).
8. A virt-launcher pod must run on the node if the mode is required, the evidence is firm and the pod can run there.
   Otherwise kube-scheduler is asked to prefer the node. For a share-manager pod it is always a preference. A webhook
   that only audits writes the decision into the pod's annotation, and nothing else.
9. What an earlier answer wrote into the pod is removed first, and so are the webhook's annotations if a user copied
   them. A pod that already carries the result gets no patch (`patch.decision_patch`).

An admission has three results: BadReview for a body that is not an AdmissionReview, the pod unchanged, or the pod with
a patch. The webhook never rejects a pod.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from webhook.core import opt_in, owner, pod_limits
from webhook.core.api import admission_review
from webhook.core.api.admission_review import AdmissionRequest, TextTooLong
from webhook.core.api.meta import NAMESPACE_MAX_CHARS
from webhook.core.api.pod import Pod
from webhook.core.decision import Decision, Leave, Pin, audited, outcome
from webhook.core.opt_in import Policy, not_a_pod_creation
from webhook.core.patch import decision_patch
from webhook.core.patch.decision_patch import NotApplicable, Operation, Places
from webhook.core.placement import share_manager
from webhook.core.placement.share_manager import steer_share_manager
from webhook.core.placement.virt_launcher import place_virt_launcher
from webhook.core.reasons import ANNOTATION_DECISION, Reason, Why
from webhook.core.view import ClusterView

AGAIN: Final = "again-"
"""Prefix of the audit annotations' keys if the API server calls the webhook for the same pod a second time."""


class Answer(Struct, frozen=True):
    """The answer to one AdmissionReview: the body to send, and what the body was made from.

    `pod` is None if the request does not create a pod. `of_owner` is the creation that the answer is about, if the
    cluster has the object that owns the pod (rule 2). Else it is None: the answer is counted and logged at level debug.
    No Event and no page shows the call, and no pod is assumed, because anybody who can connect may send such a pod.
    """

    body: bytes
    request: AdmissionRequest
    pod: Pod | None
    decision: Decision
    operations: Sequence[Operation]
    audit_annotations: Mapping[str, str]
    of_owner: PodCreation | None = None


WhyOtherPod = Callable[[Pod, str, ClusterView], Why | None]
"""Returns why the entry is not for a pod in this namespace; None if it is."""
FindOwner = Callable[[Pod, str, ClusterView], str | Why]
"""Returns the uid of the object that owns a pod in this namespace; or why the cluster is not known to have it."""
Decide = Callable[[Pod, str, ClusterView, Policy], Decision]
"""Decides for a pod and its namespace."""


class Entry(Enum):
    """The entries of the webhook configuration: the path that the API server calls, and the function that decides."""

    def __init__(self, title: str, why_other_pod: WhyOtherPod, find_owner: FindOwner, decide: Decide) -> None:
        self.title = title
        self.path = f"/mutate/{title}"
        self.why_other_pod = why_other_pod
        self.find_owner = find_owner
        self.decide = decide

    VIRT_LAUNCHER = "virt-launcher", opt_in.why_other_pod, owner.find_vmi, place_virt_launcher
    SHARE_MANAGER = "share-manager", share_manager.why_not_share_manager, owner.find_share_manager, steer_share_manager


class PodCreation(Struct, frozen=True):
    """A pod that is being created; the API server called the path of `entry` for it.

    `pod` is the pod in the request, and `places` what the webhook changes of it. `before` and `places_before` are the
    same objects if no earlier answer wrote anything; else what the pod was without it. Until the pod's owner is found,
    the record of that answer is not believed: only the webhook's annotations go.
    """

    request: AdmissionRequest
    entry: Entry
    pod: Pod
    places: Places
    before: Pod
    places_before: Places

    @property
    def namespace(self) -> str:
        """The pod's namespace. The request's is used first, because the object's own can be empty at CREATE."""
        return self.request.namespace or self.pod.metadata.namespace or ""


def admit(body: bytes, view: ClusterView, policy: Policy, entry: Entry = Entry.VIRT_LAUNCHER) -> Answer:
    """Answer the AdmissionReview in `body`, which the API server sent to `entry`: `read`, then `answer`."""
    creation = read(body, entry)
    return creation if isinstance(creation, Answer) else answer(creation, view, policy)


def read(body: bytes, entry: Entry) -> PodCreation | Answer:
    """Return the pod creation in `body`; or the answer, if it creates no pod (rule 1) or one that is too large.

    Raises:
        BadReview: the body is not an AdmissionReview of admission.k8s.io/v1, or its pod can't be read.
    """
    found = _pod_in(body)
    if isinstance(found, Answer):
        return found
    request, pod, affinity = found
    places = Places(pod.metadata.annotations, admission_review.every_field(affinity))
    before, places_before = decision_patch.without_applied_patch(pod, places, owner="")
    return PodCreation(request, entry, pod, places, before, places_before)


def failed(body: bytes, why: Why) -> Answer:
    """Return the answer that admits the pod in `body` as it is, because the webhook failed on it. Raises as `read`."""
    found = _pod_in(body)
    return found if isinstance(found, Answer) else unchanged(found[0], why, found[1])


def _pod_in(body: bytes) -> tuple[AdmissionRequest, Pod, Raw] | Answer:
    """Return the request with its pod, both bounded, and the pod's affinity as JSON; or the answer as in `read`."""
    request = admission_review.decode(body)
    if len(request.namespace or "") > NAMESPACE_MAX_CHARS:
        too_long = Reason.TEXT_TOO_LONG.why(what="the namespace", most=NAMESPACE_MAX_CHARS)
        return unchanged(replace(request, namespace=None), too_long)
    why = not_a_pod_creation(request) or pod_limits.why_too_long(body)
    if why:
        return unchanged(request, why)
    try:
        pod, affinity = request.pod()
    except TextTooLong as text:
        return unchanged(request, Reason.TEXT_TOO_LONG.why(what=text.what, most=text.most))
    why = pod_limits.why_affinity_too_long(affinity)
    if why is None:
        pod = admission_review.with_affinity(pod, affinity)
        why = pod_limits.why_too_large(pod) or pod_limits.why_field_too_long(request.object)
    return unchanged(request, why, pod) if why else (request, pod, affinity)


def answer(creation: PodCreation, view: ClusterView, policy: Policy) -> Answer:
    """Return the answer (rules 2 to 9). It does not count if `view.missing` has anything after that."""
    pod, entry = creation.pod, creation.entry
    why = entry.why_other_pod(pod, creation.namespace, view)
    if why:
        return unchanged(creation.request, why, pod)
    uid = entry.find_owner(pod, creation.namespace, view)
    return _without_owner(creation, uid) if isinstance(uid, Why) else _with_owner(creation, uid, view, policy)


def _without_owner(creation: PodCreation, why: Why) -> Answer:
    """Return the answer that writes into the pod why it stays unchanged.

    Exception: an earlier answer stays in the pod if its owner could not be read.
    """
    if why.reason.columns.unread and creation.before is not creation.pod:
        return unchanged(creation.request, why, creation.pod)
    decision = Leave(why=why)
    return _answered(creation, decision, decision_patch.annotated(creation.pod, creation.places_before, decision))


def _with_owner(creation: PodCreation, uid: str, view: ClusterView, policy: Policy) -> Answer:
    """Return the answer for a pod whose owner, the object with this uid, the cluster has (rules 3 to 9)."""
    if creation.before is not creation.pod:
        before, places_before = decision_patch.without_applied_patch(creation.pod, creation.places, uid)
        creation = replace(creation, before=before, places_before=places_before)
    decision = creation.entry.decide(creation.before, creation.namespace, view, policy)
    return replace(_carried_out(creation, decision, policy), of_owner=creation)


def _carried_out(creation: PodCreation, decision: Decision, policy: Policy) -> Answer:
    places = creation.places_before
    after = decision_patch.carried_out(creation.before, places, decision)
    if isinstance(after, Why):
        decision, after = Leave(why=after), places
    elif policy.audit and isinstance(decision, Pin):
        decision = audited(decision)
        after = decision_patch.annotated(creation.before, places, decision)
    return _answered(creation, decision, after)


def _answered(creation: PodCreation, decision: Decision, after: Places) -> Answer:
    """Return the answer that makes `after` of the pod: without what an earlier answer wrote, with what is right now.

    If the pod already carries the result, the answer has no operations.
    """
    if creation.before is not creation.pod and creation.places.meaning == after.meaning:
        after = creation.places
    return proven_answer(creation, decision, after, decision_patch.operations(creation.places, after))


def proven_answer(creation: PodCreation, decision: Decision, after: Places, operations: Sequence[Operation]) -> Answer:
    """Return the answer with the operations. If they are not proven to make `after`, the pod stays unchanged."""
    try:
        decision_patch.prove(creation.places, after, operations)
    except NotApplicable as problem:
        return unchanged(creation.request, Reason.PATCH_DOES_NOT_APPLY.why(problem=problem), creation.pod)
    return _encode(creation.request, creation.pod, decision, operations)


def unchanged(request: AdmissionRequest, why: Why, pod: Pod | None = None) -> Answer:
    """Return the answer that admits the object of `request` as it is; `pod` is that object, if a pod is created."""
    return _encode(request, pod, Leave(why=why), [])


def _encode(request: AdmissionRequest, pod: Pod | None, decision: Decision, operations: Sequence[Operation]) -> Answer:
    audit_annotations = _audit_annotations(decision)
    warnings = [decision.why.sentence] if decision.why.reason.columns.wrong_value else []
    keyed = _keyed(audit_annotations, pod)
    body = admission_review.encode(request.uid, operations, audit_annotations=keyed, warnings=warnings)
    return Answer(body, request, pod, decision, operations, audit_annotations)


def _audit_annotations(decision: Decision) -> dict[str, str]:
    """Return what the API server adds to its audit log: decision, reason, sentence, nodes."""
    why = decision.why
    audit_annotations = {"decision": outcome(decision), "reason": why.reason.code, "because": why.sentence}
    if not isinstance(decision, Leave):
        audit_annotations["node"] = ",".join(decision.nodes)
    return audit_annotations


def _keyed(audit_annotations: Mapping[str, str], pod: Pod | None) -> Mapping[str, str]:
    """Return the audit annotations with keys of their own for a second call.

    The API server stores only the first value of each key. With other keys the audit log has both answers.
    """
    again = pod is not None and pod.metadata.annotation(ANNOTATION_DECISION) is not None
    return {f"{AGAIN}{key}": value for key, value in audit_annotations.items()} if again else audit_annotations
