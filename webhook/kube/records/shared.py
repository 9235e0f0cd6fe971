"""What records have in common: parts that are stored once for many objects, and the part of a pod's status."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from webhook.core.api.container import PodCondition
from webhook.core.api.pod import POD_SCHEDULED, UNSCHEDULABLE, PodStatus

T = TypeVar("T")
_SHARED_MAX: Final = 20_000  # distinct parts; then the table starts again, so that its memory is bounded
_shared: dict[bytes, Any] = {}


def share(part: T) -> T:
    """Return the one value that stands for all values equal to `part`. Callers must not change it."""
    if len(_shared) > _SHARED_MAX:
        _shared.clear()
    shared: T = _shared.setdefault(type(part).__name__.encode() + msgspec.json.encode(part), part)
    return shared


def scheduled_at(status: PodStatus | None) -> str | None:
    """Return the time (RFC 3339) since when a pod has its node or waits for one; None if the status has none."""
    condition = status.scheduled if status else None
    return condition.last_transition_time if condition else None


def refusal(status: PodStatus | None) -> str | None:
    """Return kube-scheduler's message why it finds no node for a pod; None if it reports no such thing."""
    condition = status.scheduled if status else None
    return (condition.message or "") if condition and condition.reason == UNSCHEDULABLE else None


def pod_status(phase: str | None, scheduled_at: str | None, refusal: str | None = None) -> PodStatus:
    """Return the status with this phase and, if there is a time or a refusal, the condition PodScheduled."""
    if scheduled_at is None and refusal is None:
        return PodStatus(phase=phase)
    condition = PodCondition(
        type=POD_SCHEDULED,
        reason=None if refusal is None else UNSCHEDULABLE,
        message=refusal,
        last_transition_time=scheduled_at,
    )
    return PodStatus(phase=phase, conditions=[condition])
