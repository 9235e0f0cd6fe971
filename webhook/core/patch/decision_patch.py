"""A decision, written into the affinity and the annotations of a pod that carries nothing of the webhook; and back.
And the RFC 6902 operations from one state of these places to another.

An annotation records what is written (webhook.core.patch.applied_patch). A second call for the pod is decided as if the
webhook had never seen the pod: first everything goes that the record names. The webhook's own annotations always go,
because a user can have copied them into a VM. Invariants: the affinity never changes without the record; nothing here
raises, except `prove`.

The API server rejects a pod whose patch does not apply, whatever failurePolicy says (apiserver mutating/dispatcher.go).
Therefore each operation is about something that the pod has, and jsonpatch proves each patch before it is sent. The
places hold every field, also those that the webhook does not know, so that an operation can lose none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import jsonpatch
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.affinity import PREFERRED, Affinity
from webhook.core.api.pod import Pod
from webhook.core.decision import NODES_SHOWN, Decision, Leave, Steer, decision_sentence, outcome, why_not_required
from webhook.core.opt_in import OptedInBy
from webhook.core.patch.affinity_patch import pinned, reverted
from webhook.core.patch.applied_patch import AppliedPatch, applied_to, owner_uid, to_annotation
from webhook.core.reasons import (
    ANNOTATION_APPLIED_PATCH,
    ANNOTATION_DECISION,
    ANNOTATION_NO_EVICTION,
    Reason,
    Why,
)

Operation = Mapping[str, Any]


class NotApplicable(Exception):
    """An operation does not apply, or the operations have another result."""


class Places(Struct, frozen=True):
    """metadata.annotations and spec.affinity of a pod; None if absent or null, which is the same to an operation."""

    annotations: Mapping[str, str] | None
    affinity: Any

    @property
    def tree(self) -> dict[str, Any]:
        """A pod with these places alone."""
        return {"spec": {"affinity": self.affinity}, "metadata": {"annotations": self.annotations}}

    @property
    def meaning(self) -> Any:
        """Equal for places that mean the same to the API server and to the scheduler.

        An empty object or list means the same as an absent one. The order of preferences does not matter.
        """
        return self.annotations or None, _plain(self.affinity)


def places_of(pod: Pod) -> Places:
    """Return the places of a pod with the fields that core knows."""
    return Places(pod.metadata.annotations, msgspec.to_builtins(pod.spec.affinity))


def operations(old: Places, new: Places) -> list[Operation]:
    """Return the operations that make `new` of `old`."""
    return [*_changes("", old.tree, new.tree)]


def prove(old: Places, new: Places, changes: Sequence[Operation]) -> None:
    """Apply the operations to a copy of `old` with jsonpatch.

    Raises:
        NotApplicable: they don't apply, or they don't make `new`.
    """
    try:
        after = jsonpatch.JsonPatch([dict(each) for each in changes]).apply(old.tree)
        made = Places(after["metadata"].get("annotations"), after["spec"].get("affinity"))
        is_decided = made.meaning == new.meaning
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as problem:
        raise NotApplicable(str(problem)) from None
    if not is_decided:
        raise NotApplicable("the result is not what was decided")


def _changes(path: str, old: Any, new: Any) -> Iterator[Operation]:
    """Yield what makes `new` of `old`, which is at `path`; they differ."""
    if old is None:
        yield {"op": "add", "path": path, "value": new}
    elif new is None:
        yield {"op": "remove", "path": path}
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            if old.get(key) != new.get(key):
                escaped = key.replace("~", "~0").replace("/", "~1")  # RFC 6901
                yield from _changes(f"{path}/{escaped}", old.get(key), new.get(key))
    elif isinstance(old, list) and isinstance(new, list):
        for index, (one, other) in enumerate(zip(old, new, strict=False)):
            if one != other:
                yield from _changes(f"{path}/{index}", one, other)
        yield from ({"op": "remove", "path": f"{path}/{index}"} for index in range(len(old) - 1, len(new) - 1, -1))
        yield from ({"op": "add", "path": f"{path}/-", "value": each} for each in new[len(old) :])
    else:
        yield {"op": "replace", "path": path, "value": new}


def _plain(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_plain(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    kept = {key: _plain(value) for key, value in tree.items()}
    if kept.get(PREFERRED):
        kept[PREFERRED] = sorted(kept[PREFERRED], key=msgspec.json.encode)
    return {key: value for key, value in kept.items() if value not in (None, {}, [])} or None


_NOTHING: Final = AppliedPatch()
_OWN_KEYS: Final = (ANNOTATION_DECISION, ANNOTATION_APPLIED_PATCH)
_ANNOTATIONS_MAX_BYTES: Final = 256 * 1024  # apimachinery objectmeta.go TotalAnnotationSizeLimitB: more is rejected
_UTF8_MAX_BYTES: Final = 4  # of one character


def carried_out(pod: Pod, places: Places, decision: Decision) -> Places | Why:
    """Return the places of `pod` with the decision; or why it can't be written into the pod.

    A pod that did not opt in stays as it is. A pod that opted in gets the decision as an annotation, also if it is
    Leave.
    """
    if isinstance(decision, Leave):
        return annotated(pod, places, decision) if decision.opted_in else places
    affinity, applied = pinned(places.affinity, decision)
    if not applied.wrote_terms:
        return annotated(pod, places, decision)
    no_eviction = isinstance(decision, Steer) and pod.metadata.annotation(ANNOTATION_NO_EVICTION) is None
    after = annotated(pod, places, decision, replace(applied, no_eviction=no_eviction))
    return Reason.ANNOTATIONS_FULL.why() if after is places else replace(after, affinity=affinity)


def annotated(pod: Pod, places: Places, decision: Decision, applied: AppliedPatch = _NOTHING) -> Places:
    """Return the places with the decision as an annotation, and the record.

    They stay as they are if the annotations are too large for the API server together with the pod's own. A steered
    share-manager pod gets an annotation for the descheduler, too. Its plugin RemovePodsViolatingNodeAffinity can evict
    a pod for a preference, and that stalls NFS. With noEvictionPolicy Mandatory (plugins/defaultevictor/
    defaultevictor.go, Filter) this annotation prevents it.
    """
    new = {
        ANNOTATION_DECISION: decision_sentence(decision),
        ANNOTATION_APPLIED_PATCH: to_annotation(_recorded(pod, decision, applied)),
    }
    if applied.no_eviction:
        new[ANNOTATION_NO_EVICTION] = ""
    annotations = {**(places.annotations or {}), **new}
    return replace(places, annotations=annotations) if places.annotations is None or _fits(annotations) else places


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


def _fits(annotations: Mapping[str, str]) -> bool:
    """Whether the API server accepts annotations of this size. Bytes are counted only if the characters are many."""
    chars = sum(map(len, annotations)) + sum(map(len, annotations.values()))
    if chars * _UTF8_MAX_BYTES <= _ANNOTATIONS_MAX_BYTES:
        return True
    return sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items()) <= _ANNOTATIONS_MAX_BYTES


def without_applied_patch(pod: Pod, places: Places, owner: str) -> tuple[Pod, Places]:
    """Return the pod and its places without the parts of an earlier patch; the same objects if it has none.

    The record of the patch is believed only if it names `owner`, a uid that is known to be that of the pod's owner.
    """
    annotations = places.annotations or {}
    if not any(key in annotations for key in _OWN_KEYS):
        return pod, places
    applied = applied_to(pod, owner)
    own_keys = {*_OWN_KEYS, *([ANNOTATION_NO_EVICTION] if applied.no_eviction else ())}
    kept = {key: value for key, value in annotations.items() if key not in own_keys}
    before = Places(kept, reverted(places.affinity, applied))
    metadata = replace(pod.metadata, annotations=kept)
    affinity = msgspec.convert(before.affinity, Affinity | None) if applied.wrote_terms else pod.spec.affinity
    return replace(pod, metadata=metadata, spec=replace(pod.spec, affinity=affinity)), before


def as_created(pod: Pod) -> Pod:
    """Return an existing pod as it was at its creation: without its node, and without what an earlier call wrote."""
    before, _ = without_applied_patch(pod, places_of(pod), owner_uid(pod.metadata.owner_references))
    return replace(before, spec=replace(before.spec, node_name=None))
