"""A decision as RFC 6902 operations on a pod that carries nothing of ours.

Only spec.affinity and our own annotations are ever touched, by `add` and `copy` alone: what a pod carries is appended
to, never rewritten, so no field that we don't know can be lost. What was written is recorded in an annotation, by which
`webhook.core.patch.unpatch` takes it out again.
Invariant: without the record nothing is written into the affinity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from webhook.core.api.affinity import PREFERRED, REQUIRED, InterPodTerms, NodeAffinity
from webhook.core.api.node_selector import NodeSelectorTerm, pin, pinned_nodes, prefers_only
from webhook.core.api.pod import Pod
from webhook.core.decision import TOP_WEIGHT, Decision, Leave, Pin, Steer, WeightedNode
from webhook.core.patch.applied_patch import Written, fingerprint
from webhook.core.patch.json_patch import Operation, add, copied, escaped
from webhook.core.reasons import ANNOTATION_APPLIED_PATCH, ANNOTATION_DECISION, Reason, Why

AFFINITY: Final = "/spec/affinity"
NODE_AFFINITY: Final = f"{AFFINITY}/nodeAffinity"
TERMS: Final = f"{NODE_AFFINITY}/{REQUIRED}/nodeSelectorTerms"
POD_AFFINITY: Final = f"{AFFINITY}/podAffinity"
ANNOTATIONS: Final = "/metadata/annotations"
_INSISTENCE: Final = 10  # of 11 parts then 10 are the wish's: more adds next to nothing
_ANNOTATIONS_MAX_BYTES: Final = 256 * 1024  # apimachinery objectmeta.go TotalAnnotationSizeLimitB: more is refused
_UTF8_MAX_BYTES: Final = 4  # of one character
_TEXT_MAX_CHARS: Final = 1024  # of our annotation; names are at most 253 characters each


def for_decision(pod: Pod, decision: Decision) -> list[Operation] | Why:
    """The operations that carry out `decision` on `pod`; or why they can't be written into it.

    A pod that did not opt in gets none. One that did has the decision in its annotation, whatever was decided.
    """
    if isinstance(decision, Leave):
        return list(_annotate(pod, decision, None)) if decision.opted_in else []
    drawing = _Drawing(pod, decision)
    if not drawing.operations:
        return list(_annotate(pod, decision, None))
    annotated = list(_annotate(pod, decision, drawing.written()))
    return [*drawing.operations, *annotated] if annotated else Reason.ANNOTATIONS_FULL.why()


class _Drawing:
    """A pod is drawn to nodes: the operations, and what of them is recorded.

    Affinity and nodeAffinity are absent or null in real pods: `add` goes to the deepest parent that is there.
    """

    def __init__(self, pod: Pod, drawn: Pin) -> None:
        self.operations: list[Operation] = []
        self._nodes = drawn.required or drawn.shortlist
        self._terms: list[tuple[int, str]] = []
        self._copies: list[tuple[str, int, int]] = []
        affinity, steers = pod.spec.affinity, isinstance(drawn, Steer)
        self._toward = drawn.toward if isinstance(drawn, Steer) else ()
        node_affinity = affinity.node_affinity if affinity else None
        if node_affinity is None:
            made = self._node_affinity(drawn.preferred)
            self._add(*((NODE_AFFINITY, made) if affinity else (AFFINITY, {"nodeAffinity": made})))
        else:
            if self._nodes:
                self._narrow(node_affinity, keep_pinned=not drawn.required)
            self._prefer(node_affinity, drawn.preferred, insist=steers)
        if self._toward:
            self._draw_to_pods(affinity.pod_affinity if affinity else None)

    def written(self) -> Written:
        """The record. Without a term of ours there is nothing that the nodes would tell."""
        return Written(
            nodes=self._nodes if self._terms else (),
            terms=tuple(self._terms),
            preferred=tuple(self._copies),
            near=tuple(self._toward),
        )

    def _add(self, path: str, value: object) -> None:
        self.operations.append(add(path, value))

    def _node_affinity(self, wishes: Sequence[WeightedNode]) -> dict[str, Any]:
        self._copies += [(wish.node, wish.weight, 1) for wish in wishes]
        required = {REQUIRED: self._selector()} if self._nodes else {}
        return {**required, PREFERRED: [_wish(wish) for wish in wishes]}

    def _selector(self) -> dict[str, Any]:
        marks = (fingerprint(NodeSelectorTerm(match_fields=[pin(node)])) for node in self._nodes)
        self._terms += enumerate(marks)
        return {"nodeSelectorTerms": [{"matchFields": [_requirement(node)]} for node in self._nodes]}

    def _narrow(self, own: NodeAffinity, *, keep_pinned: bool) -> None:
        """AND the nodes (any of them) into every term that could match; an empty one matches nothing, and must stay so.

        The terms are ORed, and a requirement names one node: with several nodes each term is copied once per further
        node. A term that names one of the nodes already is narrow enough. One that names only others can't match any
        of them, and is made to match nothing at all, unless `keep_pinned`.
        """
        if own.required is None:
            self._add(f"{NODE_AFFINITY}/{REQUIRED}", self._selector())
            return
        terms = own.required.node_selector_terms or []
        end = len(terms)
        for index, term in enumerate(terms):
            named = pinned_nodes(term)
            if term.is_empty or not named.isdisjoint(self._nodes) or (named and keep_pinned):
                continue
            for node in self._nodes[1:] if not named else ():
                self.operations.append(copied(f"{TERMS}/{index}", f"{TERMS}/-"))
                self._and(term, end, node)
                end += 1
            self._and(term, index, self._nodes[0])

    def _and(self, term: NodeSelectorTerm, index: int, node: str) -> None:
        path = f"{TERMS}/{index}/matchFields"
        self._add(*((f"{path}/-", _requirement(node)) if term.match_fields else (path, [_requirement(node)])))
        narrowed = replace(term, match_fields=[*(term.match_fields or ()), pin(node)])
        self._terms.append((index, fingerprint(narrowed)))

    def _prefer(self, own: NodeAffinity, wishes: Sequence[WeightedNode], *, insist: bool) -> None:
        """Append the wishes that are not there yet.

        The scheduler adds the weights of all terms that match a node, and scales the sum to the best node's: beside a
        term that matches every node but one, as Longhorn's against a delinquent node does, a wish has half its weight.
        To `insist` it is written several times there.
        """
        path, there = f"{NODE_AFFINITY}/{PREFERRED}", own.preferred or []
        present = [sum(prefers_only(term, wish.node, wish.weight) for term in there) for wish in wishes]
        most = _INSISTENCE if insist and sum(present) < len(there) else 1
        copies = [max(0, most - had) for had in present]
        lacking = [_wish(wish) for wish, many in zip(wishes, copies, strict=True) for _ in range(many)]
        self._copies += [(wish.node, wish.weight, many) for wish, many in zip(wishes, copies, strict=True) if many]
        if there:
            for wish in lacking:
                self._add(f"{path}/-", wish)
        elif lacking:
            self._add(path, lacking)

    def _draw_to_pods(self, own: InterPodTerms | None) -> None:
        """Preferences for where the pods of these VMs are, appended; nodeAffinity is there by now."""
        path, there = f"{POD_AFFINITY}/{PREFERRED}", (own.preferred if own else None) or []
        self._toward = tuple(key for key in self._toward if near(*key) not in there)
        terms = [near(*key) for key in self._toward]
        if own is None:
            self._add(POD_AFFINITY, {PREFERRED: terms})
        elif there:
            for term in terms:
                self._add(f"{path}/-", term)
        else:
            self._add(path, terms)


def near(namespace: str, uid: str) -> dict[str, Any]:
    """The preference for where the pods of a VirtualMachineInstance are.

    KubeVirt labels them with its uid (pkg/virt-controller/services/template.go, CreatedByLabel).
    """
    term = {
        "labelSelector": {"matchLabels": {"kubevirt.io/created-by": uid}},
        "namespaces": [namespace],
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"weight": TOP_WEIGHT, "podAffinityTerm": term}


def _annotate(pod: Pod, decision: Decision, written: Written | None) -> Iterator[Operation]:
    """Our annotations; none where they would make the API server refuse the pod for its size."""
    ours = {ANNOTATION_DECISION: tell(decision)[:_TEXT_MAX_CHARS]}
    if written is not None:
        ours[ANNOTATION_APPLIED_PATCH] = to_annotation(written)
    annotations = pod.metadata.annotations
    if annotations is None:
        yield add(ANNOTATIONS, ours)
    elif _fits({**annotations, **ours}):
        lacking = ((key, value) for key, value in ours.items() if annotations.get(key) != value)
        yield from (add(f"{ANNOTATIONS}/{escaped(key)}", value) for key, value in lacking)


def _fits(annotations: Mapping[str, str]) -> bool:
    """Whether the API server takes as many bytes of annotations. Few characters need no counting of their bytes."""
    chars = sum(map(len, annotations)) + sum(map(len, annotations.values()))
    if chars * _UTF8_MAX_BYTES <= _ANNOTATIONS_MAX_BYTES:
        return True
    return sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items()) <= _ANNOTATIONS_MAX_BYTES


def _requirement(node: str) -> Any:
    return msgspec.to_builtins(pin(node))


def _wish(wish: WeightedNode) -> dict[str, Any]:
    return {"weight": wish.weight, "preference": {"matchFields": [_requirement(wish.node)]}}
