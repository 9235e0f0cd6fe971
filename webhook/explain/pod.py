"""A pod, or the AdmissionReview of one -> PodExplanation: what core says of it, over the bytes that it would be sent.

Invariant: no rule is here, so that explain can't decide otherwise than the webhook.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeGuard, TypeVar

import jsonpatch
from msgspec import Struct

from webhook.core import admit, refs
from webhook.core.admit import Answer, Entry
from webhook.core.api import kubevirt
from webhook.core.api.admission_review import BadReview
from webhook.core.api.kubevirt import LABEL_APP, LABEL_MIGRATION_JOB_UID, VIRT_LAUNCHER
from webhook.core.api.longhorn import LABEL_LONGHORN_COMPONENT, SHARE_MANAGER
from webhook.core.api.pod import Pod
from webhook.core.decision import Decision, Leave
from webhook.core.evidence import consumers, share_managers
from webhook.core.evidence.facts import Finding
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.opt_in import Policy, asked_value, label_of
from webhook.core.placement import share_manager
from webhook.core.placement.shortlist import SCORED_WHOLE_NODES
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, ANNOTATION_DECISION, Reason
from webhook.core.view import ClusterView, Kind
from webhook.explain.explanation import Evidence, NodeResult, PodExplanation
from webhook.explain.subjects import PodRequest
from webhook.invocation import Invocation
from webhook.objects.cluster import Cluster
from webhook.objects.documents import BadDocument, field_at
from webhook.objects.kinds import (
    CONFIG_MAP,
    CSI_NODE,
    LONGHORN_NODE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    UNFINISHED_POD,
    VIRT_LAUNCHER_POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
)
from webhook.objects.unread import WebhookSettings

_T = TypeVar("_T")
_AS_CREATED: Final = (
    "explained as if the pod were created now: in the cluster as it is, without the pod's node and earlier decision"
)
_OF_VOLUMES: Final = (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    VIRT_LAUNCHER_POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
)
_NEXT_START: Final = "this pod has its node already; explain its VM to see what decides about the next start"
_ASSUMED: Final = "the {kind} that owns the pod is assumed to exist: these files describe none"
_NOT_READ: Final = "not read, so that the webhook, which reads as its service account, can decide otherwise: {problem}"


def entry_of(review: Any) -> Entry:
    """Return the entry whose objectSelector selects the pod of this review, among those of manifests/install.yaml."""
    component = field_at(review, "request", "object", "metadata", "labels", LABEL_LONGHORN_COMPONENT)
    return Entry.SHARE_MANAGER if component == SHARE_MANAGER else Entry.VIRT_LAUNCHER


class Context(Struct, frozen=True):
    """What is explained where: the cluster, the namespace of names without one, and the settings of the webhook.

    `invocation` begins suggested commands.
    """

    cluster: Cluster
    namespace: str
    webhook: WebhookSettings
    invocation: Invocation

    def ask(self, question: Callable[[ClusterView, Policy], _T]) -> _T:
        """Return the answer to a question about the cluster, and the webhook's policy."""
        return self.cluster.ask(lambda view: question(view, self.webhook.policy))


