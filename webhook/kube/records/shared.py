"""What records have in common: parts that are stored once for many objects, texts with a bound, and a pod's status."""

from __future__ import annotations

from typing import Any, TypeVar
from weakref import WeakValueDictionary

import msgspec

from webhook.core.api.container import ContainerState, ContainerStateWaiting, ContainerStatus, PodCondition
from webhook.core.api.meta import NAME_MAX_CHARS
from webhook.core.api.pod import POD_SCHEDULED, UNSCHEDULABLE, PodStatus
from webhook.core.reasons import SENTENCE_MAX_CHARS

T = TypeVar("T")
_shared: WeakValueDictionary[bytes, Any] = WeakValueDictionary()
"""Each part for as long as a record has it. So the table needs no bound, and a part that is gone costs nothing."""


def share(part: T) -> T:
    """Return the one value that stands for all values equal to `part`. Callers must not change it.

    `part`: a Struct with weakref=True, or another type that takes weak references.
    """
    key = type(part).__name__.encode() + msgspec.json.encode(part)
    shared: T | None = _shared.get(key)
    if shared is None:
        shared = _shared[key] = part
    return shared


def kept_name(name: str) -> str:
    """Return what a record keeps of a name or uid. No object has one that is longer than NAME_MAX_CHARS.

    Of a longer one a beginning stays that is longer, too. Therefore no object is found by it, as by the whole.
    """
    return name if len(name) <= NAME_MAX_CHARS else name[: NAME_MAX_CHARS + 1]


def scheduled_at(status: PodStatus | None) -> str | None:
    """Return the time (RFC 3339) since when a pod has its node or waits for one; None if the status has none."""
    condition = status.scheduled if status else None
    return condition.last_transition_time if condition else None


def refusal(status: PodStatus | None) -> str | None:
    """Return kube-scheduler's message why it finds no node for a pod; None if it reports no such thing."""
    condition = status.scheduled if status else None
    return (condition.message or "")[:SENTENCE_MAX_CHARS] if condition and condition.reason == UNSCHEDULABLE else None


def pod_status(
    phase: str | None, scheduled_at: str | None, refusal: str | None = None, waiting: str | None = None
) -> PodStatus:
    """Return the status with this phase, with the condition PodScheduled if there is a time or a refusal.

    `waiting`: why a container waits; None if none does.
    """
    containers = None if waiting is None else [ContainerStatus(state=ContainerState(ContainerStateWaiting(waiting)))]
    if scheduled_at is None and refusal is None:
        return PodStatus(phase=phase, container_statuses=containers)
    condition = PodCondition(
        type=POD_SCHEDULED,
        reason=None if refusal is None else UNSCHEDULABLE,
        message=refusal,
        last_transition_time=scheduled_at,
    )
    return PodStatus(phase=phase, conditions=[condition], container_statuses=containers)
