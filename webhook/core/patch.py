"""A decision as RFC 6902 operations, and the proof that they apply.

Only spec.affinity and our own annotation are ever touched, by `add` and `copy` alone: what a pod carries is appended
to, never rewritten, so no field that we don't know can be lost.
Invariant: a decision gives no operations for a pod that already carries it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from webhook.core.affinity import pin, pinned_nodes, prefers_only
from webhook.core.objects import PREFERRED, REQUIRED, NodeAffinity, NodeSelectorTerm, Pod
from webhook.core.placement import TOP_WEIGHT, Decision, Leave, Pin, Steer, WeightedNode, tell
from webhook.core.pod_rules import InterPodTerms
from webhook.core.reasons import ANNOTATION_DECISION
from webhook.core.view import Key

Operation = Mapping[str, Any]

_AFFINITY: Final = "/spec/affinity"
_NODE_AFFINITY: Final = f"{_AFFINITY}/nodeAffinity"
_TERMS: Final = f"{_NODE_AFFINITY}/{REQUIRED}/nodeSelectorTerms"
_POD_AFFINITY: Final = f"{_AFFINITY}/podAffinity"
_ANNOTATIONS: Final = "/metadata/annotations"
_INSISTENCE: Final = 10  # of 11 parts then 10 are the wish's: more adds next to nothing
_ANNOTATIONS_MAX_BYTES: Final = 256 * 1024  # apimachinery objectmeta.go TotalAnnotationSizeLimitB: more is refused
_UTF8_MAX_BYTES: Final = 4  # of one character
_TEXT_MAX_CHARS: Final = 1024  # of our annotation; names are at most 253 characters each


def for_decision(pod: Pod, decision: Decision) -> list[Operation]:
    """The operations that carry out `decision` on `pod`; none where there is nothing to add.

    A pod that did not opt in gets none. One that did has the decision in its annotation, whatever was decided.
    """
    if isinstance(decision, Leave):
        return list(_annotate(pod, decision)) if decision.opted_in else []
    return [*_draw(pod, decision), *_annotate(pod, decision)]


def _draw(pod: Pod, drawn: Pin) -> Iterator[Operation]:
    """Affinity and nodeAffinity are absent or null in real pods: `add` goes to the deepest parent that is there."""
    affinity = pod.spec.affinity
    if affinity is None:
        yield _add(_AFFINITY, {"nodeAffinity": _node_affinity(drawn)})
    elif affinity.node_affinity is None:
        yield _add(_NODE_AFFINITY, _node_affinity(drawn))
    else:
        if drawn.required:
            yield from _narrow(affinity.node_affinity, drawn.required)
        elif drawn.shortlist:
            yield from _narrow(affinity.node_affinity, drawn.shortlist, keep_pinned=True)
        yield from _prefer(affinity.node_affinity, drawn.preferred, insist=isinstance(drawn, Steer))
    if isinstance(drawn, Steer) and drawn.toward:
        yield from _draw_to_pods(affinity.pod_affinity if affinity else None, drawn.toward)


def _draw_to_pods(own: InterPodTerms | None, instances: Sequence[Key]) -> Iterator[Operation]:
    """Preferences for where the pods of these VMs are, appended; nodeAffinity is there by now."""
    terms = [_near(instance) for instance in instances]
    if own is None:
        yield _add(_POD_AFFINITY, {PREFERRED: terms})
    elif own.preferred:
        yield from (_add(f"{_POD_AFFINITY}/{PREFERRED}/-", term) for term in terms if term not in own.preferred)
    else:
        yield _add(f"{_POD_AFFINITY}/{PREFERRED}", terms)


def _near(instance: Key) -> dict[str, Any]:
    """KubeVirt labels a VM's pods with its uid (pkg/virt-controller/services/template.go, CreatedByLabel)."""
    term = {
        "labelSelector": {"matchLabels": {"kubevirt.io/created-by": instance.name}},
        "namespaces": [instance.namespace],
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"weight": TOP_WEIGHT, "podAffinityTerm": term}


def _node_affinity(drawn: Pin) -> dict[str, Any]:
    among = drawn.required or drawn.shortlist
    required = {REQUIRED: _selector(among)} if among else {}
    return {**required, PREFERRED: [_wish(wish) for wish in drawn.preferred]}


def _narrow(own: NodeAffinity, nodes: Sequence[str], *, keep_pinned: bool = False) -> Iterator[Operation]:
    """AND `nodes` (any of them) into every term that could match; an empty one matches nothing, and must stay so.

    The terms are ORed, and a requirement names one node: with several nodes each term is copied once per further
    node. A term that names one of `nodes` already is narrow enough. One that names only others can't match any of
    `nodes`, and is made to match nothing at all, unless `keep_pinned`.
    """
    if own.required is None:
        yield _add(f"{_NODE_AFFINITY}/{REQUIRED}", _selector(nodes))
        return
    terms = own.required.node_selector_terms or []
    end = len(terms)
    for index, term in enumerate(terms):
        named = pinned_nodes(term)
        if term.is_empty or not named.isdisjoint(nodes) or (named and keep_pinned):
            continue
        for node in nodes[1:] if not named else ():
            yield {"op": "copy", "from": f"{_TERMS}/{index}", "path": f"{_TERMS}/-"}
            yield _and(term, end, node)
            end += 1
        yield _and(term, index, nodes[0])


