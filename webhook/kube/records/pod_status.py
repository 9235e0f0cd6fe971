"""What is kept of a pod's status, and the status that is made from it again."""

from __future__ import annotations

from webhook.core.api.container import PodCondition
from webhook.core.api.pod import POD_SCHEDULED, UNSCHEDULABLE, PodStatus


def placed_at(status: PodStatus | None) -> str | None:
    """Since when a pod has its node, or waits for one."""
    condition = status.scheduled if status else None
    return condition.last_transition_time if condition else None


def refusal(status: PodStatus | None) -> str | None:
    """Why kube-scheduler finds no node for a pod, in its words; None where it does not say so."""
    condition = status.scheduled if status else None
    return (condition.message or "") if condition and condition.reason == UNSCHEDULABLE else None


def build_status(phase: str | None, placed_at: str | None, refusal: str | None = None) -> PodStatus:
    """Object, as far as it is kept."""
    if placed_at is None and refusal is None:
        return PodStatus(phase=phase)
    condition = PodCondition(
        type=POD_SCHEDULED,
        reason=None if refusal is None else UNSCHEDULABLE,
        message=refusal,
        last_transition_time=placed_at,
    )
    return PodStatus(phase=phase, conditions=[condition])