def explain_pod(request: PodRequest, context: Context) -> PodExplanation:
    """Return the decision of core for a request, with the evidence for it.

    Raises:
        BadDocument: core can't read the AdmissionReview.
    """
    cluster, settings = context.cluster, context.webhook
    subject, entry = request.subject, entry_of(request.review)
    notes = [] if request.existing is None else [_AS_CREATED, *_written(request.existing)]
    try:
        body = json.dumps(request.review, default=str).encode()
        answer, unread = _answer(body, entry, subject.namespace, context)
    except (BadReview, ValueError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else error
        raise BadDocument(f"{subject.source}: {subject.kind}: {problem}") from None
    decision = answer.decision
    kind = Kind.SHARE_MANAGER if entry is Entry.SHARE_MANAGER else Kind.VIRTUAL_MACHINE_INSTANCE
    if answer.of_owner and cluster.assumes(kind):
        notes.append(_ASSUMED.format(kind=kind))
    placed = None if isinstance(decision, Leave) else decision
    before = field_at(request.review, "request", "object") if answer.pod else None
    after = jsonpatch.JsonPatch([dict(operation) for operation in answer.operations]).apply(before) if before else None
    return PodExplanation(
        object=subject,
        cluster=cluster.origin,
        settings=settings.sentence,
        notes=[*settings.notes, *notes, *(_NOT_READ.format(problem=problem) for problem in unread)],
        hints=[_NEXT_START] if decision.why.reason is Reason.NODE_ALREADY_SET else [],
        asked=_asked(answer, subject.namespace, context),
        opted_in=_opted_in(decision) if _is_of_vm(answer.pod) else None,
        entry=entry.title,
        evidence=[
            Evidence(
                claim=found.claim,
                volume=found.volume_handle,
                node=found.node,
                reason=found.why.reason.code,
                sentence=found.why.sentence,
            )
            for found in decision.findings or _evidence(answer, entry, subject.namespace, context)
        ],
        nodes=[
            NodeResult(name=fit.node, reason=fit.why.reason.code, sentence=fit.why.sentence)
            for fit in decision.node_fits
        ],
        decision=answer.audit_annotations["decision"],
        reason=decision.why.reason.code,
        sentence=decision.why.sentence,
        required=placed.required if placed else (),
        preferred=placed.preferred if placed else (),
        shortlist=placed.shortlist if placed else (),
        annotation=field_at(after, "metadata", "annotations", ANNOTATION_DECISION),
        patch=answer.operations,
    )


def _answer(body: bytes, entry: Entry, namespace: str, context: Context) -> tuple[Answer, list[str]]:
    """Return the answer of core, and a sentence for each list that it lacks. Raises as admit does."""
    cluster = context.cluster

    def ask(view: ClusterView, policy: Policy) -> Answer:
        return admit.admit(body, view, policy, entry)

    answer, lists = context.ask(ask), dict[str, str]()
    if entry is Entry.SHARE_MANAGER:
        lists["who uses the volume"] = cluster.unread(*_OF_VOLUMES)
    if answer.pod is None or not _opted_in(answer.decision):
        return answer, _named(lists)
    lists["pods and nodes"] = cluster.unread(NODE, LONGHORN_NODE, UNFINISHED_POD, CSI_NODE, VIRTUAL_MACHINE_INSTANCE)
    if entry is not Entry.SHARE_MANAGER:
        lists["who else uses the volumes"] = cluster.users_unread()
    if context.webhook.policy.shortlist and len(cluster.node_names()) > SCORED_WHOLE_NODES:
        lists["whether cluster-autoscaler runs"] = cluster.unread(CONFIG_MAP)
    snapshot = cluster.snapshot()
    if isinstance(snapshot, ListedSnapshot):
        snapshot.leave_out(_gone_before(answer.pod, namespace))
    return context.ask(ask), _named(lists)


def _named(lists: Mapping[str, str]) -> list[str]:
    return [f"{what} ({problem})" for what, problem in lists.items() if problem]


def _evidence(answer: Answer, entry: Entry, namespace: str, context: Context) -> Sequence[Finding]:
    """Return what core finds for a pod that it left before it looked for evidence."""
    pod = answer.pod
    if pod is None:
        return ()
    if entry is Entry.SHARE_MANAGER:
        return context.ask(partial(consumers.find_vms, share_manager.volume_of(pod)))
    return context.cluster.ask(partial(share_managers.find_share_managers, pod, namespace))


def _gone_before(incoming: Pod, namespace: str) -> Callable[[Pod], bool]:
    """Whether a pod is gone before `incoming` is created. In a live migration the VM's other pod stays."""
    meta, vm = incoming.metadata, kubevirt.vm_name(incoming)
    starts = meta.label(LABEL_APP) == VIRT_LAUNCHER and meta.label(LABEL_MIGRATION_JOB_UID) is None

    def is_gone(pod: Pod) -> bool:
        if pod.metadata.namespace != namespace:
            return False
        if not starts:
            return pod.metadata.name == meta.name
        return bool(vm) and pod.metadata.label(LABEL_APP) == VIRT_LAUNCHER and kubevirt.vm_name(pod) == vm

    return is_gone


def _written(existing: Pod) -> list[str]:
    decision = existing.metadata.annotation(ANNOTATION_DECISION)
    return [f"at its creation the webhook wrote: {decision}"] if decision else []


def _is_of_vm(pod: Pod | None) -> TypeGuard[Pod]:
    return pod is not None and pod.metadata.label(LABEL_APP) == VIRT_LAUNCHER


def _asked(answer: Answer, namespace: str, context: Context) -> str:
    """Return the value that asks for the VM of the pod, or does not ask, and whose it is; empty for none."""
    if not _is_of_vm(answer.pod):
        return ""
    annotation = answer.pod.metadata.annotation(ANNOTATION_CO_SCHEDULE)
    label = label_of(context.cluster.get(refs.namespace(namespace))) if annotation is None else None
    value, by = asked_value(annotation, label, context.webhook.policy)
    return "" if value is None else f"{by.value} is {value}"


def _opted_in(decision: Decision) -> bool:
    return not isinstance(decision, Leave) or decision.opted_in