def _and(term: NodeSelectorTerm, index: int, node: str) -> Operation:
    path = f"{_TERMS}/{index}/matchFields"
    return _add(f"{path}/-", _requirement(node)) if term.match_fields else _add(path, [_requirement(node)])


def _prefer(own: NodeAffinity, wishes: Sequence[WeightedNode], *, insist: bool) -> Iterator[Operation]:
    """Append the wishes that are not there yet.

    The scheduler adds the weights of all terms that match a node, and scales the sum to the best node's: beside a term
    that matches every node but one, as Longhorn's against a delinquent node does, a wish has half its weight. To
    `insist` it is written several times there.
    """
    path = f"{_NODE_AFFINITY}/{PREFERRED}"
    there = own.preferred or []
    present = [sum(prefers_only(term, wish.node, wish.weight) for term in there) for wish in wishes]
    copies = _INSISTENCE if insist and sum(present) < len(there) else 1
    lacking = [wish for wish, had in zip(wishes, present, strict=True) for _ in range(copies - had)]
    if there:
        yield from (_add(f"{path}/-", _wish(wish)) for wish in lacking)
    elif lacking:
        yield _add(path, [_wish(wish) for wish in lacking])


def _annotate(pod: Pod, decision: Decision) -> Iterator[Operation]:
    """Our annotation, unless it is there already or would make the API server refuse the pod for its size."""
    text = tell(decision)[:_TEXT_MAX_CHARS]
    annotations = pod.metadata.annotations
    if annotations is None:
        yield _add(_ANNOTATIONS, {ANNOTATION_DECISION: text})
        return
    if annotations.get(ANNOTATION_DECISION) != text and _fits({**annotations, ANNOTATION_DECISION: text}):
        yield _add(f"{_ANNOTATIONS}/{ANNOTATION_DECISION.replace('/', '~1')}", text)


def _fits(annotations: Mapping[str, str]) -> bool:
    """Whether the API server takes as many bytes of annotations. Few characters need no counting of their bytes."""
    chars = sum(map(len, annotations)) + sum(map(len, annotations.values()))
    if chars * _UTF8_MAX_BYTES <= _ANNOTATIONS_MAX_BYTES:
        return True
    return sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items()) <= _ANNOTATIONS_MAX_BYTES


def _requirement(node: str) -> Any:
    return msgspec.to_builtins(pin(node))


def _selector(nodes: Sequence[str]) -> dict[str, Any]:
    return {"nodeSelectorTerms": [{"matchFields": [_requirement(node)]} for node in nodes]}


def _wish(wish: WeightedNode) -> dict[str, Any]:
    return {"weight": wish.weight, "preference": {"matchFields": [_requirement(wish.node)]}}


def _add(path: str, value: object) -> Operation:
    return {"op": "add", "path": path, "value": value}


def flaw(pod: Pod, operations: Sequence[Operation]) -> str | None:
    """What would keep the operations from applying to `pod`; None where they apply.

    The API server rejects a pod whose patch does not apply, whatever failurePolicy says (apiserver
    mutating/dispatcher.go), so they are carried out on a copy of the two places they may touch before they are sent.
    Absent and null are the same there: neither can be the parent of anything.
    """
    annotations, affinity = pod.metadata.annotations, pod.spec.affinity
    tree = {
        "metadata": {"annotations": None if annotations is None else dict(annotations)},
        "spec": {"affinity": msgspec.to_builtins(affinity)},
    }
    for operation in operations:
        try:
            _apply(tree, operation)
        except (KeyError, IndexError, ValueError, TypeError):
            return f"{operation['op']} {operation['path']}"
    return None


def _apply(tree: Any, operation: Operation) -> None:
    parent, key = _locate(tree, operation["path"])
    if operation["op"] == "copy":
        holder, source = _locate(tree, operation["from"])
        value = copy.deepcopy(holder[_index(source) if isinstance(holder, list) else source])
    else:
        value = operation["value"]
    if isinstance(parent, dict):
        parent[key] = value
    elif key == "-":
        parent.append(value)
    else:
        parent.insert(_index(key), value)


def _locate(tree: Any, pointer: str) -> tuple[Any, str]:
    """(the container, the last key) of a JSON Pointer, RFC 6901."""
    keys = pointer.split("/")
    if "~" in pointer:
        keys = [key.replace("~1", "/").replace("~0", "~") for key in keys]
    for key in keys[1:-1]:
        tree = tree[_index(key) if isinstance(tree, list) else key]
    if not isinstance(tree, dict | list):
        raise TypeError(pointer)
    return tree, keys[-1]


def _index(key: str) -> int:
    if not key.isdecimal():
        raise ValueError(key)
    return int(key)
