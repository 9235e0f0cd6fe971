"""A pod that is there -> the pod as it was when it was created, as far as the webhook was asked about it.

What the scheduler and we have written since is taken out again: the node, and what our record tells.
"""

from __future__ import annotations

from typing import Any

import msgspec

from webhook.core.api.pod import Pod
from webhook.core.patch.json_patch import NotApplicable, apply
from webhook.core.patch.unpatch import revert_operations
from webhook.core.reasons import ANNOTATION_DECISION

_Json = dict[str, Any]


def as_created(pod: _Json) -> _Json:
    """The pod without its node, our annotations, and the affinity that we wrote; itself where it can't be read."""
    try:
        operations = revert_operations(msgspec.convert(pod, Pod))
        before: _Json = _copied(pod)
        apply(before, operations)
    except (msgspec.ValidationError, NotApplicable):
        return pod
    before["spec"].pop("nodeName", None)
    (before["metadata"].get("annotations") or {}).pop(ANNOTATION_DECISION, None)
    if operations:
        _drop_empty(before["spec"])
    return before


def _copied(value: Any) -> Any:
    """A deep copy in which no two places share a value, as YAML's anchors make them share one."""
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def _drop_empty(spec: _Json) -> None:
    """The parents that we made are empty now."""
    affinity = spec.get("affinity")
    if isinstance(affinity, dict):
        for kind in ("nodeAffinity", "podAffinity"):
            if affinity.get(kind) == {}:
                del affinity[kind]
        if not affinity:
            del spec["affinity"]
