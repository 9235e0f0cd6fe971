"""A pod that may carry parts of an earlier patch -> the operations that remove these parts.

The inverse of webhook.core.patch.decision_patch. Each call is decided as if the webhook had never seen the pod. If
others changed the pod afterwards, their changes stay: what they added to a required term remains in that term.
Invariants: of the affinity only what the record (webhook.core.patch.applied_patch) names is removed. The webhook's own
annotations are always removed, because a user can have copied them into a VM. Nothing here raises.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from webhook.core.api.affinity import PREFERRED, REQUIRED, Affinity, InterPodTerms, NodeAffinity
from webhook.core.api.longhorn import near
from webhook.core.api.node_selector import NodeSelectorTerm, pin, prefers_only
from webhook.core.api.pod import Pod
from webhook.core.patch.applied_patch import AppliedPatch, applied_to, fingerprint, owner_uid
from webhook.core.patch.decision_patch import ANNOTATIONS, NODE_AFFINITY, POD_AFFINITY, TERMS
from webhook.core.patch.json_patch import Operation, apply, escaped, remove, tree_of
from webhook.core.reasons import ANNOTATION_APPLIED_PATCH, ANNOTATION_DECISION, ANNOTATION_NO_EVICTION

_OWN_KEYS: Final = (ANNOTATION_DECISION, ANNOTATION_APPLIED_PATCH)
_COMPARED_BY: Final[tuple[Callable[[int, str], object], ...]] = (
    lambda index, checksum: (index, checksum),
    lambda _, checksum: checksum,
    lambda index, _: index,
    lambda *_: None,
)
"""By what a recorded term (its place and checksum) is compared with a term of the pod, the surest comparison first."""


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
    """Remove the requirement from each term that was narrowed in place, and each copy for a further node as a whole."""
    terms = (own.required.node_selector_terms if own.required else None) or []
    narrowed = dict(_narrowed_terms(terms, applied))
    first = next((node for node in applied.nodes if node in narrowed.values()), None)
    gone = [index for index, node in narrowed.items() if node != first or _has_only(terms[index], node)]
    for index, node in narrowed.items():
        if index not in gone:
            yield remove(_requirement_path(terms[index], index, node))
    if gone and len(gone) == len(terms):
        yield remove(f"{NODE_AFFINITY}/{REQUIRED}")  # a selector without terms would match no node
    else:
        yield from _removed(TERMS, gone, len(terms))


def _narrowed_terms(terms: Sequence[NodeSelectorTerm], applied: AppliedPatch) -> Iterator[tuple[int, str]]:
    """Yield (index, node) of the terms that the webhook narrowed, at most as many as the record has.

    For each recorded term comes first the unchanged term in its place, then an unchanged one in another place, then a
    changed one in its place, then any changed one. Two terms can be equal: then the place decides.
    """
    carrying = {index: node for index, term in enumerate(terms) if (node := _narrowed_to(term, applied))}
    checksums = {index: fingerprint(terms[index]) for index in carrying}
    missing = list(applied.terms)
    for compared in _COMPARED_BY:
        wanted = defaultdict[object, list[tuple[int, str]]](list)
        for recorded in missing:
            wanted[compared(*recorded)].append(recorded)
        for index, node in tuple(carrying.items()):
            alike = wanted[compared(index, checksums[index])]
            if alike:
                alike.pop()
                del carrying[index]
                yield index, node
        missing = [recorded for rest in wanted.values() for recorded in rest]


def _narrowed_to(term: NodeSelectorTerm, applied: AppliedPatch) -> str | None:
    """Return the recorded node in the term's last such requirement, because the webhook's requirement was appended."""
    for requirement in reversed(term.match_fields or ()):
        for node in requirement.values or ():
            if node in applied.nodes and requirement == pin(node):
                return node
    return None


def _has_only(term: NodeSelectorTerm, node: str) -> bool:
    return not term.match_expressions and term.match_fields == [pin(node)]


def _requirement_path(term: NodeSelectorTerm, index: int, node: str) -> str:
    """Return the path of the webhook's requirement in the term; that of the list if it is the only requirement."""
    fields = term.match_fields or []
    path = f"{TERMS}/{index}/matchFields"
    return path if len(fields) == 1 else f"{path}/{len(fields) - 1 - fields[::-1].index(pin(node))}"
