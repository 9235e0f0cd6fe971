"""A decision as RFC 6902 operations on a pod that carries nothing of the webhook yet.

The operations touch only spec.affinity and the webhook's annotations, by `add` and `copy` alone. They append and never
rewrite, so that the pod can't lose a field that the webhook does not know. An annotation records what they write;
`webhook.core.patch.unpatch` removes it again by that record. Invariant: no operation touches the affinity without the
record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from webhook.core.api.affinity import PREFERRED, REQUIRED, InterPodTerms, NodeAffinity
from webhook.core.api.longhorn import near
from webhook.core.api.node_selector import pin, prefers_only
from webhook.core.api.pod import Pod
from webhook.core.decision import (
    NODES_SHOWN,
    Decision,
    Leave,
    Pin,
    Steer,
    WeightedNode,
    decision_sentence,
    outcome,
    why_not_required,
)
from webhook.core.opt_in import OptedInBy
from webhook.core.patch.applied_patch import AppliedPatch, owner_uid, to_annotation
from webhook.core.patch.json_patch import Operation, add, copied, escaped
from webhook.core.reasons import (
    ANNOTATION_APPLIED_PATCH,
    ANNOTATION_DECISION,
    ANNOTATION_NO_EVICTION,
    Reason,
    Why,
)

AFFINITY: Final = "/spec/affinity"
NODE_AFFINITY: Final = f"{AFFINITY}/nodeAffinity"
TERMS: Final = f"{NODE_AFFINITY}/{REQUIRED}/nodeSelectorTerms"
POD_AFFINITY: Final = f"{AFFINITY}/podAffinity"
ANNOTATIONS: Final = "/metadata/annotations"
_COPIES: Final = 10  # of a preference: ten copies beside one foreign term have 10/11 of the weight; more add little
_ANNOTATIONS_MAX_BYTES: Final = 256 * 1024  # apimachinery objectmeta.go TotalAnnotationSizeLimitB: more is rejected
_UTF8_MAX_BYTES: Final = 4  # of one character


def for_decision(pod: Pod, decision: Decision) -> list[Operation] | Why:
    """Return the operations that carry out `decision` on `pod`; or why they can't be written into the pod.

    A pod that did not opt in gets none. A pod that opted in gets the decision as an annotation, also if it is Leave.
    """
    if isinstance(decision, Leave):
        return for_leave(pod, decision)
    affinity_patch = _AffinityPatch(pod, decision)
    if not affinity_patch.operations:
        return list(_annotate(pod, decision, AppliedPatch()))
    annotations = list(_annotate(pod, decision, affinity_patch.record()))
    return [*affinity_patch.operations, *annotations] if annotations else Reason.ANNOTATIONS_FULL.why()


def for_leave(pod: Pod, decision: Leave) -> list[Operation]:
    """Return the operations for a pod whose affinity stays: the decision as an annotation, if the VM opted in."""
    return annotated(pod, decision) if decision.opted_in else []


def annotated(pod: Pod, decision: Leave) -> list[Operation]:
    """Return the operations that write the decision as an annotation, and nothing else."""
    return list(_annotate(pod, decision, AppliedPatch()))


class _AffinityPatch:
    """The operations that write a Pin into the pod's affinity, and their record.

    Affinity and nodeAffinity are absent or null in real pods: `add` goes to the deepest parent that exists.
    """

    def __init__(self, pod: Pod, decision: Pin) -> None:
        self.operations: list[Operation] = []
        self._nodes = decision.required or decision.shortlist
        self._narrowed = 0
        self._preferred: list[tuple[str, int, int]] = []
        self._near = decision.near if isinstance(decision, Steer) else ()
        self._no_eviction = isinstance(decision, Steer) and pod.metadata.annotation(ANNOTATION_NO_EVICTION) is None
        preferred = decision.preferred if not isinstance(decision, Steer) or decision.by_node else ()
        affinity = pod.spec.affinity
        new: dict[str, Any] = {}
        if affinity and affinity.node_affinity:
            if self._nodes:
                self._narrow(affinity.node_affinity)
            self._prefer(affinity.node_affinity, preferred, copies=_COPIES if isinstance(decision, Steer) else 1)
        elif self._nodes or preferred:
            new["nodeAffinity"] = self._node_affinity(preferred)
        if affinity and affinity.pod_affinity:
            self._prefer_near(affinity.pod_affinity)
        elif self._near:
            new["podAffinity"] = {PREFERRED: [near(weighted.node, weighted.weight) for weighted in self._near]}
        if affinity is None:
            self._add(AFFINITY, new)
        else:
            for kind, terms in new.items():
                self._add(f"{AFFINITY}/{kind}", terms)

    def record(self) -> AppliedPatch:
        """Return what the operations add. It names nodes only if a required term was written."""
        return AppliedPatch(
            nodes=self._nodes if self._narrowed else (),
            narrowed=self._narrowed,
            preferred=tuple(self._preferred),
            near_nodes=tuple((weighted.node, weighted.weight) for weighted in self._near),
            no_eviction=self._no_eviction,
        )

    def _add(self, path: str, value: object) -> None:
        self.operations.append(add(path, value))

    def _node_affinity(self, preferred: Sequence[WeightedNode]) -> dict[str, Any]:
        self._preferred += [(weighted.node, weighted.weight, 1) for weighted in preferred]
        required = {REQUIRED: self._selector()} if self._nodes else {}
        terms = [_preferred_term(weighted) for weighted in preferred]
        return {**required, **({PREFERRED: terms} if terms else {})}

    def _selector(self) -> dict[str, Any]:
        self._narrowed = len(self._nodes)
        return {"nodeSelectorTerms": [{"matchFields": [_requirement(node)]} for node in self._nodes]}

    def _narrow(self, own: NodeAffinity) -> None:
        """AND the nodes (any of them) into every term that can match. An empty term matches nothing and stays empty.

        The terms are ORed, and a requirement names one node: with several nodes each term is copied once for each
        further node. No term has a requirement on a field yet (webhook.core.scheduler.never_required).
        """
        if own.required is None:
            self._add(f"{NODE_AFFINITY}/{REQUIRED}", self._selector())
            return
        terms = own.required.node_selector_terms or []
        end = len(terms)
        for index, term in enumerate(terms):
            if term.is_empty:
                continue
            for node in self._nodes[1:]:
                self.operations.append(copied(f"{TERMS}/{index}", f"{TERMS}/-"))
                self._and(end, node)
                end += 1
            self._and(index, self._nodes[0])

    def _and(self, index: int, node: str) -> None:
        self._add(f"{TERMS}/{index}/matchFields", [_requirement(node)])
        self._narrowed += 1

    def _prefer(self, own: NodeAffinity, preferred: Sequence[WeightedNode], *, copies: int) -> None:
        """Append the preferences that the pod does not have yet; `copies` of each if the pod has terms of others.

        The scheduler adds the weights of all terms that match a node, and scales the sum to the best node's. Longhorn
        writes a term against a delinquent node, which matches every node except that one. Beside such a term a single
        preference has only half its weight.
        """
        path, existing = f"{NODE_AFFINITY}/{PREFERRED}", own.preferred or []
        present = [
            sum(prefers_only(term, weighted.node, weighted.weight) for term in existing) for weighted in preferred
        ]
        wanted = copies if sum(present) < len(existing) else 1
        missing = [(weighted, wanted - had) for weighted, had in zip(preferred, present, strict=True) if had < wanted]
        self._preferred += [(weighted.node, weighted.weight, count) for weighted, count in missing]
        self._append(path, [_preferred_term(weighted) for weighted, count in missing for _ in range(count)], existing)

    def _prefer_near(self, own: InterPodTerms) -> None:
        """Append the preferred pod affinity terms that the pod does not have yet."""
        existing = own.preferred or []
        self._near = tuple(weighted for weighted in self._near if near(weighted.node, weighted.weight) not in existing)
        terms = [near(weighted.node, weighted.weight) for weighted in self._near]
        self._append(f"{POD_AFFINITY}/{PREFERRED}", terms, existing)

    def _append(self, path: str, terms: Sequence[object], existing: Sequence[object]) -> None:
        """Append `terms` to the list at `path`, which can be absent if nothing is `existing`."""
        if existing:
            for term in terms:
                self._add(f"{path}/-", term)
        elif terms:
            self._add(path, terms)


def _annotate(pod: Pod, decision: Decision, applied: AppliedPatch) -> Iterator[Operation]:
    """Yield the annotations of a decision. A steered share-manager pod gets one for the descheduler, too.

    The descheduler's plugin RemovePodsViolatingNodeAffinity can evict a pod for a preference, and that stalls NFS. With
    noEvictionPolicy Mandatory (plugins/defaultevictor/defaultevictor.go, Filter) this annotation prevents it.
    """
    new = {
        ANNOTATION_DECISION: decision_sentence(decision),
        ANNOTATION_APPLIED_PATCH: to_annotation(_recorded(pod, decision, applied)),
    }
    if applied.no_eviction:
        new[ANNOTATION_NO_EVICTION] = ""
    return _write(pod, new)


def _recorded(pod: Pod, decision: Decision, applied: AppliedPatch) -> AppliedPatch:
    """Return the record with the decision, and with the owner of the pod."""
    nodes = () if isinstance(decision, Leave) else decision.nodes
    why = why_not_required(decision)
    return replace(
        applied,
        owner=owner_uid(pod.metadata.owner_references),
        by="" if decision.by is OptedInBy.VM else decision.by.name,
        decided=outcome(decision),
        on=nodes[:NODES_SHOWN],
        more=max(0, len(nodes) - NODES_SHOWN),
        reason=why.reason.code if why else "",
        because=why.sentence if why else "",
    )


def _write(pod: Pod, new: Mapping[str, str]) -> Iterator[Operation]:
    """Yield the annotations; none if they are too large for the API server together with the pod's own."""
    annotations = pod.metadata.annotations
    if annotations is None:
        yield add(ANNOTATIONS, new)
    elif _fits({**annotations, **new}):
        changed = ((key, value) for key, value in new.items() if annotations.get(key) != value)
        yield from (add(f"{ANNOTATIONS}/{escaped(key)}", value) for key, value in changed)


def _fits(annotations: Mapping[str, str]) -> bool:
    """Whether the API server accepts annotations of this size. Bytes are counted only if the characters are many."""
    chars = sum(map(len, annotations)) + sum(map(len, annotations.values()))
    if chars * _UTF8_MAX_BYTES <= _ANNOTATIONS_MAX_BYTES:
        return True
    return sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items()) <= _ANNOTATIONS_MAX_BYTES


def _requirement(node: str) -> Any:
    return msgspec.to_builtins(pin(node))


def _preferred_term(weighted: WeightedNode) -> dict[str, Any]:
    return {"weight": weighted.weight, "preference": {"matchFields": [_requirement(weighted.node)]}}
