"""A pod that may carry parts of an earlier patch -> the operations that remove these parts.

The inverse of webhook.core.patch.decision_patch. Each call is decided as if the webhook had never seen the pod. If
others changed the pod afterwards, their changes stay: what they added to a required term remains in that term.
Invariants: of the affinity only what the record (webhook.core.patch.applied_patch) names is removed. The webhook's own
annotations are always removed, because a user can have copied them into a VM. Nothing here raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from webhook.core.api.affinity import PREFERRED, REQUIRED, Affinity, InterPodTerms, NodeAffinity
from webhook.core.api.longhorn import near
from webhook.core.api.node_selector import NodeSelectorTerm, pin, prefers_only
from webhook.core.api.pod import Pod
from webhook.core.patch.applied_patch import AppliedPatch, applied_to, owner_uid
from webhook.core.patch.decision_patch import ANNOTATIONS, NODE_AFFINITY, POD_AFFINITY, TERMS
from webhook.core.patch.json_patch import Operation, apply, escaped, remove, tree_of
from webhook.core.reasons import ANNOTATION_APPLIED_PATCH, ANNOTATION_DECISION, ANNOTATION_NO_EVICTION

_OWN_KEYS: Final = (ANNOTATION_DECISION, ANNOTATION_APPLIED_PATCH)


def without_applied_patch(pod: Pod, owner: str) -> tuple[Pod, list[Operation]]:
    """Return the pod without the parts of an earlier patch, and the operations that remove these parts.

    The record of the patch is believed only if it names `owner`, a uid that is known to be that of the pod's owner.
    """
    operations = revert_operations(pod, owner)
    if not operations:
        return pod, []
    tree = tree_of(pod)
    apply(tree, operations)
    metadata = replace(pod.metadata, annotations=tree["metadata"]["annotations"])
    affinity = msgspec.convert(tree["spec"]["affinity"], Affinity | None)
    return replace(pod, metadata=metadata, spec=replace(pod.spec, affinity=affinity)), operations


def as_created(pod: Pod) -> Pod:
    """Return an existing pod as it was at its creation: without its node, and without what an earlier call wrote."""
    before, operations = without_applied_patch(pod, owner_uid(pod.metadata.owner_references))
    affinity = _without_empty(before.spec.affinity) if operations else before.spec.affinity
    return replace(before, spec=replace(before.spec, node_name=None, affinity=affinity))


def _without_empty(affinity: Affinity | None) -> Affinity | None:
    """Drop the empty objects in which the webhook's terms were."""
    if affinity is None:
        return None
    left = replace(
        affinity,
        node_affinity=None if affinity.node_affinity == NodeAffinity() else affinity.node_affinity,
        pod_affinity=None if affinity.pod_affinity == InterPodTerms() else affinity.pod_affinity,
    )
    return None if left == Affinity() else left


def is_same(one: Any, other: Any) -> bool:
    """Whether two trees (json_patch.tree_of) mean the same to the API server and to the scheduler.

    An empty object or list means the same as an absent one. The order of preferences does not matter.
    """
    return bool(_plain(one) == _plain(other))


def _plain(tree: Any) -> Any:
    if isinstance(tree, dict):
        kept = {key: _plain(value) for key, value in tree.items()}
        if kept.get(PREFERRED):
            kept[PREFERRED] = sorted(kept[PREFERRED], key=msgspec.json.encode)
        return {key: value for key, value in kept.items() if value not in (None, {}, [])}
    return [_plain(item) for item in tree] if isinstance(tree, list) else tree


def revert_operations(pod: Pod, owner: str) -> list[Operation]:
    """Return the operations that remove what the record names, and the webhook's annotations."""
    annotations = pod.metadata.annotations or {}
    if not any(key in annotations for key in _OWN_KEYS):
        return []
    applied, affinity = applied_to(pod, owner), pod.spec.affinity
    own_keys = [*_OWN_KEYS, *([ANNOTATION_NO_EVICTION] if applied.no_eviction else [])]
    operations = [remove(f"{ANNOTATIONS}/{escaped(key)}") for key in own_keys if key in annotations]
    if affinity and affinity.node_affinity:
        operations += _revert_preferred(affinity.node_affinity, applied)
        operations += _revert_required(affinity.node_affinity, applied)
    if affinity and affinity.pod_affinity:
        operations += _revert_near_pods(affinity.pod_affinity, applied)
    return operations


def _revert_preferred(own: NodeAffinity, applied: AppliedPatch) -> Iterator[Operation]:
    existing = own.preferred or []
    added: set[int] = set()
    for node, weight, copies in applied.preferred:
        equal = [index for index, term in enumerate(existing) if prefers_only(term, node, weight)]
        added.update(equal[max(0, len(equal) - copies) :])
    yield from _removed(f"{NODE_AFFINITY}/{PREFERRED}", sorted(added), len(existing))


def _revert_near_pods(own: InterPodTerms, applied: AppliedPatch) -> Iterator[Operation]:
    existing, recorded = own.preferred or [], [near(node, weight) for node, weight in applied.near_nodes]
    added = [index for index, term in enumerate(existing) if term in recorded]
    yield from _removed(f"{POD_AFFINITY}/{PREFERRED}", added, len(existing))


def _removed(path: str, indexes: Sequence[int], length: int) -> Iterator[Operation]:
    """Remove the elements at `indexes` of the list at `path`. Remove the list if all elements go."""
    if indexes and len(indexes) == length:
        yield remove(path)
    else:
        yield from (remove(f"{path}/{index}") for index in sorted(indexes, reverse=True))


def _revert_required(own: NodeAffinity, applied: AppliedPatch) -> Iterator[Operation]:
    """Take the webhook's requirement out of each term, and remove copies for further nodes, and what is then empty.

    If more terms name a node of the record than the webhook wrote, somebody else wrote one of them, too. Which one is
    not known. Then all stay, and the pod has terms by a field of its own.
    """
    terms = (own.required.node_selector_terms if own.required else None) or []
    wrote = [pin(node) for node in applied.nodes]
    found = [
        (wrote.index(requirement), index, place)
        for index, term in enumerate(terms)
        for place, requirement in enumerate(term.match_fields or ())
        if requirement in wrote
    ]
    if len(found) > applied.narrowed:
        return
    left: list[NodeSelectorTerm] = []
    gone: list[int] = []
    for nth_node, index, place in sorted({each[1]: each for each in found}.values()):
        fields = terms[index].match_fields or []
        term = NodeSelectorTerm(
            match_expressions=terms[index].match_expressions or None,
            match_fields=[*fields[:place], *fields[place + 1 :]] or None,
        )
        if term.is_empty or (nth_node and term in left):
            gone.append(index)
            continue
        left.append(term)
        path = f"{TERMS}/{index}/matchFields"
        yield remove(f"{path}/{place}" if term.match_fields else path)
    if gone and len(gone) == len(terms):
        yield remove(f"{NODE_AFFINITY}/{REQUIRED}")  # a selector without terms would match no node
    else:
        yield from _removed(TERMS, gone, len(terms))
