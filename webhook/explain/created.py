"""An existing pod -> the pod as it was in the AdmissionReview of its creation.

kube-scheduler has added the node since then, and the webhook its annotations and its part of the affinity.
"""

from __future__ import annotations

from typing import Any

import msgspec

from webhook.core.api.pod import Pod
from webhook.core.patch.json_patch import NotApplicable, apply
from webhook.core.patch.unpatch import revert_operations

_Json = dict[str, Any]


def as_created(pod: _Json) -> _Json:
    """Return the pod without its node and without what the webhook wrote; the pod itself if it can't be read."""
    try:
        operations = revert_operations(msgspec.convert(pod, Pod))
        before: _Json = _copied(pod)
        apply(before, operations)
    except (msgspec.ValidationError, NotApplicable):
        return pod
    before["spec"].pop("nodeName", None)
    if operations:
        _drop_empty(before["spec"])
    return before


def _copied(value: Any) -> Any:
    """A deep copy. YAML's anchors make two fields share one value; in the copy each field has its own."""
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def _drop_empty(spec: _Json) -> None:
    """Drop the empty objects in which the webhook's terms were."""
    affinity = spec.get("affinity")
    if isinstance(affinity, dict):
        for kind in ("nodeAffinity", "podAffinity"):
            if affinity.get(kind) == {}:
                del affinity[kind]
        if not affinity:
            del spec["affinity"]
