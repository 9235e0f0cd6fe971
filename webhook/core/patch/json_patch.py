"""RFC 6902 operations and their result: add, remove and copy, which are all that this webhook writes.

The API server rejects a pod whose patch does not apply, whatever failurePolicy says (apiserver mutating/dispatcher.go).
Therefore every operation is first applied here to a copy of the places that a patch touches.
Invariant: what applies here applies at the API server (evanphx/json-patch v4), and has the same result.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from webhook.core.api.pod import Pod

Operation = Mapping[str, Any]


class NotApplicable(Exception):
    """An operation that does not apply. The message is the operation and its path."""


def tree_of(pod: Pod) -> dict[str, Any]:
    """Return the places of `pod` that a patch touches, as JSON: annotations and spec.affinity.

    An absent field and a null field are the same here: an operation can't add below either of them.
    """
    annotations = pod.metadata.annotations
    return {
        "metadata": {"annotations": None if annotations is None else dict(annotations)},
        "spec": {"affinity": msgspec.to_builtins(pod.spec.affinity)},
    }


def apply(tree: Any, operations: Iterable[Operation]) -> None:
    """Apply the operations to `tree`, in place.

    Raises:
        NotApplicable: an operation does not apply; those before it were applied.
    """
    for operation in operations:
        try:
            _apply(tree, operation)
        except (KeyError, IndexError, ValueError, TypeError):
            raise NotApplicable(f"{operation['op']} {operation['path']}") from None


def add(path: str, value: object) -> Operation:
    """Return the operation that adds `value` at `path`; `-` as the last part of the path appends to a list."""
    return {"op": "add", "path": path, "value": value}


def remove(path: str) -> Operation:
    """Return the operation that removes what is at `path`."""
    return {"op": "remove", "path": path}


def copied(source: str, path: str) -> Operation:
    """Return the operation that copies what is at `source` to `path`."""
    return {"op": "copy", "from": source, "path": path}


def escaped(key: str) -> str:
    """Return a key as a part of a path (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def _apply(tree: Any, operation: Operation) -> None:
    parent, key = _locate(tree, operation["path"])
    if operation["op"] == "remove":
        del parent[_index(key) if isinstance(parent, list) else key]
        return
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
        at = _index(key)
        if at > len(parent):
            raise IndexError(key)
        parent.insert(at, value)


def _locate(tree: Any, pointer: str) -> tuple[Any, str]:
    """Return (the container, the last key) of a JSON Pointer, RFC 6901."""
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
