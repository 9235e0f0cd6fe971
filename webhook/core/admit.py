"""The path of one admission, bytes to bytes. Read this first.

Three lanes and no fourth: BadReview (we could not read the question), admitted unchanged, admitted with a patch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final

from msgspec import Struct

from webhook.core.api import admission_review
from webhook.core.api.admission_review import AdmissionRequest
from webhook.core.api.pod import Pod
from webhook.core.decision import Decision, Leave
from webhook.core.opt_in import Policy, foreign
from webhook.core.patch import decision_patch, json_patch, unpatch
from webhook.core.patch.json_patch import NotApplicable, Operation
from webhook.core.placement import share_manager, virt_launcher
from webhook.core.reasons import ANNOTATION_DECISION, Reason, Why
from webhook.core.view import ClusterView, NeedObjects

AGAIN: Final = "again-"


class Answer(Struct, frozen=True):
    """What was answered: the body to send, and what it was made from. `pod` is None where the object is no pod."""

    body: bytes
    request: AdmissionRequest
    pod: Pod | None
    decision: Decision
    operations: Sequence[Operation]
    audit_annotations: Mapping[str, str]


Decide = Callable[[Pod, str, ClusterView, Policy], Decision | NeedObjects]
"""What an entry of the webhook configuration asks: what to do with this pod of that namespace."""


class Entry(Enum):
    """The entries of the webhook configuration: the path at which each is called, and the rules for its pods."""

    def __init__(self, title: str, decide: Decide) -> None:
        self.title = title
        self.path = f"/mutate/{title}"
        self.decide = decide

    VIRT_LAUNCHER = "virt-launcher", virt_launcher.place_virt_launcher
    SHARE_MANAGER = "share-manager", share_manager.steer_share_manager


class Question(Struct, frozen=True):
    """A pod that is being created, which came by `entry` in an AdmissionReview.

    `pod` is as it came, `before` as it was before we ever wrote into it; `undone` leads from the one to the other.
    """

    request: AdmissionRequest
    entry: Entry
    pod: Pod
    before: Pod
    undone: Sequence[Operation]

    @property
    def namespace(self) -> str:
        """The pod's: the request's is authoritative, for the object's own can be empty at CREATE."""
        return self.request.namespace or self.pod.metadata.namespace or ""


def admit(body: bytes, view: ClusterView, policy: Policy, entry: Entry = Entry.VIRT_LAUNCHER) -> Answer | NeedObjects:
    """Answer the AdmissionReview in `body`, which came by `entry`; as `read` and `answer`."""
    question = read(body, entry)
    return question if isinstance(question, Answer) else answer(question, view, policy)


def read(body: bytes, entry: Entry) -> Question | Answer:
    """The question in `body`; the answer where it is not about the creation of a pod.

    Raises:
        BadReview: the body is no AdmissionReview of admission.k8s.io/v1, or its pod can't be read.
    """
    request = admission_review.decode(body)
    why = foreign(request)
    if why:
        return unchanged(request, why)
    pod = request.pod()
    before, undone = unpatch.taken_out(pod)
    return Question(request, entry, pod, before, undone)


def answer(question: Question, view: ClusterView, policy: Policy) -> Answer | NeedObjects:
    """The answer, or the objects that `view` must have read before there can be one."""
    decision = question.entry.decide(question.before, question.namespace, view, policy)
    if isinstance(decision, NeedObjects):
        return decision
    written = decision_patch.for_decision(question.before, decision)
    if isinstance(written, Why):
        decision, written = Leave(why=written), []
    return _proven(question.request, question.pod, decision, question.undone, written)


def unchanged(request: AdmissionRequest, why: Why) -> Answer:
    """The answer that admits the object of `request` as it is."""
    return _encode(request, None, Leave(why=why), [])


def _proven(
    request: AdmissionRequest,
    pod: Pod,
    decision: Decision,
    undone: Sequence[Operation],
    written: Sequence[Operation],
) -> Answer:
    """The answer that takes out of the pod what we wrote before, and writes what is right now.

    Operations that can't be shown to apply are not sent: the pod starts as it is. None is sent where the pod carries
    all of it already.
    """
    operations = [*undone, *written]
    after = json_patch.tree_of(pod)
    try:
        json_patch.apply(after, operations)
    except NotApplicable as problem:
        return unchanged(request, Reason.PATCH_NOT_PROVEN.why(problem=problem))
    carried = bool(undone) and unpatch.is_same(json_patch.tree_of(pod), after)
    return _encode(request, pod, decision, [] if carried else operations)


def _encode(request: AdmissionRequest, pod: Pod | None, decision: Decision, operations: Sequence[Operation]) -> Answer:
    told = _audit_annotations(decision)
    body = admission_review.encode(
        request.uid, operations, audit_annotations=_keyed(told, pod), warnings=_warnings(decision)
    )
    return Answer(body, request, pod, decision, operations, told)


def _audit_annotations(decision: Decision) -> dict[str, str]:
    """What the API server writes to its audit log under our webhook's name: decision, reason, evidence, nodes."""
    told = {
        "decision": "unchanged" if isinstance(decision, Leave) else decision.strength.value,
        "reason": decision.why.reason.code,
        "because": decision.why.sentence,
    }
    if not isinstance(decision, Leave):
        told["node"] = ",".join(decision.nodes)
    return told


def _keyed(told: Mapping[str, str], pod: Pod | None) -> Mapping[str, str]:
    """The API server keeps the first value of each key. Where it asks again both answers are there, by other keys."""
    again = pod is not None and pod.metadata.annotation(ANNOTATION_DECISION) is not None
    return {f"{AGAIN}{key}": value for key, value in told.items()} if again else told


def _warnings(decision: Decision) -> list[str]:
    return [decision.why.sentence] if decision.why.reason is Reason.BAD_CO_SCHEDULE else []
