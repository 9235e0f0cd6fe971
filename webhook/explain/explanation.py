"""Explanation: all that was found and decided for one object, as one value.

It is put together from core's own functions, over the same bytes that the server would be sent, so it can't say
anything else than what is served. No rule may live here; the form that `-o yaml` and `-o json` print is this value's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, Final, TypeVar

import jsonpatch
from msgspec import Struct

from webhook.core import admit, claims, feasibility
from webhook.core.admit import Answer
from webhook.core.claims import Finding
from webhook.core.feasibility import Verdict
from webhook.core.objects import Pod
from webhook.core.placement import Decision, Leave, Policy, WeightedNode
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, ANNOTATION_DECISION, Reason
from webhook.core.review import BadReview
from webhook.core.view import ClusterView, Needs, Ref
from webhook.documents import BadDocument
from webhook.explain import claim_chain
from webhook.explain.claim_chain import ClaimChain
from webhook.explain.cluster import Cluster

_T = TypeVar("_T")
_ROUNDS_MAX: Final = 16  # from a claim to a node and Longhorn's word on it are five
_LOST: Final = frozenset(
    reason.code for reason in (Reason.CLAIM_LOOKUP_FAILED, Reason.SHARE_MANAGER_POD_UNREAD, Reason.NODE_LOOKUP_FAILED)
)
_READ_BY_YOU: Final = (
    "not everything could be read with your own permissions; the webhook has its service account's, and may see more"
)
_RUNNING_HINT: Final = (
    "this pod has its node already; explain its VirtualMachine instead to see what the next start would get"
)


class Subject(Struct, rename="camel", frozen=True, kw_only=True):
    """The object; `source` is file:line, or TYPE/NAME as it was typed. A pod without a name shows its generateName."""

    kind: str
    namespace: str
    name: str
    source: str


class RunningPod(Struct, rename="camel", frozen=True, kw_only=True):
    """A pod that the object is, or has; `decision` is what its annotation says was decided when it was created."""

    name: str
    phase: str | None
    node: str | None
    decision: str | None


class Question(Struct, frozen=True, kw_only=True):
    """What to explain: the AdmissionReview that the API server would send for `subject`."""

    subject: Subject
    review: dict[str, Any]
    notes: Sequence[str] = ()
    hints: Sequence[str] = ()
    running: Sequence[RunningPod] = ()


class OptIn(Struct, rename="camel", frozen=True, kw_only=True):
    """`mode` is what the pod asked for, None where it is left out; `annotation` is the value that says so."""

    annotation: str | None
    cluster_mode: str
    opted_in: bool
    mode: str | None


class NodeVerdict(Struct, rename="camel", frozen=True, kw_only=True):
    """Whether the pod may run on a node. A candidate is one that some claim leads to."""

    name: str
    candidate: bool
    feasible: bool
    reason: str
    sentence: str


class AffinityChange(Struct, rename="camel", frozen=True, kw_only=True):
    """The pod's spec.affinity."""

    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Explanation(Struct, rename="camel", frozen=True, kw_only=True):
    """One object explained. Every key is always there; what does not apply is null or empty.

    `cluster` says where the facts come from.
    """

    object: Subject
    cluster: str
    notes: Sequence[str]
    hints: Sequence[str]
    running: Sequence[RunningPod]
    opt_in: OptIn
    claims: Sequence[ClaimChain]
    nodes: Sequence[NodeVerdict]
    decision: str
    reason: str
    sentence: str
    required: Sequence[str]
    preferred: Sequence[WeightedNode]
    annotation: str | None
    patch: Sequence[Any]
    affinity: AffinityChange

    @property
    def placed(self) -> bool:
        """Whether the pod is drawn to any node."""
        return bool(self.required or self.preferred)


