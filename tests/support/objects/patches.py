"""Patches of pods: what a decision writes into one, and what is left of it when that is taken out again."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import jsonpatch
from msgspec import convert

from webhook.core.api.pod import Pod
from webhook.core.decision import Decision
from webhook.core.patch.decision_patch import (
    Operation,
    Places,
    carried_out,
    operations,
    places_of,
    without_applied_patch,
)
from webhook.core.reasons import Why


def add(path: str, value: object) -> Operation:
    """Return the operation that adds `value` at `path`; `-` as the last part of the path appends to a list."""
    return {"op": "add", "path": path, "value": value}


def for_decision(pod: Pod, decision: Decision) -> list[Operation]:
    """Return the operations that write a decision into a pod that carries nothing of the webhook."""
    places = places_of(pod)
    after = carried_out(pod, places, decision)
    assert not isinstance(after, Why), after
    return operations(places, after)


def reverted(pod: dict[str, Any], owner: str) -> dict[str, Any]:
    """Return the pod of an owner with this uid without what an earlier patch wrote into it."""
    places = Places((pod["metadata"].get("annotations")), pod["spec"].get("affinity"))
    _, before = without_applied_patch(convert(pod, Pod), places, owner)
    result: dict[str, Any] = jsonpatch.apply_patch(deepcopy(pod), operations(places, before))
    return result
