"""Evaluate one ExplainRequest with the functions of core, over the same bytes that the API server would send.

Invariant: no rule is here, so that explain can't decide otherwise than the webhook.
"""

from __future__ import annotations

import json
from typing import Any, Final

import jsonpatch
import msgspec

from webhook.core import admit, refs
from webhook.core.admit import Answer, Entry
from webhook.core.api.admission_review import BadReview
from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.longhorn import LABEL_LONGHORN_COMPONENT, SHARE_MANAGER
from webhook.core.api.pod import Pod
from webhook.core.decision import Decision, Leave
from webhook.core.observe.vm_status import VMStatus
from webhook.core.opt_in import Policy, asked_value, label_of
from webhook.core.placement import share_manager
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, ANNOTATION_DECISION, Reason
from webhook.core.view import ClusterView, Kind
from webhook.explain.chain import evidence
from webhook.explain.chain.evidence import Evidence
from webhook.explain.explain_request import ExplainRequest
from webhook.explain.explanation import AffinityChange, Explanation, PodOptIn, VMNow
from webhook.explain.pods_now import gone_before, vm_now
from webhook.explain.sources.cluster_reader import ClusterReader
from webhook.invocation import AS_STARTED, Invocation
from webhook.objects.documents import BadDocument
from webhook.objects.fields import field_at

_UNREAD: Final = frozenset(reason.code for reason in Reason if reason.columns.unread)
_YOUR_PERMISSIONS: Final = (
    "you may not read every object that explain needs; the webhook reads as its service account, and can decide "
    "otherwise"
)
_NO_SHORTLIST: Final = "explained without a short list: whether cluster-autoscaler runs is not known ({problem})"
_ASSUMED: Final = "the {kind} that owns the pod is assumed to exist: these files describe none"
_NO_USERS: Final = "no node is required, because who else uses the volumes is not known ({problem})"
_LABELS: Final = ("request", "object", "metadata", "labels")
_NEXT_START: Final = "this pod has its node already; explain its VirtualMachine to see the decision for the next start"
_RUNNING_HINTS: Final = {
    Entry.VIRT_LAUNCHER: _NEXT_START,
    Entry.SHARE_MANAGER: (
        "this pod has its node already; explain volume/NAME of its volume to see the decision for the next start"
    ),
}


