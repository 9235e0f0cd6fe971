"""A pod that is there -> the pod as it was when it was created, as far as the webhook was asked about it.

What the scheduler and we have written since is taken out again: the node, and what stands behind our annotation.
Invariant: the inverse of webhook.core.patch for every pod that names no node by metadata.name, and no VM by its uid,
itself.
"""

from __future__ import annotations

from typing import Any, Final

from webhook.core.objects import METADATA_NAME, PREFERRED, REQUIRED
from webhook.core.reasons import ANNOTATION_DECISION

_Json = dict[str, Any]
REQUIRED_WORD: Final = "required on "
_DRAWN_WORDS: Final = (REQUIRED_WORD, "preferred on ")
_CREATED_BY: Final = "kubevirt.io/created-by"
_SHORT_LIST_WORDS: Final = "; required on any of "  # webhook.core.placement.tell, of a preference


def as_created(pod: _Json) -> _Json:
    """The pod without its node, our annotation, and the affinity that the annotation tells of."""
    metadata, spec = pod.get("metadata"), pod.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict):
        return pod
    annotations = metadata.get("annotations")
    told = annotations.get(ANNOTATION_DECISION) if isinstance(annotations, dict) else None
    before = {**pod, "spec": {key: value for key, value in spec.items() if key != "nodeName"}}
    if not isinstance(annotations, dict) or told is None:
        return before
    kept = {key: value for key, value in annotations.items() if key != ANNOTATION_DECISION}
    before["metadata"] = {**metadata, "annotations": kept}
    if str(told).startswith(_DRAWN_WORDS) and isinstance(spec.get("affinity"), dict):
        hard = str(told).startswith(REQUIRED_WORD) or _SHORT_LIST_WORDS in str(told)
        _set(before["spec"], "affinity", _undrawn(spec["affinity"], hard=hard))
    return before


def _undrawn(affinity: _Json, *, hard: bool) -> _Json:
    """The affinity without our requirement or short list (where it is `hard`), and without our preferences."""
    node_affinity, pod_affinity = affinity.get("nodeAffinity"), affinity.get("podAffinity")
    if not isinstance(node_affinity, dict):
        return affinity
    rest, inner = dict(affinity), dict(node_affinity)
    if isinstance(pod_affinity, dict) and pod_affinity.get(PREFERRED):
        kept = [term for term in pod_affinity[PREFERRED] if not _is_our_nearness(term)]
        pod_affinity = dict(pod_affinity)
        _set(pod_affinity, PREFERRED, kept)
        _set(rest, "podAffinity", pod_affinity)
    _set(inner, PREFERRED, [term for term in inner.get(PREFERRED) or () if not _is_our_wish(term)])
    if hard and inner.get(REQUIRED):
        terms = _unpinned(inner[REQUIRED].get("nodeSelectorTerms") or [])
        _set(inner, REQUIRED, {**inner[REQUIRED], "nodeSelectorTerms": terms} if terms else None)
    _set(rest, "nodeAffinity", inner)
    return rest


def _unpinned(terms: list[_Json]) -> list[_Json]:
    """The terms without their pin. Copies for further nodes become one again; a term that was all pin is gone."""
    found: list[_Json] = []
    for term in terms:
        fields = list(term.get("matchFields") or ())
        pins = [index for index, field in enumerate(fields) if _is_pin(field)]
        rest = dict(term)
        if pins:
            del fields[pins[-1]]  # ours was appended
            _set(rest, "matchFields", fields)
        if (not pins or any(rest.values())) and rest not in found:
            found.append(rest)
    return found


def _is_pin(field: Any) -> bool:
    return isinstance(field, dict) and (field.get("key"), field.get("operator")) == (METADATA_NAME, "In")


def _is_our_wish(term: Any) -> bool:
    """A preference for one node by its name, and for nothing else."""
    preference = term.get("preference") if isinstance(term, dict) else None
    if not isinstance(preference, dict) or preference.get("matchExpressions"):
        return False
    fields = preference.get("matchFields") or []
    return len(fields) == 1 and _is_pin(fields[0])


def _is_our_nearness(term: Any) -> bool:
    """A preference for where the pods of one VM are, whatever else they are: as a share-manager pod gets."""
    near = term.get("podAffinityTerm") if isinstance(term, dict) else None
    selector = near.get("labelSelector") if isinstance(near, dict) else None
    labels = selector.get("matchLabels") if isinstance(selector, dict) else None
    return isinstance(labels, dict) and list(labels) == [_CREATED_BY]


def _set(parent: _Json, key: str, value: Any) -> None:
    """Set a field, or take it out where nothing is left to say."""
    if value:
        parent[key] = value
    else:
        parent.pop(key, None)