def explain(question: Question, cluster: Cluster, policy: Policy) -> Explanation:
    """Ask core, and tell all of it.

    Raises:
        BadDocument: core can't read the review.
    """
    subject = question.subject
    try:
        body = json.dumps(question.review, default=str).encode()
        answer = settled(cluster, lambda view: admit.admit(body, view, policy))
    except (BadReview, ValueError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else error
        raise BadDocument(f"{subject.source}: {subject.kind}: {problem}") from None
    decision, pod = answer.decision, answer.pod
    findings, verdicts, trouble = _looked_up(pod, subject.namespace, cluster) if pod else ([], [], [])
    before, after = _before_and_after(answer, body)
    running = [_RUNNING_HINT] if decision.why.reason is Reason.NODE_ALREADY_SET else []
    chains = [claim_chain.of(finding, subject.namespace, cluster.view) for finding in findings]
    lost = (
        [_READ_BY_YOU]
        if _LOST & {*(chain.reason for chain in chains), *(verdict.reason for verdict in verdicts)}
        else []
    )
    return Explanation(
        object=subject,
        cluster=cluster.origin,
        notes=[*question.notes, *trouble, *lost],
        hints=[*question.hints, *running],
        running=question.running,
        opt_in=_opt_in(pod, decision, policy),
        claims=chains,
        nodes=verdicts,
        decision=answer.audit_annotations["decision"],
        reason=decision.why.reason.code,
        sentence=decision.why.sentence,
        required=() if isinstance(decision, Leave) else decision.required,
        preferred=() if isinstance(decision, Leave) else decision.preferred,
        annotation=_dig(after, "metadata", "annotations", ANNOTATION_DECISION),
        patch=answer.operations,
        affinity=AffinityChange(before=_dig(before, "spec", "affinity"), after=_dig(after, "spec", "affinity")),
    )


def settled(cluster: Cluster, ask: Callable[[ClusterView], _T | Needs]) -> _T:
    """The answer of core once everything that it needs was read."""
    for _ in range(_ROUNDS_MAX):
        answer = ask(cluster.view)
        if not isinstance(answer, Needs):
            return answer
        cluster.read(answer.refs)
    raise AssertionError(f"core still needs something after {_ROUNDS_MAX} rounds; please report this")


def _looked_up(pod: Pod, namespace: str, cluster: Cluster) -> tuple[list[Finding], list[NodeVerdict], list[str]]:
    """What is shown beside the decision: each claim, every node of the cluster and every candidate; and what is not."""
    findings = settled(cluster, lambda view: claims.resolve(pod, namespace, view))
    candidates = {finding.node for finding in findings if finding.node}
    listed = cluster.node_names()
    names = sorted(candidates | set(listed.items), key=lambda name: (name not in candidates, name))
    volumes = claims.bound_volumes(findings)
    judged = settled(cluster, lambda view: _all(feasibility.judge(name, pod, volumes, view) for name in names))
    trouble = [f"only nodes that a claim leads to are shown: {listed.trouble}"] if listed.trouble else []
    return findings, [_verdict(verdict, candidates) for verdict in judged], trouble


def _all(judged: Iterable[Verdict | Needs]) -> list[Verdict] | Needs:
    verdicts: list[Verdict] = []
    unread: list[Ref] = []
    for each in judged:
        if isinstance(each, Needs):
            unread += each.refs
        else:
            verdicts.append(each)
    return Needs(tuple(unread)) if unread else verdicts


def _before_and_after(answer: Answer, body: bytes) -> tuple[Any, Any]:
    """The pod that was sent and the pod that the API server makes of it; nothing at all for what is no new pod."""
    if answer.pod is None:
        return None, None
    pod = json.loads(body)["request"]["object"]
    return pod, jsonpatch.JsonPatch([dict(operation) for operation in answer.operations]).apply(pod)


def _opt_in(pod: Pod | None, decision: Decision, policy: Policy) -> OptIn:
    """A pod that core took for opted in asked for its annotation's mode, true standing for the cluster's."""
    annotation = pod.metadata.annotation(ANNOTATION_CO_SCHEDULE) if pod else None
    opted_in = not isinstance(decision, Leave) or decision.opted_in
    asked = policy.mode.value if annotation == "true" else annotation
    return OptIn(
        annotation=annotation,
        cluster_mode=policy.mode.value,
        opted_in=opted_in,
        mode=asked if opted_in else None,
    )


def _verdict(verdict: Verdict, candidates: Container[str]) -> NodeVerdict:
    return NodeVerdict(
        name=verdict.node,
        candidate=verdict.node in candidates,
        feasible=verdict.feasible,
        reason=verdict.why.reason.code,
        sentence=verdict.why.sentence,
    )


def _dig(value: Any, *path: str) -> Any:
    """The field at `path`, None where any step of it is absent or null."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