def explain(
    request: ExplainRequest, cluster: ClusterReader, policy: Policy, invocation: Invocation = AS_STARTED
) -> Explanation:
    """Return the decision of core for a request, with the evidence for it.

    Args:
        request: the AdmissionReview to decide on, and its object.
        cluster: has the objects that core needs.
        policy: the settings of the webhook.
        invocation: begins and ends the commands that the explanation suggests.

    Raises:
        BadDocument: core can't read the AdmissionReview.
    """
    subject, entry = request.subject, entry_of(request.review)
    unknown = _prepared(request.review, cluster) if entry is Entry.SHARE_MANAGER else []
    try:
        body = json.dumps(request.review, default=str).encode()
        answer, no_shortlist = _answer(body, entry, subject.namespace, cluster, policy)
    except (BadReview, ValueError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else error
        raise BadDocument(f"{subject.source}: {subject.kind}: {problem}") from None
    decision = answer.decision
    found = evidence.collect_evidence(answer, entry, subject.namespace, cluster, policy)
    placed = None if isinstance(decision, Leave) else decision
    before, after = _before_and_after(answer, body)
    running = [_RUNNING_HINTS[entry]] if decision.why.reason is Reason.NODE_ALREADY_SET else []
    # The pods are listed only for a pod that opted in.
    unlisted = set() if _opted_in(decision) else {Reason.FREE_RESOURCES_UNKNOWN.code}
    lost = [_YOUR_PERMISSIONS] if (_UNREAD - unlisted) & {decision.why.reason.code, *found.reasons} else []
    return Explanation(
        object=subject,
        cluster=cluster.origin,
        entry=entry.title,
        notes=[*request.notes, *unknown, *_assumed(answer, entry, cluster), *no_shortlist, *found.problem, *lost],
        hints=[*request.hints, *running],
        running=request.running,
        now=_now(vm_now(request.vm_pods, cluster, policy), invocation),
        opt_in=_opt_in(answer, subject.namespace, cluster.view, policy),
        claims=found.claims,
        volume=found.volume,
        nodes=found.nodes,
        decision=answer.audit_annotations["decision"],
        reason=decision.why.reason.code,
        sentence=decision.why.sentence,
        required=placed.required if placed else (),
        preferred=placed.preferred if placed else (),
        shortlist=placed.shortlist if placed else (),
        followers=_followers(found, decision),
        annotation=field_at(after, "metadata", "annotations", ANNOTATION_DECISION),
        patch=answer.operations,
        affinity=AffinityChange(before=field_at(before, "spec", "affinity"), after=field_at(after, "spec", "affinity")),
    )


def _answer(
    body: bytes, entry: Entry, namespace: str, cluster: ClusterReader, policy: Policy
) -> tuple[Answer, list[str]]:
    """Return the answer of core, and a sentence for each list that it lacks.

    Only for a pod that opted in are the pods of the cluster listed: there can be many. Raises as admit does.
    """

    def ask(view: ClusterView) -> Answer:
        return admit.admit(body, view, policy, entry)

    first = cluster.ask(ask)
    if first.pod is None:
        return first, []
    needed = _opted_in(first.decision)
    cluster.prepare_snapshot(gone_before(first.pod, namespace), needed=needed)
    problem = cluster.prepare_autoscaler() if needed and policy.shortlist else ""
    unlisted = cluster.prepare_users(namespace) if needed and entry is not Entry.SHARE_MANAGER else ""
    notes = [_NO_USERS.format(problem=unlisted)] if unlisted else []
    answer = cluster.ask(ask)
    is_preference = not isinstance(answer.decision, Leave) and not answer.decision.required
    return answer, [*notes, *([_NO_SHORTLIST.format(problem=problem)] if problem and is_preference else [])]


def entry_of(review: Any) -> Entry:
    """Return the entry whose objectSelector selects the pod of this review, among those of manifests/base."""
    component = field_at(review, *_LABELS, LABEL_LONGHORN_COMPONENT)
    return Entry.SHARE_MANAGER if component == SHARE_MANAGER else Entry.VIRT_LAUNCHER


def _assumed(answer: Answer, entry: Entry, cluster: ClusterReader) -> list[str]:
    """Return that the pod's owner counts as existing, if files do not say which owners exist."""
    kind = Kind.SHARE_MANAGER if entry is Entry.SHARE_MANAGER else Kind.VIRTUAL_MACHINE_INSTANCE
    return [_ASSUMED.format(kind=kind)] if answer.of_owner and cluster.view.assumes(kind) else []


def _prepared(review: Any, cluster: ClusterReader) -> list[str]:
    """Have the cluster list the objects that a webhook has in its caches, because core never asks to read them.

    Returns a sentence for each part that could not be read.
    """
    try:
        volume = share_manager.volume_of(msgspec.convert(field_at(review, "request", "object"), Pod))
    except msgspec.ValidationError:
        return []  # core reports what is wrong with the pod
    cluster.node_names()
    return list(cluster.prepare_volume(volume))


def _now(row: VMStatus | None, invocation: Invocation) -> VMNow | None:
    if row is None:
        return None
    remedy = invocation.remedy_text(row.remedy)
    return VMNow(state=row.state, since=row.since, reason=row.why.reason.code, because=row.why.sentence, remedy=remedy)


def _followers(found: Evidence, decision: Decision) -> list[str]:
    """The volumes whose share-manager has no node and no pod: Longhorn creates it after this pod has its node."""
    if not _opted_in(decision):
        return []
    stopped = Reason.SHARE_MANAGER_NO_NODE.code
    waiting = [chain for chain in found.claims if chain.reason == stopped and not (chain.pod and chain.pod.live)]
    return list(dict.fromkeys(chain.volume_handle for chain in waiting if chain.volume_handle))


def _before_and_after(answer: Answer, body: bytes) -> tuple[Any, Any]:
    """The pod of the request, and the pod after the patch; None and None if the request creates no pod."""
    if answer.pod is None:
        return None, None
    pod = json.loads(body)["request"]["object"]
    return pod, jsonpatch.JsonPatch([dict(operation) for operation in answer.operations]).apply(pod)


def _opt_in(answer: Answer, namespace: str, view: ClusterView, policy: Policy) -> PodOptIn:
    """What the pod asks for, and who asks for it. The value `true` stands for the mode of the cluster."""
    meta = answer.pod.metadata if answer.pod else None
    annotation = meta.annotation(ANNOTATION_CO_SCHEDULE) if meta else None
    value, by, label = annotation, None, None
    if meta and meta.label(LABEL_APP) == VIRT_LAUNCHER:
        label = label_of(view.get(refs.namespace(namespace))) if annotation is None else None
        value, by = asked_value(annotation, label, policy)
    opted_in = _opted_in(answer.decision)
    return PodOptIn(
        annotation=annotation,
        namespace_label=label,
        cluster_mode=policy.mode.value,
        opted_in=opted_in,
        mode=(policy.mode.value if value == "true" else value) if opted_in else None,
        by=by.value if by and opted_in else None,
    )


def _opted_in(decision: Decision) -> bool:
    return not isinstance(decision, Leave) or decision.opted_in
