"""A pod that may carry our parts -> the operations that take them out: the inverse of
webhook.core.patch.decision_patch.

Every call is decided on as if we had never seen the pod. Where others changed the pod after us, their changes stay:
what they added to a term of ours outlives our requirement in that term.
Invariants: nothing that the record (webhook.core.patch.applied_patch) does not name is removed; nothing here raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from webhook.core.api.affinity import PREFERRED, REQUIRED, Affinity, InterPodTerms, NodeAffinity
from webhook.core.api.node_selector import NodeSelectorTerm, pin, prefers_only
from webhook.core.api.pod import Pod
from webhook.core.patch.applied_patch import Written, fingerprint
from webhook.core.patch.decision_patch import ANNOTATIONS, NODE_AFFINITY, POD_AFFINITY, TERMS, near
from webhook.core.patch.json_patch import Operation, apply, escaped, remove, tree_of
from webhook.core.reasons import ANNOTATION_APPLIED_PATCH, ANNOTATION_DECISION


def taken_out(pod: Pod) -> tuple[Pod, list[Operation]]:
    """The pod without what we wrote into it, and the operations that lead there; itself, and none, where we did not."""
    operations = revert_operations(pod)
    if not operations:
        return pod, []
    tree = tree_of(pod)
    apply(tree, operations)
    metadata = replace(pod.metadata, annotations=tree["metadata"]["annotations"])
    affinity = msgspec.convert(tree["spec"]["affinity"], Affinity | None)
    return replace(pod, metadata=metadata, spec=replace(pod.spec, affinity=affinity)), operations


def is_same(one: Any, other: Any) -> bool:
    """Whether two trees (json_patch.tree_of) say the same to the API server and to the scheduler.

    An empty object or list says what an absent one says, and the scheduler adds preferences up in any order.
    """
    return bool(_plain(one) == _plain(other))


def _plain(tree: Any) -> Any:
    if isinstance(tree, dict):
        kept = {key: _plain(value) for key, value in tree.items()}
        if kept.get(PREFERRED):
            kept[PREFERRED] = sorted(kept[PREFERRED], key=msgspec.json.encode)
        return {key: value for key, value in kept.items() if value not in (None, {}, [])}
    return [_plain(each) for each in tree] if isinstance(tree, list) else tree


def revert_operations(pod: Pod) -> list[Operation]:
    """The operations that take out of `pod` what our annotation tells that we wrote, and our annotations."""
    annotations = pod.metadata.annotations or {}
    if ANNOTATION_APPLIED_PATCH not in annotations:
        return []
    ours = (key for key in (ANNOTATION_DECISION, ANNOTATION_APPLIED_PATCH) if key in annotations)
    found = [remove(f"{ANNOTATIONS}/{escaped(key)}") for key in ours]
    written, affinity = from_annotation(annotations[ANNOTATION_APPLIED_PATCH]), pod.spec.affinity
    if affinity and affinity.node_affinity:
        found += _wishes(affinity.node_affinity, written)
        found += _pins(affinity.node_affinity, written)
    if affinity and affinity.pod_affinity:
        found += _company(affinity.pod_affinity, written)
    return found


def _wishes(own: NodeAffinity, written: Written) -> Iterator[Operation]:
    there = own.preferred or []
    ours: set[int] = set()
    for node, weight, copies in written.preferred:
        alike = [index for index, term in enumerate(there) if prefers_only(term, node, weight)]
        ours.update(alike[max(0, len(alike) - copies) :])
    yield from _removed(f"{NODE_AFFINITY}/{PREFERRED}", sorted(ours), len(there))


def _company(own: InterPodTerms, written: Written) -> Iterator[Operation]:
    there, ours = own.preferred or [], [near(namespace, uid) for namespace, uid in written.near]
    found = [index for index, term in enumerate(there) if term in ours]
    yield from _removed(f"{POD_AFFINITY}/{PREFERRED}", found, len(there))


def _removed(path: str, ours: Sequence[int], many: int) -> Iterator[Operation]:
    """Remove these elements of a list of so many; the list itself where none is left."""
    if ours and len(ours) == many:
        yield remove(path)
    else:
        yield from (remove(f"{path}/{index}") for index in sorted(ours, reverse=True))


def _pins(own: NodeAffinity, written: Written) -> Iterator[Operation]:
    """Our requirement goes from each term that was narrowed in place; the copies of it for further nodes go whole."""
    terms = (own.required.node_selector_terms if own.required else None) or []
    ours = dict(_ours(terms, written))
    first = next((node for node in written.nodes if node in ours.values()), None)
    gone = [index for index, node in ours.items() if node != first or _is_all(terms[index], node)]
    narrowed = [index for index in ours if index not in gone]
    for index in narrowed:
        yield remove(_place(terms[index], index, ours[index]))
    if gone and len(gone) == len(terms):
        yield remove(f"{NODE_AFFINITY}/{REQUIRED}")  # no term at all would match no node
    else:
        yield from _removed(TERMS, gone, len(terms))


def _ours(terms: Sequence[NodeSelectorTerm], written: Written) -> Iterator[tuple[int, str]]:
    """The terms that we narrowed, each with its node: those that are as we left them, then those that were changed.

    Of the changed ones there are no more than we miss, and one that stands where ours stood comes first.
    """
    missed = list(written.terms)
    changed: list[tuple[int, str]] = []
    for index, term in enumerate(terms):
        node = _pinned_by_us(term, written)
        if node is None:
            continue
        mark = fingerprint(term)
        found = next((each for each in missed if each[1] == mark), None)
        if found is not None:
            missed.remove((index, mark) if (index, mark) in missed else found)
            yield index, node
        else:
            changed.append((index, node))
    places = {index for index, _ in missed}
    changed.sort(key=lambda each: each[0] not in places)
    yield from changed[: len(missed)]


def _pinned_by_us(term: NodeSelectorTerm, written: Written) -> str | None:
    """The node that the term's last requirement for one of our nodes names: ours was appended."""
    for requirement in reversed(term.match_fields or ()):
        for node in requirement.values or ():
            if node in written.nodes and requirement == pin(node):
                return node
    return None


def _is_all(term: NodeSelectorTerm, node: str) -> bool:
    return not term.match_expressions and term.match_fields == [pin(node)]


def _place(term: NodeSelectorTerm, index: int, node: str) -> str:
    """Where the term has our requirement: the list of requirements itself, where it is the only one."""
    fields = term.match_fields or []
    path = f"{TERMS}/{index}/matchFields"
    return path if len(fields) == 1 else f"{path}/{len(fields) - 1 - fields[::-1].index(pin(node))}"
