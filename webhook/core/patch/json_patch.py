"""The places of a pod that the webhook changes, as JSON, and the RFC 6902 operations from one state to another.

The API server rejects a pod whose patch does not apply, whatever failurePolicy says (apiserver mutating/dispatcher.go).
Therefore each operation is about something that the pod has, and jsonpatch proves each patch before it is sent. The
places hold every field, also those that the webhook does not know, so that an operation can lose none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jsonpatch
import msgspec
from msgspec import Struct

from webhook.core.api.affinity import PREFERRED
from webhook.core.api.pod import Pod

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
        NotApplicable: they don't apply, they don't make `new`, or a field is nested deeper than Python follows.
    """
    try:
        after = jsonpatch.JsonPatch([dict(each) for each in changes]).apply(old.tree)
        made = Places(after["metadata"].get("annotations"), after["spec"].get("affinity"))
        is_decided = made.meaning == new.meaning
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, RecursionError) as problem:
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
    if not isinstance(tree, dict):
        return tree
    kept = {key: _plain(value) for key, value in tree.items()}
    if kept.get(PREFERRED):
        kept[PREFERRED] = sorted(kept[PREFERRED], key=msgspec.json.encode)
    return {key: value for key, value in kept.items() if value not in (None, {}, [])} or None
